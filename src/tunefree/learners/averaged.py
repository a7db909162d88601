"""The average of a learner's iterates, at the cost of the non-zeros of each row (online-to-batch conversion).

A weight is a coordinate that changes only in rows with its feature, times a factor that all features share. The clock
of an output is the sum of its factors so far, so a coordinate that has stood still since the clock showed ``since``
contributes coordinate * (clock - since), which is added when the feature is next seen. A round counts as much as its
weight.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.coordinates import row_of_outputs
from tunefree.core.errors import ModelError
from tunefree.core.numbers import bounded
from tunefree.core.rows import entry, size
from tunefree.learners.contract import coordinate, factor, magnitude, predict, records, traits_of, update


class Averaged(NamedTuple):
    """A learner and the sum of its weights over the rounds."""

    learner: Any
    features: np.ndarray  # (d,) records, in place:
    #   units      the learner's magnitude of the feature when it was last seen
    coordinates: np.ndarray  # (d, K) records, in place:
    #   totals     sum of coordinates times factors, up to since
    #   since      the clock when the coordinate was last counted
    clocks: np.ndarray  # (1, K) sum of the factors of all rounds, in place
    outputs: Any  # what to loop over, see contract.outputs
    rounds: np.ndarray  # () sum of the rounds' weights, in place

    @classmethod
    def create(cls, learner: Any) -> Averaged:
        """A learner and the average of its weights from now on; a learner that averages already stays as it is."""
        if isinstance(learner, Averaged):
            return learner
        if not traits_of(type(learner)).can_be_averaged:
            raise ModelError(
                f"{type(learner).__name__} moves all weights in every round, so no average of them is kept; "
                "leave out the average or choose another learner"
            )
        n_features, n_outputs = learner.coordinates.shape
        statistics = records(("units",), ("totals", "since"), n_features, n_outputs)
        return cls(learner, *statistics, row_of_outputs(n_outputs), learner.outputs, np.zeros(()))

    def blank(self, n_features: int, n_outputs: int) -> Averaged:
        return self.create(self.learner.blank(n_features, n_outputs))


@predict.register(Averaged)
def predict_averaged(state, x, scale, margins):
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0:
            catch_up(state, j)
    learner = state.learner
    predict(learner, x, scale, margins)
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0:
            for k in range(len(state.outputs)):
                share = factor(learner, k) * scale.weight
                own = state.coordinates[j, k]
                own.totals = bounded(own.totals * exchange(state, learner, j))
                own.totals = bounded(own.totals + coordinate(learner, j, k) * share)
                own.since = state.clocks[0, k] + share
            state.features[j].units = magnitude(learner, j)
    for k in range(len(state.outputs)):
        state.clocks[0, k] = bounded(state.clocks[0, k] + factor(learner, k) * scale.weight)
    state.rounds[()] += scale.weight


@compiled.inline
def catch_up(state, j):
    """Add a coordinate to its total for the rounds in which it stood still."""
    for k in range(len(state.outputs)):
        still = coordinate(state.learner, j, k) * (state.clocks[0, k] - state.coordinates[j, k].since)
        state.coordinates[j, k].totals = bounded(state.coordinates[j, k].totals + still)
        state.coordinates[j, k].since = state.clocks[0, k]


@compiled.inline
def exchange(state, learner, j):
    """From the unit of the total to the learner's present unit of the feature, which grows with its largest value."""
    return magnitude(learner, j) / state.features[j].units if state.features[j].units > 0.0 else 1.0


@update.register(Averaged)
def update_averaged(state, x, gradient, curvature):
    update(state.learner, x, gradient, curvature)


@coordinate.register(Averaged)
def coordinate_averaged(state, j, k):
    if state.rounds[()] == 0.0:
        return 0.0
    still = coordinate(state.learner, j, k) * (state.clocks[0, k] - state.coordinates[j, k].since)
    return bounded(state.coordinates[j, k].totals + still) / state.rounds[()]


@factor.register(Averaged)
def factor_averaged(state, k):
    return 1.0


@magnitude.register(Averaged)
def magnitude_averaged(state, j):
    return state.features[j].units
