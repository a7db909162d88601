"""COCOB, the original of continuous coin betting, which has a bound on its regret.

Orabona, Tommasi: Training deep networks without learning rates through coin betting (NIPS 2017), Algorithm 1, with
initial weights of 0. With A_i, theta_i, R_i and c as in :mod:`tunefree.learners.cocob`,

    w_i = (L_i + R_i) (2 sigmoid(2 theta_i / (A_i + L_i)) - 1) / L_i.

L_i is a bound on |c|: the largest bound on a round's slope times |x_i| so far. The first weights are a number near 1,
whatever the scale of the feature, so it is not invariant to it.
"""

from __future__ import annotations

import math

from tunefree.core.fields import EVEN, per_coordinate, per_feature
from tunefree.core.numbers import CEILING, bounded
from tunefree.learners.cocob import toss, write_margins
from tunefree.learners.contract import Learner, Traits


class CoCoBOriginal(Learner):
    """COCOB (Algorithm 1), the original with a bound on its regret; it has no settings."""

    largest = per_feature("L_i; 0 until the feature is first seen")
    wealth_scale = per_feature("scale.margin that the initial wealth is in units of")
    slopes = per_coordinate("A_i: sum of |g x_i|", parity=EVEN)
    gradients = per_coordinate("theta_i: minus the sum of gradients")
    rewards = per_coordinate("R_i", parity=EVEN)
    bets = per_coordinate("w_i in the latest round with feature i", is_saved=False)
    traits = Traits(can_replay=True)

    def predict(state, row, scale, margins):
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            if value != 0.0:
                state.largest[j] = max(state.largest[j], min(scale.slope * abs(bounded(value)), CEILING))
                state.wealth_scale[j] = max(state.wealth_scale[j], scale.margin)
                for k in range(len(margins)):
                    state.bets[j, k] = bet(state, j, k)
        write_margins(state, row, margins)

    def update(state, row, gradient, curvature):
        for e in range(len(row.indices)):
            j, value = row.indices[e], bounded(row.values[e])
            for k in range(len(gradient)):
                toss(state, j, k, bounded(-gradient[k] * value))

    def coordinate(state, j, k):
        return bet(state, j, k)

    def magnitude(state, j):
        return 1.0


def bet(state, j, k):
    """w_i = (L_i + R_i) (2 sigmoid(2 theta_i / (A_i + L_i)) - 1) / L_i, where 2 sigmoid(2 z) - 1 = tanh(z)."""
    largest = state.largest[j]
    if largest == 0.0:  # never seen
        return 0.0
    wealth = max(state.wealth_scale[j] * largest + state.rewards[j, k], 0.0)
    return bounded(math.tanh(state.gradients[j, k] / (state.slopes[j, k] + largest)) * (wealth / largest))
