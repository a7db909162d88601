"""How good any function of a kernel's space can be on the rows of one pass.

As for linear models (:mod:`tunefree.theory.evidence`), convexity bounds the total loss of every function h from
below by the total loss L of the predictions f_t(x_t) less sum h_t s_t f_t(x_t) plus <sum h_t s_t k(x_t, .), h>: two
numbers and the norm of one function, which PiSTOL keeps. No function of norm up to U does better than with the last
term at -U ||g||, and a smooth loss gives more for the sum of squared slopes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.theory.bounds import pistol_bound
from tunefree.theory.evidence import Certificate


def certificate_of(function: Any) -> Certificate | None:
    """What a kernel learner's first pass proves; a radius is a norm in the kernel's space.

    Parameters
    ----------
    function : Function
        Of a :class:`tunefree.model.kernel_bank.KernelBank`.

    Returns
    -------
    Certificate or None
        None for a learner that does not keep the norm of its sum of gradients, or a loss without a Lipschitz constant,
        whose slopes are clipped when they are learned.
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
    """Theorem 1 of Orabona 2014: the regret of PiSTOL against any function of that norm is at most this.

    Infinite where the theorem says nothing: for a below 2.25 times the Lipschitz constant of the loss (the paper's own
    experiments), and for b that grows.
    """
    state = function.state
    if not (hasattr(state, "slopes") and state.a >= 2.25 and state.b > 0.0 and state.largest[()] > 0.0):
        return math.inf
    lipschitz = getattr(getattr(function.objective, "loss", None), "lipschitz", 1.0)
    largest, rounds = float(state.largest[()]), int(state.rounds[()])
    bounds = [pistol_bound(norm * largest, slopes / largest, rounds, state.a, state.b) for slopes in state.slopes]
    return lipschitz * sum(bounds)
