"""Stochastic gradient descent in a kernel's space, with a fixed rate.

Orabona 2014 (see :mod:`tunefree.kernel.pistol`), Algorithm 1, averaged stochastic gradient descent:

    f_{t+1} = f_t - eta s_t k(x_t, .)          (printed with the sign of the negative slope)

Its bound (3) is for the square loss of classes, eta up to 1/4 and k(x, x) <= 1. Slopes of losses with a Lipschitz
constant are divided by it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree.core.numbers import bounded
from tunefree.kernel.contract import PerOutput, Single, begin_round, coefficient, factor
from tunefree.learners.contract import Traits
from tunefree.learners.gradient import stride_of


class KernelSGD(NamedTuple):
    """Stochastic gradient descent with a fixed rate; its average is Algorithm 1 of Orabona 2014."""

    outputs: PerOutput  # zeros: how many outputs there are
    stride: Single  # see stride_of, of the latest round, in place
    eta: float  # in units of scale.margin

    @classmethod
    def create(cls, n_outputs: int = 1, eta: float = 1.0) -> KernelSGD:
        """A learner that has seen nothing."""
        return cls(np.zeros(n_outputs), np.zeros(()), eta)


KernelSGD.traits = Traits(takes_slopes_as_they_come=True)  # type: ignore[attr-defined]


@begin_round.register(KernelSGD)
def begin_round_sgd(state, squared_norm, scale):
    state.stride[()] = stride_of(scale)


@factor.register(KernelSGD)
def factor_sgd(state, k):
    return 1.0


@coefficient.register(KernelSGD)
def coefficient_sgd(state, k, gradient, value, squared_norm):
    return bounded(-state.eta * state.stride[()] * gradient)
