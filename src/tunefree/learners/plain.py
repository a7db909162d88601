"""Learners that keep each weight as it is, in the data's own units: their margins, and how their weights are read.

Their records hold ``seen`` for a feature (1 once it has been seen, else 0) and ``weights`` for a coordinate (w_i).
"""

from __future__ import annotations

from typing import Any

from tunefree.core import compiled
from tunefree.core.numbers import bounded
from tunefree.core.rows import entry, size
from tunefree.learners.contract import coordinate, factor, magnitude, matters


@compiled.inline
def write_margins(state, x, margins):
    """The margins of plain weights; marks the features of the row as seen."""
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0:
            state.features[j].seen = 1.0
    for k in range(len(state.outputs)):
        margins[k] = 0.0
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if matters(state, x_j):
            for k in range(len(state.outputs)):
                margins[k] += bounded(state.coordinates[j, k].weights * x_j)
    for k in range(len(state.outputs)):
        margins[k] = bounded(margins[k])


def plain_weights(learner: Any) -> Any:
    """Decorate a learner whose weights are those in its records, each in force at all times."""

    @coordinate.register(learner)
    def coordinate_weight(state, j, k):
        return state.coordinates[j, k].weights

    @factor.register(learner)
    def factor_one(state, k):
        return 1.0

    @magnitude.register(learner)
    def magnitude_one(state, j):
        return state.features[j].seen

    return learner
