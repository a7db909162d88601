"""Online regularised learning in a kernel's space, with decreasing rates and a decreasing penalty.

Lin, Rosasco, Zhou: Iterative regularization for learning with convex loss functions (JMLR 2016), (15), for the hinge:

    f_{t+1} = (1 - eta_t lambda_t) f_t [+ eta_t y_t k(x_t, .) if y_t f_t(x_t) <= 1]

with the sequences of the papers that it cites: eta_t = eta t^-theta with a constant lambda (Ying, Zhou: Online
regularized classification algorithms, IEEE Transactions on Information Theory 2006), and lambda_t = lambda t^-kappa as
well (Ye, Zhou: Fully online classification by regularization, Applied and Computational Harmonic Analysis 2007). Rates
2 / (lambda (gamma + t)) are those of :mod:`tunefree.kernel.regularized_sgd`. Other losses take the place of the hinge
by their slopes, which come divided by the Lipschitz constant.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import bounded
from tunefree.kernel.contract import PerOutput, Single, begin_round, coefficient, factor, small_factors
from tunefree.learners.gradient import stride_of

SMALLEST = math.log(1e2)  # a factor of which minus the logarithm is larger goes into the coefficients


class OnlineRegularized(NamedTuple):
    """Online regularised learning with rates eta t^-theta and penalties lambda t^-kappa."""

    stride: Single  # see stride_of, of the latest round, in place
    rounds: Single  # t of the latest round, in place
    decay: PerOutput  # minus the logarithm of the product of all 1 - eta_t lambda_t so far, in place
    eta: float  # first rate, in units of scale.margin
    theta: float
    penalty: float  # lambda, the first one
    kappa: float

    @classmethod
    def create(
        cls, n_outputs: int = 1, eta: float = 1.0, theta: float = 0.5, penalty: float = 0.01, kappa: float = 0.25
    ) -> OnlineRegularized:
        """A learner that has seen nothing."""
        if not (eta > 0.0 and penalty > 0.0 and eta * penalty < 1.0 and theta >= 0.0 and kappa >= 0.0):
            raise ModelError(
                "eta and penalty must be above 0, their product below 1, and theta and kappa at least 0, not"
                f" {eta}, {penalty}, {theta} and {kappa}"
            )
        return cls(np.zeros(()), np.zeros(()), np.zeros(n_outputs), eta, theta, penalty, kappa)


@begin_round.register(OnlineRegularized)
def begin_round_online(state, squared_norm, scale):
    if scale.weight > 0.0:
        state.stride[()] = stride_of(scale)
        state.rounds[()] += 1.0


@factor.register(OnlineRegularized)
def factor_online(state, k):
    return math.exp(-state.decay[k])


@coefficient.register(OnlineRegularized)
def coefficient_online(state, k, gradient, value, squared_norm):
    rate = state.eta * state.rounds[()] ** -state.theta
    state.decay[k] -= math.log1p(-rate * state.penalty * state.rounds[()] ** -state.kappa)
    return bounded(bounded(-rate * state.stride[()] * gradient) * math.exp(state.decay[k]))


@small_factors.register(OnlineRegularized)
def small_factors_online(state):
    if state.decay.max() <= SMALLEST:
        return None
    factors = np.exp(-state.decay)
    state.decay[:] = 0.0
    return factors
