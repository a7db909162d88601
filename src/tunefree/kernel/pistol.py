"""PiSTOL in a kernel's space.

Orabona: Simultaneous model selection and optimization through parameter-free stochastic learning (NIPS 2014),
Algorithm 3.

    f_t = g_{t-1} (b / alpha_{t-1}) exp(||g_{t-1}||^2 / (2 alpha_{t-1}))
    g_t = g_{t-1} - s_t k(x_t, .),   alpha_t = alpha_{t-1} + a |s_t| ||k(x_t, .)||,   alpha_0 = a L

One value g_{t-1}(x_t) gives both the prediction and the norm, ||g_t||^2 = ||g_{t-1}||^2 - 2 s_t g_{t-1}(x_t) +
s_t^2 k(x_t, x_t). The paper assumes k(x, x) <= 1; here M = max bound_t ||k(x_t, .)|| takes the place of L, as for the
linear learner (:mod:`tunefree.learners.pistol`), and slopes come divided by the loss's Lipschitz constant: a and b are
the paper's a / L and b / L.

The paper's experiments set b = sqrt(2 a L T) for T rounds. Where T is not known b grows as sqrt(2 a L t): that only
multiplies f_t by a slowly growing number.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.core.numbers import CEILING, LARGEST, LOG_CEILING, bounded
from tunefree.kernel.contract import PerOutput, Single, begin_round, coefficient, factor


class KernelPiSTOL(NamedTuple):
    """PiSTOL (Algorithm 3), a copy for each output."""

    norms: PerOutput  # ||g||^2, in place
    slopes: PerOutput  # sum of |s| ||k(x, .)||, in place
    largest: Single  # M, in place
    first: Single  # M after the first row that was learned; 0 before it, in place
    rounds: Single  # t, in place
    margin: Single  # scale.margin of the latest round, in place
    a: float  # the theory asks for at least 2.25
    b: float  # in units of scale.margin; 0 for one that grows with the rounds

    @classmethod
    def create(cls, n_outputs: int = 1, a: float = 0.125, b: float = 0.0) -> KernelPiSTOL:
        """A learner that has seen nothing; the defaults are the paper's in its experiments, where L = 2."""
        largest, first, rounds = (np.zeros(()) for _ in range(3))
        return cls(np.zeros(n_outputs), np.zeros(n_outputs), largest, first, rounds, np.ones(()), a, b)


@begin_round.register(KernelPiSTOL)
def begin_round_pistol(state, squared_norm, scale):
    state.margin[()] = scale.margin
    if scale.weight > 0.0:
        state.rounds[()] += 1.0
        size = min(scale.slope * math.sqrt(squared_norm), CEILING)
        if state.largest[()] == 0.0:
            state.first[()] = size
        state.largest[()] = max(state.largest[()], size)


@factor.register(KernelPiSTOL)
def factor_pistol(state, k):
    largest = state.largest[()]
    if largest == 0.0:
        return 0.0
    # log alpha = log a + log M + log(M + A): alpha itself could overflow
    log_alpha = math.log(state.a) + math.log(largest) + math.log(largest + state.slopes[k])
    norm = state.norms[k]
    exponent = math.exp(min(math.log(norm / 2.0) - log_alpha, LOG_CEILING)) if norm > 0.0 else 0.0
    b = state.b if state.b > 0.0 else math.sqrt(2.0 * state.a * state.rounds[()])
    return b * state.margin[()] * math.exp(min(exponent - log_alpha, LOG_CEILING))


@coefficient.register(KernelPiSTOL)
def coefficient_pistol(state, k, gradient, value, squared_norm):
    change = gradient * (gradient * squared_norm - 2.0 * value)
    state.norms[k] = min(max(state.norms[k] + change, 0.0), LARGEST)
    state.slopes[k] = min(state.slopes[k] + abs(gradient) * math.sqrt(squared_norm), CEILING)
    return bounded(-gradient)
