"""Stochastic gradient descent in a kernel's space: with a fixed rate, and regularised with decreasing rates.

Orabona 2014 (see :mod:`tunefree.kernel.pistol`), Algorithm 1, averaged stochastic gradient descent:

    f_{t+1} = f_t - eta s_t k(x_t, .)          (printed with the sign of the negative slope)

Nitanda, Suzuki: Stochastic gradient descent with exponential convergence rates of expected classification errors
(AISTATS 2019), Algorithm 1, which minimises the expected loss plus (lambda / 2) ||f||^2:

    f_{t+1} = (1 - eta_t lambda) f_t - eta_t s_t k(x_t, .),   eta_t = 2 / (lambda (gamma + t))

with the average of f_1 .. f_{T+1} weighted by gamma + t - 1. With the hinge it is the online regularised learner of
Lin, Rosasco, Zhou: Iterative regularization for learning with convex loss functions (JMLR 2016), (15).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree import compiled
from tunefree.errors import ModelError
from tunefree.kernel.contract import begin_round, coefficient, end_round, factor, share
from tunefree.learners.contract import bounded
from tunefree.learners.gradient import stride_of


class KernelSGD(NamedTuple):
    """Stochastic gradient descent with a fixed rate; its average is Algorithm 1 of Orabona 2014."""

    outputs: np.ndarray  # (K,) zeros: how many outputs there are
    stride: np.ndarray  # () see stride_of, of the latest round, in place
    eta: float  # in units of scale.margin

    @classmethod
    def create(cls, n_outputs: int = 1, eta: float = 1.0) -> KernelSGD:
        """A learner that has seen nothing."""
        return cls(np.zeros(n_outputs), np.zeros(()), eta)


class RegularizedKernelSGD(NamedTuple):
    """Stochastic gradient descent on the regularised loss, with rates 2 / (lambda (gamma + t))."""

    outputs: np.ndarray  # (K,) zeros: how many outputs there are
    stride: np.ndarray  # () see stride_of, of the latest round, in place
    rounds: np.ndarray  # () t of the latest round, in place
    shrinking: np.ndarray  # () product of 1 - eta_t lambda so far, in place
    penalty: float  # lambda
    offset: float  # gamma, of at least 3: no rate is then above half of 1 / lambda

    @classmethod
    def create(cls, n_outputs: int = 1, penalty: float = 1e-3, offset: float = 3.0) -> RegularizedKernelSGD:
        """A learner that has seen nothing."""
        if not (penalty > 0.0 and offset >= 3.0):
            raise ModelError(f"the penalty must be above 0 and the offset at least 3, not {penalty} and {offset}")
        return cls(np.zeros(n_outputs), np.zeros(()), np.zeros(()), np.ones(()), penalty, offset)


@compiled.inline
def kept(state):
    """1 - eta_t lambda, of the present round."""
    return 1.0 - 2.0 / (state.offset + state.rounds[()])


@begin_round.register(KernelSGD)
def begin_round_sgd(state, own, scale):
    state.stride[()] = stride_of(scale)


@factor.register(KernelSGD)
def factor_sgd(state, k):
    return 1.0


@coefficient.register(KernelSGD)
def coefficient_sgd(state, k, gradient, value, own):
    return bounded(-state.eta * state.stride[()] * gradient)


@begin_round.register(RegularizedKernelSGD)
def begin_round_regularized(state, own, scale):
    state.stride[()] = stride_of(scale)
    if scale.weight > 0.0:
        state.rounds[()] += 1.0


@factor.register(RegularizedKernelSGD)
def factor_regularized(state, k):
    return state.shrinking[()]


@share.register(RegularizedKernelSGD)
def share_regularized(state):
    return state.offset + state.rounds[()] - 1.0


@coefficient.register(RegularizedKernelSGD)
def coefficient_regularized(state, k, gradient, value, own):
    rate = 2.0 / (state.penalty * (state.offset + state.rounds[()]))
    return bounded(-rate * state.stride[()] * gradient / (state.shrinking[()] * kept(state)))


@end_round.register(RegularizedKernelSGD)
def end_round_regularized(state):
    state.shrinking[()] *= kept(state)
