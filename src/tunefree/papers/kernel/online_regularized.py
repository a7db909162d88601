"""Online regularised learning in a kernel's space, with decreasing rates and a decreasing penalty.

Lin, Rosasco, Zhou: Iterative regularization for learning with convex loss functions (JMLR 2016), (15), for the hinge:

    f_{t+1} = (1 - eta_t lambda_t) f_t [+ eta_t y_t k(x_t, .) if y_t f_t(x_t) <= 1]

with the sequences of the papers that it cites: eta_t = eta t^-theta with a constant lambda (Ying, Zhou: Online
regularized classification algorithms, IEEE Transactions on Information Theory 2006), and lambda_t = lambda t^-kappa as
well (Ye, Zhou: Fully online classification by regularization, Applied and Computational Harmonic Analysis 2007). Rates
2 / (lambda (gamma + t)) are those of :mod:`.regularized_sgd`. Other losses take the place of the hinge
by their slopes, which come divided by the Lipschitz constant.
"""

from __future__ import annotations

import math

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.fields import per_output, setting, single
from tunefree.core.numbers import bounded
from tunefree.papers.kernel.contract import KernelLearner, factors_of
from tunefree.papers.learners.gradient import stride_of


class OnlineRegularized(KernelLearner):
    """Online regularised learning with rates eta t^-theta and penalties lambda t^-kappa."""

    stride = single("see stride_of, of the latest round")
    rounds = single("t of the latest round")
    decay = per_output("minus the logarithm of the product of all 1 - eta_t lambda_t so far")
    eta = setting(1.0, "first rate, in units of scale.margin")
    theta = setting(0.5, "rates are eta t^-theta")
    penalty = setting(0.01, "lambda, the first one")
    kappa = setting(0.25, "penalties are lambda t^-kappa")

    def __init__(self, n_features: int, n_outputs: int = 1, **settings: float) -> None:
        super().__init__(n_features, n_outputs, **settings)
        eta, theta, penalty, kappa = (self.settings[name] for name in ("eta", "theta", "penalty", "kappa"))
        if not (eta > 0.0 and penalty > 0.0 and eta * penalty < 1.0 and theta >= 0.0 and kappa >= 0.0):
            raise ModelError(
                "eta and penalty must be above 0, their product below 1, and theta and kappa at least 0, not"
                f" {eta}, {penalty}, {theta} and {kappa}"
            )

    def begin_round(state, squared_norm, scale):
        if scale.weight > 0.0:
            state.stride[0] = stride_of(scale)
            state.rounds[0] += 1.0

    def factor(state, k):
        return math.exp(-state.decay[k])

    def coefficient(state, k, gradient, value, squared_norm):
        rate = state.eta[0] * state.rounds[0] ** -state.theta[0]
        state.decay[k] -= math.log1p(-rate * state.penalty[0] * state.rounds[0] ** -state.kappa[0])
        return bounded(bounded(-rate * state.stride[0] * gradient) * math.exp(state.decay[k]))

    def take_small_factors(self) -> np.ndarray | None:
        return factors_of(self["decay"])
