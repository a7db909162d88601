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
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import LARGEST, LOG_CEILING, bounded
from tunefree.core.rows import entry, size
from tunefree.learners.contract import coordinate, factor, magnitude, outputs, predict, records, traits, update
from tunefree.learners.units import combine, largest_value, rescale, update_magnitudes


@traits(dimension="dimension", invariant_to_scale_of="each feature")
class Kotlowski(NamedTuple):
    """Kotlowski's Algorithm 1: invariant to the scale of each feature, with nothing to tune; it starts cautiously.

    Settings: ``alpha``, how cautiously weights grow (the theory asks for 9/8), ``epsilon``, the initial scale of the
    margins in units of their natural size (the spread of the target in regression), and ``dimension``, the number of
    features; 0, the default, if it is not known.
    """

    features: np.ndarray  # (d,) records, in place:
    #   inverse    1 / unit_i; 0 until the feature is first seen
    #   largest    largest bound |x_i| / unit_i, from 1 to 2
    #   squares    S_i^2 / unit_i^2
    coordinates: np.ndarray  # (d, K) records, in place:
    #   gradients  h_i / unit_i: minus the sum of gradients
    #   bets       unit_i w_i / factor in the latest round with feature i
    outputs: Any  # what to loop over, see contract.outputs
    rounds: np.ndarray  # () t, in place
    seen: np.ndarray  # () number of features seen, in place
    margin: np.ndarray  # () scale.margin of the latest round, in place
    alpha: float
    epsilon: float  # in units of scale.margin
    dimension: float  # d, if it is known; more features than these count as well

    @classmethod
    def create(
        cls,
        n_features: int,
        n_outputs: int = 1,
        alpha: float = 9.0 / 8.0,
        epsilon: float = 1.0,
        dimension: float = 0.0,
    ) -> Kotlowski:
        """A learner that has seen nothing."""
        statistics = records(("inverse", "largest", "squares"), ("gradients", "bets"), n_features, n_outputs)
        rounds, seen, margin = np.zeros(()), np.zeros(()), np.ones(())
        return cls(*statistics, outputs(n_outputs), rounds, seen, margin, alpha, epsilon, float(dimension))

    def blank(self, n_features: int, n_outputs: int) -> Kotlowski:
        return self.create(n_features, n_outputs)


@rescale.register(Kotlowski)
def rescale_kotlowski(state, j, shrink):
    state.features[j].squares *= shrink * shrink
    for k in range(len(state.outputs)):
        state.coordinates[j, k].gradients *= shrink


@predict.register(Kotlowski)
def predict_kotlowski(state, x, scale, margins):
    slope = 0.0
    if scale.weight > 0.0:
        slope = scale.slope
        state.seen[()] += update_magnitudes(state, x, slope)
        state.rounds[()] += 1.0
        state.margin[()] = scale.margin
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0:  # an entry of 0 must not take the place of the bet on the same feature's value
            feature = state.features[j]
            square = (min(slope * abs(x_j), LARGEST) * feature.inverse) ** 2
            feature.squares += square
            for k in range(len(state.outputs)):
                state.coordinates[j, k].bets = bet_kotlowski(state, j, k, square)
    combine(state, x, margins)
    for k in range(len(state.outputs)):
        margins[k] = bounded(margins[k] * factor(state, k))


@compiled.inline
def bet_kotlowski(state, j, k, square):
    """unit_i w_i / factor, with x_i^2 / unit_i^2 in the exponent."""
    spread, gradient = state.alpha * state.features[j].squares, state.coordinates[j, k].gradients
    if spread == 0.0:  # never seen
        return 0.0
    return gradient / spread * math.exp(min((gradient * gradient + square) / (2.0 * spread), LOG_CEILING))


@update.register(Kotlowski)
def update_kotlowski(state, x, gradient, curvature):
    for e in range(size(x)):
        j, x_j = entry(x, e)
        ratio = x_j * state.features[j].inverse
        for k in range(len(state.outputs)):
            state.coordinates[j, k].gradients -= gradient[k] * ratio


@coordinate.register(Kotlowski)
def coordinate_kotlowski(state, j, k):
    return bet_kotlowski(state, j, k, 0.0) * state.features[j].largest


@factor.register(Kotlowski)
def factor_kotlowski(state, k):
    grains = state.rounds[()] * max(state.dimension, state.seen[()])
    return state.epsilon * state.margin[()] / grains if grains > 0.0 else 0.0


@magnitude.register(Kotlowski)
def magnitude_kotlowski(state, j):
    return largest_value(state, j)
