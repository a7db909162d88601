"""PiSTOL for linear models, and one copy of it a coordinate.

Orabona: Simultaneous model selection and optimization through parameter-free stochastic learning (NIPS 2014),
Algorithm 3 with the linear kernel, and Appendix A.

The paper assumes ||x_t|| <= 1 and slopes of at most L. Here M = max bound_t ||x_t|| with ``bound_t`` the known bound on
the round's slope, and the paper's algorithm with L = 1 is run on bound * x / M; written out in the data's own scale,

    alpha_{t-1} = a M (M + sum |s| ||x||),    w_t = g_{t-1} (b / alpha_{t-1}) exp(||g_{t-1}||^2 / (2 alpha_{t-1})).

Slopes come divided by the loss's Lipschitz constant L: a and b here are the paper's a / L and b / L. The theorem asks
for a of at least 2.25, where its bound is beyond all numbers (b exp(1652) ln T); the default is near the least bound,
see :func:`tunefree.theory.pistol_parameter`.
The exponential is taken of the sum of logarithms, so it cannot overflow before the weight itself would.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.coordinates import row_of_outputs
from tunefree.core.numbers import CEILING, LARGEST, LOG_CEILING, bounded, power_below
from tunefree.core.rows import entry, size
from tunefree.learners.contract import coordinate, factor, magnitude, outputs, predict, records, traits, update


@traits(invariant_to_scale_of="all features alike", even=("slopes",))
class PiSTOL(NamedTuple):
    """PiSTOL with the linear kernel (Algorithm 3): invariant to the scale of the data as a whole."""

    features: np.ndarray  # (d,) records, empty
    coordinates: np.ndarray  # (d, K) records, in place:
    #   gradients  g / unit: minus the sum of gradients
    norms: np.ndarray  # (1, K) ||g / unit||^2, in place
    slopes: np.ndarray  # (1, K) sum of |s| ||x|| / unit, in place
    outputs: Any  # what to loop over, see contract.outputs
    unit: np.ndarray  # () power of two next to the norm of the first row that is not 0; 0 before it, in place
    largest: np.ndarray  # () M / unit, in place
    first: np.ndarray  # () M / unit after the first row that was learned; 0 before it, in place
    norm: np.ndarray  # () ||x_t|| / unit of the latest row, in place
    rounds: np.ndarray  # () t, in place
    margin: np.ndarray  # () scale.margin of the latest round, in place
    a: float  # the theory asks for at least 2.25
    b: float  # in units of scale.margin; 0 for sqrt(2 a t), as in the paper's experiments

    @classmethod
    def create(cls, n_features: int, n_outputs: int = 1, a: float = 3.0, b: float = 1.0) -> PiSTOL:
        """A learner that has seen nothing."""
        statistics = records((), ("gradients",), n_features, n_outputs)
        norms, slopes = row_of_outputs(n_outputs), row_of_outputs(n_outputs)
        unit, largest, first, norm, rounds = (np.zeros(()) for _ in range(5))
        shared = unit, largest, first, norm, rounds, np.ones(())
        return cls(*statistics, norms, slopes, outputs(n_outputs), *shared, a, b)

    def blank(self, n_features: int, n_outputs: int) -> PiSTOL:
        return self.create(n_features, n_outputs)


@traits(invariant_to_scale_of="each feature", even=("slopes",))
class CoordinatePiSTOL(NamedTuple):
    """One copy of PiSTOL a coordinate (Appendix A): invariant to the scale of each feature."""

    features: np.ndarray  # (d,) records, in place:
    #   largest    M_i
    #   first      M_i after the first row with feature i that was learned
    coordinates: np.ndarray  # (d, K) records, in place:
    #   gradients  g_i / M_i: minus the sum of gradients
    #   slopes     sum of |s x_i| / M_i
    outputs: Any  # what to loop over, see contract.outputs
    margin: np.ndarray  # () scale.margin of the latest round, in place
    a: float  # the theory asks for at least 2.25
    b: float  # in units of scale.margin; the paper's choice is 1 / d

    @classmethod
    def create(cls, n_features: int, n_outputs: int = 1, a: float = 3.0, b: float = 1.0) -> CoordinatePiSTOL:
        """A learner that has seen nothing."""
        statistics = records(("largest", "first"), ("gradients", "slopes"), n_features, n_outputs)
        return cls(*statistics, outputs(n_outputs), np.ones(()), a, b)

    def blank(self, n_features: int, n_outputs: int) -> CoordinatePiSTOL:
        return self.create(n_features, n_outputs)


@compiled.inline
def relative(x_j, unit):
    """A value in units of the first row, small enough to be squared."""
    return bounded(x_j / unit)


@compiled.inline
def norm_of(x, unit):
    """The norm of a row in units."""
    total = 0.0
    for e in range(size(x)):
        x_j = entry(x, e)[1]
        ratio = relative(x_j, unit)
        total += ratio * ratio
    return math.sqrt(min(total, LARGEST))


@compiled.inline
def unit_of(x):
    """Power of two next to the largest value of a row; 0 for a row of zeros."""
    largest = 0.0
    for e in range(size(x)):
        x_j = entry(x, e)[1]
        largest = max(largest, abs(x_j))
    return power_below(largest) if largest > 0.0 else 0.0


@predict.register(PiSTOL)
def predict_pistol(state, x, scale, margins):
    margins[:] = 0.0
    unit = state.unit[()] if state.unit[()] > 0.0 else unit_of(x)
    norm = norm_of(x, unit) if unit > 0.0 else 0.0
    state.unit[()], state.norm[()], state.margin[()] = unit, norm, scale.margin
    state.rounds[()] += 1.0 if scale.weight > 0.0 else 0.0
    size_of_row = min(scale.slope * norm, CEILING)
    if state.largest[()] == 0.0:
        state.first[()] = size_of_row
    state.largest[()] = max(state.largest[()], size_of_row)
    if state.largest[()] > 0.0:
        for e in range(size(x)):
            j, x_j = entry(x, e)
            ratio = relative(x_j, unit)
            for k in range(len(state.outputs)):
                margins[k] += state.coordinates[j, k].gradients * ratio
        for k in range(len(state.outputs)):
            margins[k] = bounded(margins[k] * factor(state, k))


@update.register(PiSTOL)
def update_pistol(state, x, gradient, curvature):
    if state.unit[()] > 0.0:
        for k in range(len(state.outputs)):
            state.slopes[0, k] = min(state.slopes[0, k] + abs(gradient[k]) * state.norm[()], CEILING)
        for e in range(size(x)):
            j, x_j = entry(x, e)
            ratio = relative(x_j, state.unit[()])
            for k in range(len(state.outputs)):
                step, before = gradient[k] * ratio, state.coordinates[j, k].gradients
                state.coordinates[j, k].gradients = bounded(before - step)
                # ||g - s x||^2 - ||g||^2, coordinate by coordinate
                state.norms[0, k] = min(max(state.norms[0, k] + step * (step - 2.0 * before), 0.0), LARGEST)


@coordinate.register(PiSTOL)
def coordinate_pistol(state, j, k):
    return state.coordinates[j, k].gradients


@factor.register(PiSTOL)
def factor_pistol(state, k):
    largest = state.largest[()]
    if largest == 0.0:
        return 0.0
    # log alpha = log a + log M + log(M + A): alpha itself could overflow
    log_alpha = math.log(state.a) + math.log(largest) + math.log(largest + state.slopes[0, k])
    norm = state.norms[0, k]
    exponent = math.exp(min(math.log(norm / 2.0) - log_alpha, LOG_CEILING)) if norm > 0.0 else 0.0
    b = state.b if state.b > 0.0 else math.sqrt(2.0 * state.a * state.rounds[()])
    return b * state.margin[()] * math.exp(min(exponent - log_alpha, LOG_CEILING))


@magnitude.register(PiSTOL)
def magnitude_pistol(state, j):
    return state.unit[()]


@compiled.inline
def see(state, j, size_of_x):
    """Let M_i grow to the size of a value that exceeds it; the statistics relative to it shrink."""
    shrink = state.features[j].largest / size_of_x
    if state.features[j].largest == 0.0:
        state.features[j].first = size_of_x
    state.features[j].largest = size_of_x
    for k in range(len(state.outputs)):
        state.coordinates[j, k].gradients *= shrink
        state.coordinates[j, k].slopes *= shrink


@predict.register(CoordinatePiSTOL)
def predict_coordinate_pistol(state, x, scale, margins):
    margins[:] = 0.0
    state.margin[()] = scale.margin
    for e in range(size(x)):
        j, x_j = entry(x, e)
        size_of_x = min(scale.slope * abs(x_j), LARGEST)
        if size_of_x > state.features[j].largest:
            see(state, j, size_of_x)
        if x_j != 0.0 and state.features[j].largest > 0.0:
            for k in range(len(state.outputs)):
                ratio = bounded(x_j / state.features[j].largest)  # large only in a row without weight
                margins[k] = bounded(margins[k] + coordinate(state, j, k) * factor(state, k) * ratio)


@coordinate.register(CoordinatePiSTOL)
def coordinate_coordinate_pistol(state, j, k):
    gradient, alpha = state.coordinates[j, k].gradients, state.a * (1.0 + state.coordinates[j, k].slopes)
    return gradient / alpha * math.exp(min(gradient * gradient / (2.0 * alpha), LOG_CEILING))


@update.register(CoordinatePiSTOL)
def update_coordinate_pistol(state, x, gradient, curvature):
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0 and state.features[j].largest > 0.0:
            for k in range(len(state.outputs)):
                step = gradient[k] * (x_j / state.features[j].largest)
                state.coordinates[j, k].gradients -= step
                state.coordinates[j, k].slopes += abs(step)


@factor.register(CoordinatePiSTOL)
def factor_coordinate_pistol(state, k):
    return state.b * state.margin[()]


@magnitude.register(CoordinatePiSTOL)
def magnitude_coordinate_pistol(state, j):
    return state.features[j].largest
