"""Certificates against functions of a reproducing kernel Hilbert space, on the rows of one pass.

Let L be the total loss of the predictions f_t(x_t), s_t the slopes of the loss there and w_t the sample weights. As for
linear models (:mod:`tunefree.theory.evidence`), convexity bounds the total loss of every function h from below by
L - sum w_t s_t f_t(x_t) + <g, h> with g = sum w_t s_t k(x_t, .). Both sums are recorded during the pass, and PiSTOL
stores the norm of g. For h of norm up to U the last term is at least -U ||g||. For smooth losses the sum of squared
slopes improves the bound.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.theory.bounds import pistol_bound
from tunefree.theory.evidence import Certificate


def certificate_of(function: Any) -> Certificate | None:
    """Certificate of the first pass of a kernel learner; its radius is a norm in the kernel's space.

    Parameters
    ----------
    function : KernelMember
        Of a :class:`tunefree.model.kernel_bank.KernelBank`.

    Returns
    -------
    certificate : Certificate or None
        None if the learner does not store the norm of its sum of gradients, or if the loss has no Lipschitz constant:
        its slopes are then clipped.
    """
    lipschitz = getattr(getattr(function.objective, "loss", None), "lipschitz", 1.0)  # 1 for the multinomial loss
    record = function.record
    if not (hasattr(function.state, "norms") and lipschitz < math.inf) or record.rounds[()] == 0.0:
        return None
    norms = record.norms if (record.norms >= 0.0).all() else function.state.norms
    pull = lipschitz * math.sqrt(float(norms.sum()))
    return Certificate(
        loss=float(record.loss[()]),
        inner=float(record.inner[()]),
        weight=float(record.weight[()]),
        rounds=int(record.rounds[()]),
        pulls=np.array([[pull]]),
        largest=np.ones(1),
        bends=float(record.squares[()]),
    )


def theorem(function: Any, norm: float) -> float:
    """Regret bound of PiSTOL against every function of a norm (Orabona 2014, Theorem 1).

    The bound is infinite where the theorem does not apply: for a below 2.25 times the Lipschitz constant of the loss,
    as in the paper's own experiments, and for b that grows during the stream.

    Parameters
    ----------
    function : KernelMember
    norm : float
        Norm of the comparator in the kernel's space.

    Returns
    -------
    bound : float
    """
    state = function.state
    if not (hasattr(state, "slopes") and state.a >= 2.25 and state.b > 0.0 and state.largest[()] > 0.0):
        return math.inf
    lipschitz = getattr(getattr(function.objective, "loss", None), "lipschitz", 1.0)
    largest, rounds = float(state.largest[()]), int(state.rounds[()])
    bounds = [pistol_bound(norm * largest, slopes / largest, rounds, state.a, state.b) for slopes in state.slopes]
    return lipschitz * sum(bounds)
