"""CoCoB: continuous coin betting, the variant that trains networks and the original.

Orabona, Tommasi: Training deep networks without learning rates through coin betting (NIPS 2017), Algorithm 2
(COCOB-Backprop) and Algorithm 1 (COCOB), with initial weights of 0. Each coordinate bets on c = -g x_i, with A_i the
sum of |c|, theta_i the sum of c and R_i the reward, the sum of c w_i:

    Algorithm 1:  w_i = (L_i + R_i) (2 sigmoid(2 theta_i / (A_i + L_i)) - 1) / L_i,
    Algorithm 2:  w_i = (L_i + R_i) theta_i / (L_i max(A_i + L_i, alpha L_i)).

Algorithm 1 is given L_i, a bound on |c|: here the largest bound on a round's slope times |x_i| so far. Algorithm 2
takes the largest |c| so far, from 1e-8 on, and does not let R_i fall below 0.

The initial wealth L_i makes the first weights a number near 1 / alpha (or 1), whatever the scale of the feature, so
neither is invariant to it. It is multiplied by the natural size of a margin, which in regression follows the spread of
the target; Algorithm 2 learns of a larger one when the feature is next learned.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import CEILING, bounded
from tunefree.core.rows import entry, size
from tunefree.learners.contract import coordinate, factor, magnitude, matters, outputs, predict, records, traits, update

SMALLEST_BOUND = 1e-8  # where L_i starts in Algorithm 2


@traits(can_replay=True, even=("largest", "slopes", "rewards"), odd=("gradients", "bets"), halved=("gradients", "bets"))
class CoCoB(NamedTuple):
    """COCOB-Backprop (Algorithm 2): learns fast once features are near 1 in size, without a guarantee.

    Settings: ``alpha``; the first weights are near 1 / alpha.
    """

    features: np.ndarray  # (d,) records, empty
    coordinates: np.ndarray  # (d, K) records, in place:
    #   largest    L_i; 0 until the feature is first seen
    #   slopes     A_i: sum of |g x_i|
    #   gradients  theta_i: minus the sum of gradients
    #   rewards    R_i
    #   bets       w_i
    outputs: Any  # what to loop over, see contract.outputs
    margin: np.ndarray  # () scale.margin of the latest round, in place
    alpha: float

    @classmethod
    def create(cls, n_features: int, n_outputs: int = 1, alpha: float = 100.0) -> CoCoB:
        """A learner that has seen nothing."""
        statistics = records((), ("largest", "slopes", "gradients", "rewards", "bets"), n_features, n_outputs)
        return cls(*statistics, outputs(n_outputs), np.ones(()), alpha)

    def blank(self, n_features: int, n_outputs: int) -> CoCoB:
        return self.create(n_features, n_outputs)


@traits(invariant_to_slopes=True, can_replay=True, even=("slopes", "rewards"))
class CoCoBOriginal(NamedTuple):
    """COCOB (Algorithm 1), the original with a bound on its regret; it has no settings."""

    features: np.ndarray  # (d,) records, in place:
    #   largest    L_i; 0 until the feature is first seen
    #   wealth_scale  scale.margin that the initial wealth is in units of
    coordinates: np.ndarray  # (d, K) records, in place:
    #   slopes     A_i: sum of |g x_i|
    #   gradients  theta_i: minus the sum of gradients
    #   rewards    R_i
    #   bets       w_i in the latest round with feature i
    outputs: Any  # what to loop over, see contract.outputs

    @classmethod
    def create(cls, n_features: int, n_outputs: int = 1) -> CoCoBOriginal:
        """A learner that has seen nothing."""
        names = ("largest", "wealth_scale"), ("slopes", "gradients", "rewards", "bets")
        return cls(*records(*names, n_features, n_outputs), outputs(n_outputs))

    def blank(self, n_features: int, n_outputs: int) -> CoCoBOriginal:
        return self.create(n_features, n_outputs)


@compiled.inline
def combine(state, x, margins):
    """The margins of the weights in ``bets``."""
    for k in range(len(state.outputs)):
        margins[k] = 0.0
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if matters(state, x_j):
            for k in range(len(state.outputs)):
                margins[k] += state.coordinates[j, k].bets * bounded(x_j)
    for k in range(len(state.outputs)):
        margins[k] = bounded(margins[k])


@compiled.inline
def toss(own, coin):
    """Add the outcome c of the bet to the sums."""
    own.slopes = min(own.slopes + abs(coin), CEILING)
    own.gradients = bounded(own.gradients + coin)
    own.rewards = bounded(own.rewards + coin * own.bets)


@predict.register(CoCoBOriginal)
def predict_original(state, x, scale, margins):
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0:
            feature = state.features[j]
            feature.largest = max(feature.largest, min(scale.slope * abs(bounded(x_j)), CEILING))
            feature.wealth_scale = max(feature.wealth_scale, scale.margin)
            for k in range(len(state.outputs)):
                state.coordinates[j, k].bets = bet_original(feature, state.coordinates[j, k])
    combine(state, x, margins)


@compiled.inline
def bet_original(feature, own):
    if feature.largest == 0.0:  # never seen
        return 0.0
    wealth = max(feature.wealth_scale * feature.largest + own.rewards, 0.0)
    # 2 sigmoid(2 z) - 1 = tanh(z)
    return bounded(math.tanh(own.gradients / (own.slopes + feature.largest)) * (wealth / feature.largest))


@update.register(CoCoBOriginal)
def update_original(state, x, gradient, curvature):
    for e in range(size(x)):
        j, x_j = entry(x, e)
        for k in range(len(state.outputs)):
            toss(state.coordinates[j, k], bounded(-gradient[k] * bounded(x_j)))


@coordinate.register(CoCoBOriginal)
def coordinate_original(state, j, k):
    return bet_original(state.features[j], state.coordinates[j, k])


@predict.register(CoCoB)
def predict_cocob(state, x, scale, margins):
    state.margin[()] = scale.margin
    combine(state, x, margins)


@update.register(CoCoB)
def update_cocob(state, x, gradient, curvature):
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0:
            for k in range(len(state.outputs)):
                own, coin = state.coordinates[j, k], bounded(-gradient[k] * bounded(x_j))
                own.largest = max(own.largest, abs(coin), SMALLEST_BOUND)
                toss(own, coin)
                own.rewards = max(own.rewards, 0.0)
                share = own.gradients / max(own.slopes + own.largest, state.alpha * own.largest)
                own.bets = bounded(share * ((state.margin[()] * own.largest + own.rewards) / own.largest))


@coordinate.register(CoCoB)
def coordinate_cocob(state, j, k):
    return state.coordinates[j, k].bets


for learner in (CoCoB, CoCoBOriginal):

    @factor.register(learner)
    def factor_one(state, k):
        return 1.0

    @magnitude.register(learner)
    def magnitude_one(state, j):
        return 1.0
