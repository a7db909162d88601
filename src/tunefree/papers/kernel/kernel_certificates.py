"""Certificates against functions of a reproducing kernel Hilbert space, on the rows of one pass.

Let L be the total loss of the predictions f_t(x_t), s_t the slopes of the loss there and w_t the sample weights. As for
linear models (:mod:`tunefree.theory.evidence`), convexity bounds the total loss of every function h from below by
L - sum w_t s_t f_t(x_t) + <g, h> with g = sum w_t s_t k(x_t, .). The first two are recorded as for these, and PiSTOL
stores the norm of g. For h of norm up to U the last term is at least -U ||g||.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tunefree.papers.kernel.pistol import KernelPiSTOL
from tunefree.papers.pistol_bound import pistol_regret
from tunefree.theory.evidence import Certificate, certify


@dataclass(frozen=True, repr=False)
class KernelCertificate(Certificate):
    """Lower bounds on the loss of every function of a kernel's space; made by :func:`certificate_of`.

    A radius is a norm in that space. The fields are those of :class:`Certificate`, and

    Parameters
    ----------
    gamma : float
        gamma of the kernel.
    lipschitz : float
        Lipschitz constant of the loss.
    state : KernelPiSTOL
        The learner after the rows.

    Examples
    --------
    >>> state = KernelPiSTOL(0, a=4.0, b=1.0)
    >>> state.largest[0] = state.first[0] = 1.0
    >>> state.slopes[0] = 50.0
    >>> one = KernelCertificate(50.0, -2.0, 100.0, 100, np.array([[3.0]]), np.ones(1), state=state)
    >>> one.lower_bound(1.0), round(one.theorem(1.0), 1)
    (0.49, 37.5)
    """

    gamma: float = 1.0
    lipschitz: float = 1.0
    state: KernelPiSTOL = field(default_factory=lambda: KernelPiSTOL(0))

    def theorem(self, norm: float) -> float:
        """Regret bound of PiSTOL against every function of a norm (Orabona 2014, Theorem 1).

        M = max ||k(x_t, .)|| may grow, as in :func:`tunefree.theory.bounds.paper_bound`. The bound is infinite where
        the theorem does not apply: for a below 2.25 times the Lipschitz constant of the loss and for b that grows
        during the stream, both as in the paper's own experiments.

        Parameters
        ----------
        norm : float
            Norm of the comparator in the kernel's space.

        Returns
        -------
        bound : float
            On the total loss of the predictions minus that of the comparator.
        """
        with np.errstate(all="ignore"):
            total = self.lipschitz * pistol_regret(self.state, norm)
        return total if math.isfinite(total) else math.inf


def certificate_of(member: Any, gamma: float = 1.0) -> KernelCertificate | None:
    """Certificate of the first pass of a kernel learner.

    Parameters
    ----------
    member : KernelMember
        Of a :class:`tunefree.papers.kernel.kernel_bank.KernelBank`.
    gamma : float, default 1
        gamma of its kernel.

    Returns
    -------
    certificate : KernelCertificate or None
        None if there is none: for numbers, after the first pass, and for a loss without a Lipschitz constant, whose
        slopes are clipped.
    """
    objective, state, evidence = member.objective, copy.deepcopy(member.state), member.evidence
    lipschitz = getattr(objective.loss, "lipschitz", 1.0)  # 1 for the multinomial loss
    if evidence is None or not (lipschitz < math.inf and evidence.rounds[0] > 0.0):
        return None
    sums = certify(evidence, objective)
    if sums.inner == math.inf:
        return None
    pulls, size = np.array([[lipschitz * math.sqrt(float(state.norms.sum()))]]), np.ones(1)
    totals = sums.loss, sums.inner, sums.weight, sums.rounds
    return KernelCertificate(*totals, pulls, size, sums.bends, gamma=gamma, lipschitz=lipschitz, state=state)
