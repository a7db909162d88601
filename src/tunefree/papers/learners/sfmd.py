"""SFMD: scale-free mirror descent.

Orabona, Crammer, Cesa-Bianchi: A generalized online mirror descent with applications to classification and regression
(Machine Learning 99, 2015), as Kempka, Kotlowski and Warmuth (ICML 2019) run it. With M_i the largest |x_i| so far,
x_t included, G_i minus the sum of gradients and d the number of features,

    w_i = eta G_i / (sqrt(d) M_i^2 sqrt(S_i)),    S_i <- S_i + (g x_i)^2 / M_i^2.

d is known where rows are of an array (``dimension``). Where they come from a stream it is not, which the paper does
not provide for: then d counts the features that had a value other than 0 so far. S_i starts at the square of the bound
on the slopes, which is 1 in the paper and here L_i, the largest bound among the rounds with feature i. So multiplying
all slopes by a constant changes nothing. The margins are in units of their natural size: when the spread of a target in
regression grows, so do all weights. M_i and G_i are kept in units of the power of two next below M_i, see
:mod:`tunefree.learners.units`.
"""

from __future__ import annotations

import math

from tunefree.core.fields import EVEN, per_coordinate, per_feature, setting, single
from tunefree.core.numbers import CEILING, LARGEST, bounded
from tunefree.learners.contract import Traits
from tunefree.learners.units import ScaledLearner, exceeds, new_unit, write_margins


class SFMD(ScaledLearner):
    """Scale-free mirror descent: invariant to the scale of each feature, but its step size is a setting.

    Settings: ``eta``, the step size in units of the natural size of a margin (the spread of the target in regression),
    and ``dimension``, the number of features; 0, the default, if it is not known.
    """

    steepest = per_feature("L_i: bound on the slopes of the rounds with feature i")
    gradients = per_coordinate("G_i / unit_i: minus the sum of gradients")
    squares = per_coordinate("S_i - L_i^2: sum of squared gradients, each over M_i^2 at its time", parity=EVEN)
    bets = per_coordinate("unit_i w_i / factor in the latest round with feature i", is_saved=False)
    seen = single("number of features seen")
    margin = single("scale.margin of the latest round", start=1.0)
    eta = setting(1.0, "step size, in units of scale.margin")
    dimension = setting(0.0, "d, if it is known; more features than these count as well")
    traits = Traits(rate="eta", dimension="dimension", invariant_to_scale_of="each feature", invariant_to_slopes=True)

    def predict(state, row, scale, margins):
        slope = 0.0
        if scale.weight > 0.0:
            update_magnitudes(state, row)
            state.margin[0] = scale.margin
            slope = min(scale.slope, CEILING)
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            if value != 0.0:
                state.steepest[j] = max(state.steepest[j], slope)
                for k in range(len(margins)):
                    state.bets[j, k] = bet(state, j, k)
        write_margins(state, row, margins)
        for k in range(len(margins)):
            margins[k] = bounded(margins[k] * factor_of_all(state))

    def update(state, row, gradient, curvature):
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            if value != 0.0:
                ratio, largest = value * state.inverse[j], state.largest[j]
                for k in range(len(gradient)):
                    step = bounded(gradient[k] * ratio)
                    state.gradients[j, k] = bounded(state.gradients[j, k] - step)
                    state.squares[j, k] = min(state.squares[j, k] + (step / largest) * (step / largest), LARGEST)

    def coordinate(state, j, k):
        return bet(state, j, k) * state.largest[j]

    def factor(state, k):
        return factor_of_all(state)


def update_magnitudes(state, row):
    """M_i <- max(M_i, |x_i|); counts features that are new."""
    for e in range(len(row.indices)):
        j, size = row.indices[e], abs(row.values[e])
        if exceeds(state, j, size):
            state.seen[0] += 1.0 if state.inverse[j] == 0.0 else 0.0
            ratio = new_unit(state, j, size)
            for k in range(state.gradients.shape[1]):
                state.gradients[j, k] *= ratio


def bet(state, j, k):
    """unit_i w_i / factor = G_i / (M_i^2 sqrt(S_i)), in units."""
    largest, steepest = state.largest[j], state.steepest[j]
    spread = largest * largest * math.sqrt(steepest * steepest + state.squares[j, k])
    return state.gradients[j, k] / spread if spread > 0.0 else 0.0


def factor_of_all(state):
    """eta / sqrt(d)."""
    d = max(state.dimension[0], state.seen[0])
    return state.eta[0] * state.margin[0] / math.sqrt(d) if d > 0.0 else 0.0
