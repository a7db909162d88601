"""The coordinate-wise scale-invariant algorithm of Kotlowski.

Kotlowski: Scale-invariant unconstrained online learning (ALT 2017), Algorithm 1, as Kempka, Kotlowski and Warmuth
(ICML 2019) run it. With S_i^2 the sum of x_i^2, x_t included, h_i minus the sum of gradients and d the number of
features,

    w_i = epsilon / (t d) h_i / (alpha S_i^2) exp((h_i^2 + x_i^2) / (2 alpha S_i^2)).

The paper assumes slopes of at most 1. Here ``scale.slope`` is known to bound the slope of a round, and the algorithm is
run on g/bound and bound * x, whose product is the gradient as it is, so only S_i^2 changes, and x_i in the exponent. d
is known where rows are of an array (``dimension``). Where they come from a stream it is not, which the paper does not
provide for: then d counts the features that had a value other than 0 so far.

The present row is a part of the weights. Those of no row in particular have 0 for x_i in the exponent, and the present
t, d and S_i^2. h_i and S_i^2 are kept in units of the power of two next below the largest bound * |x_i|, see
:mod:`tunefree.learners.units`.
"""

from __future__ import annotations

import math

from tunefree.core.fields import per_coordinate, per_feature, setting, single
from tunefree.core.numbers import LARGEST, LOG_CEILING, bounded
from tunefree.learners.contract import Traits
from tunefree.learners.units import ScaledLearner, exceeds, new_unit, write_margins


class Kotlowski(ScaledLearner):
    """Kotlowski's Algorithm 1: invariant to the scale of each feature, with nothing to tune; it starts cautiously.

    Settings: ``alpha``, how cautiously weights grow (the theory asks for 9/8), ``epsilon``, the initial scale of the
    margins in units of their natural size (the spread of the target in regression), and ``dimension``, the number of
    features; 0, the default, if it is not known.
    """

    squares = per_feature("S_i^2 / unit_i^2")
    gradients = per_coordinate("h_i / unit_i: minus the sum of gradients")
    bets = per_coordinate("unit_i w_i / factor in the latest round with feature i", is_saved=False)
    rounds = single("t")
    seen = single("number of features seen")
    margin = single("scale.margin of the latest round", start=1.0)
    alpha = setting(9.0 / 8.0, "how cautiously weights grow")
    epsilon = setting(1.0, "initial scale of the margins, in units of scale.margin")
    dimension = setting(0.0, "d, if it is known; more features than these count as well")
    traits = Traits(dimension="dimension", invariant_to_scale_of="each feature")

    def predict(state, row, scale, margins):
        slope = 0.0
        if scale.weight > 0.0:
            slope = scale.slope
            update_magnitudes(state, row, slope)
            state.rounds[0] += 1.0
            state.margin[0] = scale.margin
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            if value != 0.0:  # an entry of 0 must not take the place of the bet on the same feature's value
                ratio = min(slope * abs(value), LARGEST) * state.inverse[j]
                state.squares[j] += ratio * ratio
                for k in range(len(margins)):
                    state.bets[j, k] = bet(state, j, k, ratio * ratio)
        write_margins(state, row, margins)
        for k in range(len(margins)):
            margins[k] = bounded(margins[k] * factor_of_all(state))

    def update(state, row, gradient, curvature):
        for e in range(len(row.indices)):
            j = row.indices[e]
            ratio = row.values[e] * state.inverse[j]
            for k in range(len(gradient)):
                state.gradients[j, k] -= gradient[k] * ratio

    def coordinate(state, j, k):
        return bet(state, j, k, 0.0) * state.largest[j]

    def factor(state, k):
        return factor_of_all(state)


def update_magnitudes(state, row, slope):
    """Let the largest bound * |x_i| of all features of a row grow; counts features that are new."""
    for e in range(len(row.indices)):
        j, size = row.indices[e], slope * abs(row.values[e])
        if exceeds(state, j, size):
            state.seen[0] += 1.0 if state.inverse[j] == 0.0 else 0.0
            ratio = new_unit(state, j, size)
            state.squares[j] *= ratio * ratio
            for k in range(state.gradients.shape[1]):
                state.gradients[j, k] *= ratio


def bet(state, j, k, square):
    """unit_i w_i / factor, with x_i^2 / unit_i^2 in the exponent."""
    spread, gradient = state.alpha[0] * state.squares[j], state.gradients[j, k]
    if spread == 0.0:  # never seen
        return 0.0
    return gradient / spread * math.exp(min((gradient * gradient + square) / (2.0 * spread), LOG_CEILING))


def factor_of_all(state):
    """epsilon / (t d)."""
    parts = state.rounds[0] * max(state.dimension[0], state.seen[0])
    return state.epsilon[0] * state.margin[0] / parts if parts > 0.0 else 0.0
