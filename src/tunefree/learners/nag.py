"""NAG: normalized adaptive gradient descent.

Ross, Mineiro, Langford: Normalized online learning (UAI 2013), the algorithm NAG. In each round, with s_i the largest
|x_i| so far and g the slope of the loss,

    where |x_i| > s_i:  w_i <- w_i s_i / |x_i|,  s_i <- |x_i|;
    predict sum_i w_i x_i;
    N <- N + sum_i x_i^2 / s_i^2;
    G_i <- G_i + (g x_i)^2,  w_i <- w_i - eta sqrt(t / N) g x_i / (s_i sqrt(G_i)).

A round counts in t and N as much as its weight. Multiplying all slopes by a constant changes nothing, so their bound is
not used. A step is in units of the natural size of a margin at its time: for regression it grows with the spread of
the target, and steps already made stay as they were. s_i, G_i and w_i are kept in units of the power of two next below
s_i, see :mod:`tunefree.learners.units`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import CEILING, LARGEST, bounded
from tunefree.core.rows import entry, size
from tunefree.learners.contract import (
    coordinate,
    factor,
    leave_out,
    magnitude,
    matters,
    outputs,
    predict,
    records,
    replay,
    shared,
    traits,
    update,
)
from tunefree.learners.units import combine, is_larger, largest_value, rescale, see


@traits(
    rate="eta",
    invariant_to_scale_of="each feature",
    invariant_to_slopes=True,
    can_replay=True,
    even=("squares",),
    odd=("bets",),
    halved=("bets",),
    scratch=("left_out",),
)
class NAG(NamedTuple):
    """Normalized adaptive gradient descent: invariant to the scale of each feature, but its step size is a setting.

    Settings: ``eta``, the step size in units of the natural size of a margin (the spread of the target in regression).
    """

    features: np.ndarray  # (d,) records, in place:
    #   inverse    1 / unit_i; 0 until the feature is first seen
    #   largest    s_i / unit_i, from 1 to 2
    coordinates: np.ndarray  # (d, K) records, in place:
    #   squares    G_i / unit_i^2: sum of squared gradients
    #   bets       unit_i w_i
    outputs: Any  # what to loop over, see contract.outputs
    rounds: np.ndarray  # () t: sum of the rounds' weights, in place
    norms: np.ndarray  # () N: sum of the squared norms of the normalized rows, each times its weight, in place
    margin: np.ndarray  # () scale.margin of the latest round, in place
    left_out: np.ndarray  # () entries that are left out of the row to come, in place
    eta: float  # step size in units of scale.margin

    @classmethod
    def create(cls, n_features: int, n_outputs: int = 1, eta: float = 0.5) -> NAG:
        """A learner that has seen nothing."""
        statistics = records(("inverse", "largest"), ("squares", "bets"), n_features, n_outputs)
        return cls(*statistics, outputs(n_outputs), *(np.zeros(()), np.zeros(()), np.ones(()), np.zeros(())), eta)

    def blank(self, n_features: int, n_outputs: int) -> NAG:
        return self.create(n_features, n_outputs)


@rescale.register(NAG)
def rescale_nag(state, j, shrink):
    for k in range(len(state.outputs)):
        state.coordinates[j, k].squares *= shrink * shrink


@compiled.inline
def update_magnitudes(state, x):
    """Let s_i of all features of a row grow; s_i w_i stays as it is."""
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if is_larger(state, j, abs(x_j)):
            before = state.features[j].largest
            see(state, j, abs(x_j))
            for k in range(len(state.outputs)):
                state.coordinates[j, k].bets *= before / state.features[j].largest


@compiled.inline
def squared_norm(state, x):
    """sum_i x_i^2 / s_i^2 of a row whose magnitudes are up to date, with the entries that are left out of it.

    Terms that are 1, such as those of new features, are counted, so that it makes no difference which are left out.
    """
    total, ones = 0.0, state.left_out[()]
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0:
            term = (x_j * state.features[j].inverse / state.features[j].largest) ** 2
            ones += 1.0 if term == 1.0 else 0.0
            total += 0.0 if term == 1.0 else term
    return total + ones


@predict.register(NAG)
def predict_nag(state, x, scale, margins):
    if scale.weight > 0.0:
        update_magnitudes(state, x)
        weight = min(scale.weight, CEILING)
        state.rounds[()] += weight
        state.norms[()] += weight * squared_norm(state, x)
        state.left_out[()] = 0.0
        state.margin[()] = scale.margin
    combine(state, x, margins)


@update.register(NAG)
def update_nag(state, x, gradient, curvature):
    if state.norms[()] > 0.0:
        descend(state, x, gradient, shared(state))


@compiled.inline
def descend(state, x, gradient, rate):
    """G_i <- G_i + (g x_i)^2,  w_i <- w_i - rate g x_i / (s_i sqrt(G_i))."""
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if matters(state, x_j):
            feature = state.features[j]
            ratio = x_j * feature.inverse
            for k in range(len(state.outputs)):
                own, slope = state.coordinates[j, k], bounded(gradient[k] * ratio)
                own.squares = min(own.squares + slope * slope, LARGEST)
                spread = feature.largest * math.sqrt(own.squares)
                if spread > 0.0:
                    own.bets = bounded(own.bets - rate * (slope / spread))


@shared.register(NAG)
def shared_nag(state):
    """eta sqrt(t / N)."""
    if state.norms[()] > 0.0:
        return state.eta * state.margin[()] * bounded(math.sqrt(state.rounds[()] / state.norms[()]))
    return 0.0


@leave_out.register(NAG)
def leave_out_nag(state, scale, n_features):
    state.left_out[()] = n_features if scale.weight > 0.0 else 0.0


@replay.register(NAG)
def replay_nag(state, x, scale, past, margins, gradient, curvature):
    update_magnitudes(state, x)
    descend(state, x, gradient, past)


@coordinate.register(NAG)
def coordinate_nag(state, j, k):
    return state.coordinates[j, k].bets * state.features[j].largest


@factor.register(NAG)
def factor_nag(state, k):
    return 1.0


@magnitude.register(NAG)
def magnitude_nag(state, j):
    return largest_value(state, j)
