"""Adam: steps along decayed means of the gradients, over the root of decayed means of their squares.

Kingma, Ba: Adam: a method for stochastic optimization (ICLR 2015), Algorithm 1:

    m <- beta1 m + (1 - beta1) g_i,    v <- beta2 v + (1 - beta2) g_i^2,
    w_i <- w_i - eta (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon)    with g_i = g x_i.

As published every weight moves in every round, also where the gradient is 0. Here a weight is brought up to date only
when its feature is seen or it is read: the steps it has missed are taken one after the other, with the moments and the
bias corrections of their rounds. They shrink at least as fast as (beta1 / sqrt(beta2))^n, so that after some hundreds
none changes a weight any more, and the others are left out.

The rate is in units of ``scale.margin``, for missed steps that at the time they are taken.
"""

from __future__ import annotations

import math

from tunefree.core.errors import ModelError
from tunefree.core.fields import EVEN, per_coordinate, per_feature, setting, single
from tunefree.core.numbers import bounded
from tunefree.learners.adagrad import PlainLearner, write_margins
from tunefree.learners.contract import Traits


class Adam(PlainLearner):
    """Adam, with every weight moving in every round.

    Its settings are those published, with their defaults: ``eta``, the rate, 0.001; ``beta1`` 0.9 and ``beta2`` 0.999,
    which say how slowly the moments decay; ``epsilon`` 1e-8. ``beta1**2`` must not be above ``beta2``.
    """

    since = per_feature("the round in which the feature was last learned")
    weights = per_coordinate("w_i when the feature was last seen or read", is_saved=False)
    learned = per_coordinate("w_i at the end of round since")
    first = per_coordinate("m at the end of round since")
    root = per_coordinate("sqrt(v) at the end of round since", parity=EVEN)
    rounds = single("t")
    margin = single("scale.margin of the latest round")
    eta = setting(0.001, "rate, in units of scale.margin")
    beta1 = setting(0.9, "decay of the first moment")
    beta2 = setting(0.999, "decay of the second moment")
    epsilon = setting(1e-8, "keeps the denominator above 0")
    traits = Traits(rate="eta", can_be_averaged=False)

    def __init__(self, n_features: int, n_outputs: int = 1, **settings: float) -> None:
        super().__init__(n_features, n_outputs, **settings)
        beta1, beta2, epsilon = (self.settings[name] for name in ("beta1", "beta2", "epsilon"))
        if not (beta1 >= 0.0 and beta1**2 <= beta2 < 1.0):
            raise ModelError(
                f"adam: beta1 = {beta1} and beta2 = {beta2}; they must be at least 0 and below 1, and beta1^2 at most "
                "beta2, or a weight would run away while its feature is not seen"
            )
        if not epsilon > 0.0:
            raise ModelError(f"adam: epsilon must be above 0, not {epsilon}")

    def predict(state, row, scale, margins):
        state.margin[0] = scale.margin
        for e in range(len(row.indices)):
            if row.values[e] != 0.0:
                catch_up(state, row.indices[e], len(margins))
        write_margins(state, row, margins)

    def update(state, row, gradient, curvature):
        state.rounds[0] += 1.0
        rounds, beta1, beta2 = state.rounds[0], state.beta1[0], state.beta2[0]
        rate, offset = terms(state, beta1**rounds, beta2**rounds)
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            if value != 0.0:
                decay1, decay2 = beta1, beta2
                passed = rounds - state.since[j]
                if passed > 1.0:
                    decay1, decay2 = decay1**passed, decay2**passed
                state.since[j] = rounds
                for k in range(len(gradient)):
                    slope, root = bounded(gradient[k] * value), state.root[j, k]
                    first = decay1 * state.first[j, k] + (1.0 - beta1) * slope
                    root = math.sqrt(decay2 * (root * root) + (1.0 - beta2) * (slope * slope))
                    weight = bounded(state.weights[j, k] - rate * first / (root + offset))
                    state.first[j, k], state.root[j, k] = first, root
                    state.weights[j, k] = state.learned[j, k] = weight

    def coordinate(state, j, k):
        catch_up(state, j, state.weights.shape[1])
        return state.weights[j, k]


def terms(state, power1, power2):
    """The step of a round is the first term times m, over sqrt(v) plus the second; powers are beta1^t and beta2^t.

    Both sides of the fraction are multiplied by sqrt(1 - beta2^t), so that the step of an output costs one division.
    """
    correction = math.sqrt(1.0 - power2)
    return state.eta[0] * state.margin[0] * (correction / (1.0 - power1)), state.epsilon[0] * correction


def catch_up(state, j, n_outputs):
    """Bring the weights of feature j up to date, after all rounds so far, those missed included.

    In a missed round m and sqrt(v) of all outputs decay alike.
    """
    for k in range(n_outputs):
        state.weights[j, k] = state.learned[j, k]
    since, beta1, beta2 = state.since[j], state.beta1[0], state.beta2[0]
    missed = int(state.rounds[0] - since)
    if missed == 0:  # most often: the powers would cost more than all the rest
        return
    decay1, decay2 = 1.0, 1.0  # beta1^n and sqrt(beta2)^n after n missed rounds
    power1, power2, root2 = beta1**since, beta2**since, math.sqrt(beta2)
    for _ in range(missed):
        decay1, decay2 = decay1 * beta1, decay2 * root2
        power1, power2 = power1 * beta1, power2 * beta2
        rate, offset = terms(state, power1, power2)
        has_moved = False
        for k in range(n_outputs):
            before = state.weights[j, k]
            step = rate * decay1 * state.first[j, k] / (state.root[j, k] * decay2 + offset)
            state.weights[j, k] = bounded(before - step)
            has_moved |= state.weights[j, k] != before
        if not has_moved:
            return
