"""NAG: normalized adaptive gradient descent.

Ross, Mineiro, Langford: Normalized online learning (UAI 2013), the algorithm NAG. In each round, with s_i the largest
|x_i| so far and g the slope of the loss,

    where |x_i| > s_i:  w_i <- w_i s_i / |x_i|,  s_i <- |x_i|;
    predict sum_i w_i x_i;
    N <- N + sum_i x_i^2 / s_i^2;
    G_i <- G_i + (g x_i)^2,  w_i <- w_i - eta sqrt(t / N) g x_i / (s_i sqrt(G_i)).

Rounds count in t and N by their weight. Multiplying all slopes by a constant changes nothing. Steps are in units of the
natural size of a margin in their round, which for regression grows with the spread of the target. s_i, G_i and w_i are
kept in units of the power of two next below s_i, see :mod:`tunefree.learners.units`.
"""

from __future__ import annotations

import math

from tunefree.compiled.prefetching import fetch_line, prefetch
from tunefree.core.fields import EVEN, ODD, per_coordinate, setting, single
from tunefree.core.numbers import CEILING, LARGEST, bounded
from tunefree.learners.contract import Traits
from tunefree.learners.units import ScaledLearner, exceeds, new_unit, write_margins


class NAG(ScaledLearner):
    """Normalized adaptive gradient descent: invariant to the scale of each feature, but its step size is a setting."""

    squares = per_coordinate("G_i / unit_i^2: sum of squared gradients", parity=EVEN)
    bets = per_coordinate("unit_i w_i", parity=ODD, is_halved=True)
    rounds = single("t: sum of the rounds' weights")
    norms = single("N: sum of the squared norms of the normalized rows, each times its weight")
    margin = single("scale.margin of the latest round", start=1.0)
    left_out = single("entries that are left out of the row to come", is_saved=False)
    eta = setting(0.5, "step size, in units of scale.margin")
    traits = Traits(rate="eta", invariant_to_scale_of="each feature", can_replay=True)

    def predict(state, row, scale, margins):
        if scale.weight > 0.0:
            update_magnitudes(state, row)
            weight = min(scale.weight, CEILING)
            state.rounds[0] += weight
            state.norms[0] += weight * squared_norm(state, row)
            state.left_out[0] = 0.0
            state.margin[0] = scale.margin
        write_margins(state, row, margins)

    def update(state, row, gradient, curvature):
        if state.norms[0] > 0.0:
            descend(state, row, gradient, rate_of(state))

    def fetch(state, j):
        prefetch(state.inverse, j, 0)
        fetch_line(state.squares, 2, j)

    def coordinate(state, j, k):
        return state.bets[j, k] * state.largest[j]

    def leave_out(state, scale, n_features):
        state.left_out[0] = n_features if scale.weight > 0.0 else 0.0

    def shared(state):
        return rate_of(state)

    def replay(state, row, scale, past, margins, gradient, curvature):
        update_magnitudes(state, row)
        descend(state, row, gradient, past)


def update_magnitudes(state, row):
    """Where |x_i| > s_i:  w_i <- w_i s_i / |x_i|,  s_i <- |x_i|; so s_i w_i stays as it is."""
    for e in range(len(row.indices)):
        j, size = row.indices[e], abs(row.values[e])
        if exceeds(state, j, size):
            before = state.largest[j]
            ratio = new_unit(state, j, size)
            for k in range(state.bets.shape[1]):
                state.squares[j, k] *= ratio * ratio
                state.bets[j, k] *= before / state.largest[j]


def squared_norm(state, row):
    """sum_i x_i^2 / s_i^2 of a row whose magnitudes are up to date, with the entries that are left out of it.

    Terms that are 1, such as those of new features, are counted, so that it makes no difference which are left out.
    """
    total, ones = 0.0, state.left_out[0]
    for e in range(len(row.indices)):
        j, value = row.indices[e], row.values[e]
        if value != 0.0:
            ratio = value * state.inverse[j] / state.largest[j]
            term = ratio * ratio
            ones += 1.0 if term == 1.0 else 0.0
            total += 0.0 if term == 1.0 else term
    return total + ones


def rate_of(state):
    """eta sqrt(t / N)."""
    if state.norms[0] > 0.0:
        return state.eta[0] * state.margin[0] * bounded(math.sqrt(state.rounds[0] / state.norms[0]))
    return 0.0


def descend(state, row, gradient, rate):
    """G_i <- G_i + (g x_i)^2,  w_i <- w_i - rate g x_i / (s_i sqrt(G_i))."""
    for e in range(len(row.indices)):
        j, value = row.indices[e], row.values[e]
        if len(gradient) == 1 or value != 0.0:
            ratio, largest = value * state.inverse[j], state.largest[j]
            for k in range(len(gradient)):
                slope = bounded(gradient[k] * ratio)
                state.squares[j, k] = min(state.squares[j, k] + slope * slope, LARGEST)
                spread = largest * math.sqrt(state.squares[j, k])
                if spread > 0.0:
                    state.bets[j, k] = bounded(state.bets[j, k] - rate * (slope / spread))
