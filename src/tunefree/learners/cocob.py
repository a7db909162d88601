"""CoCoB: continuous coin betting, the variant that trains networks.

Orabona, Tommasi: Training deep networks without learning rates through coin betting (NIPS 2017), Algorithm 2
(COCOB-Backprop), with initial weights of 0. Each coordinate bets on c = -g x_i, with A_i the sum of |c|, theta_i the
sum of c and R_i the reward, the sum of c w_i, which does not fall below 0. L_i is the largest |c| so far, from 1e-8 on:

    w_i = (L_i + R_i) theta_i / (L_i max(A_i + L_i, alpha L_i)).

The initial wealth L_i makes the first weights about 1 / alpha, whatever the scale of the feature, so the learner is not
invariant to this scale. The wealth is multiplied by the natural size of a margin, which in regression follows the
spread of the target. A coordinate takes over a larger size when its feature is next learned.
"""

from __future__ import annotations

from tunefree.compiled.prefetching import fetch_line
from tunefree.core.fields import EVEN, ODD, per_coordinate, setting, single
from tunefree.core.numbers import CEILING, bounded
from tunefree.learners.contract import Learner, Traits

SMALLEST_BOUND = 1e-8  # initial value of L_i


def write_margins(state, row, margins):
    """The margins of the weights in ``bets``."""
    for k in range(len(margins)):
        margins[k] = 0.0
    for e in range(len(row.indices)):
        j, value = row.indices[e], bounded(row.values[e])
        if len(margins) == 1 or value != 0.0:
            for k in range(len(margins)):
                margins[k] += state.bets[j, k] * value
    for k in range(len(margins)):
        margins[k] = bounded(margins[k])


def toss(state, j, k, coin):
    """A_i <- A_i + |c|,  theta_i <- theta_i + c,  R_i <- R_i + c w_i."""
    state.slopes[j, k] = min(state.slopes[j, k] + abs(coin), CEILING)
    state.gradients[j, k] = bounded(state.gradients[j, k] + coin)
    state.rewards[j, k] = bounded(state.rewards[j, k] + coin * state.bets[j, k])


class CoCoB(Learner):
    """COCOB-Backprop (Algorithm 2): learns fast once features are near 1 in size, without a guarantee."""

    largest = per_coordinate("L_i; 0 until the feature is first seen", parity=EVEN)
    slopes = per_coordinate("A_i: sum of |g x_i|", parity=EVEN)
    gradients = per_coordinate("theta_i: minus the sum of gradients", parity=ODD, is_halved=True)
    rewards = per_coordinate("R_i", parity=EVEN)
    bets = per_coordinate("w_i", parity=ODD, is_halved=True)
    margin = single("scale.margin of the latest round", start=1.0)
    alpha = setting(100.0, "the first weights are near 1 / alpha")
    traits = Traits(can_replay=True)

    def predict(state, row, scale, margins):
        state.margin[0] = scale.margin
        write_margins(state, row, margins)

    def update(state, row, gradient, curvature):
        alpha, margin = state.alpha[0], state.margin[0]
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            if value != 0.0:
                for k in range(len(gradient)):
                    coin = bounded(-gradient[k] * bounded(value))  # c = -g x_i
                    largest = max(state.largest[j, k], abs(coin), SMALLEST_BOUND)  # L_i <- max(L_i, |c|)
                    state.largest[j, k] = largest
                    toss(state, j, k, coin)
                    state.rewards[j, k] = max(state.rewards[j, k], 0.0)
                    # w_i = (L_i + R_i) theta_i / (L_i max(A_i + L_i, alpha L_i))
                    share = state.gradients[j, k] / max(state.slopes[j, k] + largest, alpha * largest)
                    wealth = margin * largest + state.rewards[j, k]
                    state.bets[j, k] = bounded(share * (wealth / largest))

    def fetch(state, j):
        fetch_line(state.largest, 5, j)

    def coordinate(state, j, k):
        return state.bets[j, k]

    def magnitude(state, j):
        return 1.0
