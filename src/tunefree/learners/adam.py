"""Adam: steps along decayed means of the gradients, over the root of decayed means of their squares.

Kingma, Ba: Adam: a method for stochastic optimization (ICLR 2015), Algorithm 1:

    m <- beta1 m + (1 - beta1) g_i,    v <- beta2 v + (1 - beta2) g_i^2,
    w_i <- w_i - eta (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)    with g_i = g x_i.

As published every weight moves in every round, also where the gradient is 0. Here a weight is brought up to date only
when its feature is seen or it is read: the steps it has missed are made one after the other, with the moments and the
bias corrections of their rounds. They shrink at least as fast as (beta1 / sqrt(beta2))^n, so that after some hundreds
none changes a weight any more, and the others are left out.

The rate is in units of ``scale.margin``, for missed steps that at the time they are made.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.errors import ModelError
from tunefree.core.numbers import bounded
from tunefree.core.rows import entry, size
from tunefree.learners.contract import coordinate, factor, magnitude, outputs, predict, records, traits, update
from tunefree.learners.plain import write_margins


@traits(rate="eta", can_be_averaged=False, even=("root",))
class Adam(NamedTuple):
    """Adam, with every weight moving in every round.

    Its settings are those published, with their defaults: ``eta``, the rate, 0.001; ``beta1`` 0.9 and ``beta2`` 0.999,
    which say how slowly the moments decay; ``epsilon`` 1e-8. ``beta1**2`` must not be above ``beta2``.
    """

    features: np.ndarray  # (d,) records, in place:
    #   seen       1 once the feature has been seen, else 0
    #   since      the round in which the feature was last learned
    coordinates: np.ndarray  # (d, K) records, in place:
    #   weights    w_i when the feature was last seen, whether learned or not
    #   learned    w_i at the end of round since
    #   first      m at the end of round since
    #   root       sqrt(v) at the end of round since
    outputs: Any  # what to loop over, see contract.outputs
    rounds: np.ndarray  # () t, in place
    margin: np.ndarray  # () scale.margin of the latest round, in place
    eta: float  # in units of scale.margin
    beta1: float
    beta2: float
    epsilon: float

    @classmethod
    def create(
        cls,
        n_features: int,
        n_outputs: int = 1,
        eta: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
    ) -> Adam:
        """A learner that has seen nothing."""
        if not (beta1 >= 0.0 and beta1**2 <= beta2 < 1.0):
            raise ModelError(
                f"adam: beta1 = {beta1} and beta2 = {beta2}; they must be at least 0 and below 1, and beta1^2 at most "
                "beta2, or a weight would run away while its feature is not seen"
            )
        if not epsilon > 0.0:
            raise ModelError(f"adam: epsilon must be above 0, not {epsilon}")
        statistics = records(("seen", "since"), ("weights", "learned", "first", "root"), n_features, n_outputs)
        return cls(*statistics, outputs(n_outputs), np.zeros(()), np.zeros(()), eta, beta1, beta2, epsilon)

    def blank(self, n_features: int, n_outputs: int) -> Adam:
        return self.create(n_features, n_outputs)


@compiled.inline
def catch_up(state, j, first, weights):
    """Write the weights of feature j, for outputs from ``first`` on, after all rounds so far, those missed included.

    In a missed round m and sqrt(v) of all outputs decay alike. With both sides of the fraction multiplied by
    sqrt(1 - beta2^t), the step of an output costs one division.
    """
    for k in range(len(weights)):
        weights[k] = state.coordinates[j, first + k].learned
    since = state.features[j].since
    missed = int(state.rounds[()] - since)
    if missed == 0:  # most often: the powers would cost more than all the rest
        return
    decay1, decay2 = 1.0, 1.0  # beta1^n and sqrt(beta2)^n after n missed rounds
    power1, power2, root2 = state.beta1**since, state.beta2**since, math.sqrt(state.beta2)
    for _ in range(missed):
        decay1, decay2 = decay1 * state.beta1, decay2 * root2
        power1, power2 = power1 * state.beta1, power2 * state.beta2
        rate, offset = terms(state, power1, power2)
        rate, moved = rate * decay1, False
        for k in range(len(weights)):
            own, before = state.coordinates[j, first + k], weights[k]
            weights[k] = bounded(before - rate * own.first / (own.root * decay2 + offset))
            moved |= weights[k] != before
        if not moved:
            break


@compiled.inline
def terms(state, power1, power2):
    """The step of a round is the first term times m, over sqrt(v) plus the second; powers are beta1^t and beta2^t."""
    correction = math.sqrt(1.0 - power2)
    return state.eta * state.margin[()] * (correction / (1.0 - power1)), state.epsilon * correction


@predict.register(Adam)
def predict_adam(state, x, scale, margins):
    state.margin[()] = scale.margin
    weights = np.empty(len(state.outputs))
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0:
            catch_up(state, j, 0, weights)
            for k in range(len(weights)):
                state.coordinates[j, k].weights = weights[k]
    write_margins(state, x, margins)


@update.register(Adam)
def update_adam(state, x, gradient, curvature):
    state.rounds[()] += 1.0
    rounds = state.rounds[()]
    rate, offset = terms(state, state.beta1**rounds, state.beta2**rounds)
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0:
            decay1, decay2 = state.beta1, state.beta2
            passed = rounds - state.features[j].since
            if passed > 1.0:
                decay1, decay2 = decay1**passed, decay2**passed
            state.features[j].since = rounds
            for k in range(len(state.outputs)):
                own, steep = state.coordinates[j, k], bounded(gradient[k] * x_j)
                own.first = decay1 * own.first + (1.0 - state.beta1) * steep
                own.root = math.sqrt(decay2 * (own.root * own.root) + (1.0 - state.beta2) * (steep * steep))
                own.weights = bounded(own.weights - rate * own.first / (own.root + offset))
                own.learned = own.weights


@coordinate.register(Adam)
def coordinate_adam(state, j, k):
    weights = np.empty(1)
    catch_up(state, j, k, weights)
    return weights[0]


@factor.register(Adam)
def factor_adam(state, k):
    return 1.0


@magnitude.register(Adam)
def magnitude_adam(state, j):
    return state.features[j].seen
