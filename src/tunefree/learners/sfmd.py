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
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import CEILING, LARGEST, bounded
from tunefree.core.rows import entry, size
from tunefree.learners.contract import coordinate, factor, magnitude, outputs, predict, records, traits, update
from tunefree.learners.units import combine, largest_value, rescale, update_magnitudes


@traits(
    rate="eta",
    dimension="dimension",
    invariant_to_scale_of="each feature",
    invariant_to_slopes=True,
    even=("squares",),
)
class SFMD(NamedTuple):
    """Scale-free mirror descent: invariant to the scale of each feature, but its step size is a setting.

    Settings: ``eta``, the step size in units of the natural size of a margin (the spread of the target in regression),
    and ``dimension``, the number of features; 0, the default, if it is not known.
    """

    features: np.ndarray  # (d,) records, in place:
    #   inverse    1 / unit_i; 0 until the feature is first seen
    #   largest    M_i / unit_i, from 1 to 2
    #   steepest   L_i: bound on the slopes of the rounds with feature i
    coordinates: np.ndarray  # (d, K) records, in place:
    #   gradients  G_i / unit_i: minus the sum of gradients
    #   squares    S_i - L_i^2: sum of squared gradients, each over M_i^2 at its time
    #   bets       unit_i w_i / factor in the latest round with feature i
    outputs: Any  # what to loop over, see contract.outputs
    seen: np.ndarray  # () number of features seen, in place
    margin: np.ndarray  # () scale.margin of the latest round, in place
    eta: float  # step size in units of scale.margin
    dimension: float  # d, if it is known; more features than these count as well

    @classmethod
    def create(cls, n_features: int, n_outputs: int = 1, eta: float = 1.0, dimension: float = 0.0) -> SFMD:
        """A learner that has seen nothing."""
        names = ("inverse", "largest", "steepest"), ("gradients", "squares", "bets")
        statistics = records(*names, n_features, n_outputs)
        return cls(*statistics, outputs(n_outputs), np.zeros(()), np.ones(()), eta, float(dimension))

    def blank(self, n_features: int, n_outputs: int) -> SFMD:
        return self.create(n_features, n_outputs)


@rescale.register(SFMD)
def rescale_sfmd(state, j, shrink):
    for k in range(len(state.outputs)):
        state.coordinates[j, k].gradients *= shrink


@predict.register(SFMD)
def predict_sfmd(state, x, scale, margins):
    slope = 0.0
    if scale.weight > 0.0:
        state.seen[()] += update_magnitudes(state, x, 1.0)
        state.margin[()] = scale.margin
        slope = min(scale.slope, CEILING)
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0:
            feature = state.features[j]
            feature.steepest = max(feature.steepest, slope)
            for k in range(len(state.outputs)):
                state.coordinates[j, k].bets = bet_sfmd(feature, state.coordinates[j, k])
    combine(state, x, margins)
    for k in range(len(state.outputs)):
        margins[k] = bounded(margins[k] * factor(state, k))


@compiled.inline
def bet_sfmd(feature, own):
    spread = feature.largest * feature.largest * math.sqrt(feature.steepest * feature.steepest + own.squares)
    return own.gradients / spread if spread > 0.0 else 0.0


@update.register(SFMD)
def update_sfmd(state, x, gradient, curvature):
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0:
            feature = state.features[j]
            ratio = x_j * feature.inverse
            for k in range(len(state.outputs)):
                own, step = state.coordinates[j, k], bounded(gradient[k] * ratio)
                own.gradients = bounded(own.gradients - step)
                share = step / feature.largest
                own.squares = min(own.squares + share * share, LARGEST)


@coordinate.register(SFMD)
def coordinate_sfmd(state, j, k):
    return bet_sfmd(state.features[j], state.coordinates[j, k]) * state.features[j].largest


@factor.register(SFMD)
def factor_sfmd(state, k):
    d = max(state.dimension, state.seen[()])
    return state.eta * state.margin[()] / math.sqrt(d) if d > 0.0 else 0.0


@magnitude.register(SFMD)
def magnitude_sfmd(state, j):
    return largest_value(state, j)
