"""Learners that keep each weight as it is, in the data's units: their margins, and their weights."""

from __future__ import annotations

from tunefree.core.fields import per_coordinate, per_feature
from tunefree.core.numbers import bounded
from tunefree.learners.contract import Learner


class PlainLearner(Learner):
    """A learner whose weights are one of its fields, each in force at all times."""

    seen = per_feature("1 once the feature has been seen, else 0")
    weights = per_coordinate("w_i")

    def coordinate(state, j, k):
        return state.weights[j, k]

    def magnitude(state, j):
        return state.seen[j]


def write_margins(state, row, margins):
    """The margins of plain weights; marks the features of the row as seen."""
    for e in range(len(row.indices)):
        if row.values[e] != 0.0:
            state.seen[row.indices[e]] = 1.0
    for k in range(len(margins)):
        margins[k] = 0.0
    for e in range(len(row.indices)):
        j, value = row.indices[e], row.values[e]
        if len(margins) == 1 or value != 0.0:
            for k in range(len(margins)):
                margins[k] += bounded(state.weights[j, k] * value)
    for k in range(len(margins)):
        margins[k] = bounded(margins[k])
