"""Certificates against functions of a reproducing kernel Hilbert space, on the rows of one pass.

Let L be the total loss of the predictions f_t(x_t), s_t the slopes of the loss there and w_t the sample weights. As for
linear models (:mod:`tunefree.theory.evidence`), convexity bounds the total loss of every function h from below by
L - sum w_t s_t f_t(x_t) + <g, h> with g = sum w_t s_t k(x_t, .). Both sums are recorded during the pass, and PiSTOL
stores the norm of g. For h of norm up to U the last term is at least -U ||g||. For smooth losses the sum of squared
slopes improves the bound. In regression the learner's slopes differ a little from s_t; the recorded sum of
w_t |difference| ||k(x_t, .)|| is added to the norm of its g.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tunefree.core.numbers import LARGEST
from tunefree.theory.bounds import growing_pistol_bound
from tunefree.theory.evidence import Certificate


@dataclass(frozen=True)
class KernelCertificate(Certificate):
    """Lower bounds on the loss of every function of a kernel's space; made by :func:`certificate_of`.

    A radius is a norm in that space. The fields are those of :class:`Certificate`, and

    Parameters
    ----------
    gamma : float
        gamma of the kernel.
    reach, paths, growth : (K,) arrays
        For each output M, A / M and A / M_1 of :func:`tunefree.theory.bounds.growing_pistol_bound`.
    a, b : float
        The learner's parameters, in units of the Lipschitz constant; b is 0 if it grows with the rounds.
    lipschitz : float
        Lipschitz constant of the loss; infinite where the theorem does not cover the objective.

    Examples
    --------
    >>> one = KernelCertificate(50.0, -2.0, 100.0, 100, np.array([[3.0]]), np.ones(1), gamma=1.0, reach=np.ones(1),
    ...                         paths=np.array([50.0]), growth=np.array([50.0]), a=4.0, b=1.0, lipschitz=1.0)
    >>> one.lower_bound(1.0), round(one.theorem(1.0), 1)
    (0.49, 37.5)
    """

    gamma: float = 1.0
    reach: np.ndarray = field(default_factory=lambda: np.zeros(1))
    paths: np.ndarray = field(default_factory=lambda: np.zeros(1))
    growth: np.ndarray = field(default_factory=lambda: np.zeros(1))
    a: float = 0.0
    b: float = 0.0
    lipschitz: float = math.inf

    def theorem(self, norm: float) -> float:
        """Regret bound of PiSTOL against every function of a norm (Orabona 2014, Theorem 1).

        M = max ||k(x_t, .)|| may grow, as in :func:`tunefree.theory.bounds.paper_bound`. The bound is infinite where
        the theorem does not apply: for a below 2.25 times the Lipschitz constant of the loss and for b that grows
        during the stream, both as in the paper's own experiments, and in regression, where b follows the targets.

        Parameters
        ----------
        norm : float
            Norm of the comparator in the kernel's space.

        Returns
        -------
        bound : float
            On the total loss of the predictions minus that of the comparator.
        """
        if not (self.lipschitz < math.inf and self.a > 0.0 and self.b > 0.0):
            return math.inf
        with np.errstate(all="ignore"):
            bounds = growing_pistol_bound(norm * self.reach, self.paths, self.growth, self.a, self.b)
            total = self.lipschitz * float(bounds.sum())
        return total if math.isfinite(total) else math.inf


def certificate_of(function: Any, gamma: float = 1.0) -> KernelCertificate | None:
    """Certificate of the first pass of a kernel learner.

    Parameters
    ----------
    function : KernelMember
        Of a :class:`tunefree.papers.kernel.kernel_bank.KernelBank`.
    gamma : float, default 1
        gamma of its kernel.

    Returns
    -------
    certificate : KernelCertificate or None
        None if the learner does not store the norm of its sum of gradients, or if the loss has no Lipschitz constant:
        its slopes are then clipped.
    """
    objective, state = function.objective, function.state
    lipschitz = getattr(objective.loss, "lipschitz", 1.0)  # 1 for the multinomial loss
    if not (hasattr(state, "norms") and lipschitz < math.inf) or state.counted_rounds[0] == 0.0:
        return None
    names = ("norms", "slopes") if state.is_counting[0] > 0.0 else ("counted_norms", "counted_slopes")
    norms, paths = (state[name].copy() for name in names)
    inner, largest, first = float(state.counted_inner[0]), float(state.largest[0]), float(state.first[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        growth = np.where(paths > 0.0, paths / first, 0.0)
    return KernelCertificate(
        loss=float(state.counted_loss[0]),
        inner=inner if abs(inner) <= LARGEST else math.inf,
        weight=float(state.counted_weight[0]),
        rounds=int(state.counted_rounds[0]),
        pulls=np.array([[lipschitz * math.sqrt(float(norms.sum())) + float(state.counted_deviation[0])]]),
        largest=np.ones(1),
        bends=float(state.counted_squares[0]),
        gamma=gamma,
        reach=np.full(len(paths), largest),
        paths=paths / largest if largest > 0.0 else paths,
        growth=growth,
        a=float(state.a[0]),
        b=float(state.b[0]),
        lipschitz=lipschitz if objective.task == "classification" and abs(inner) <= LARGEST else math.inf,
    )
