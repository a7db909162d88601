"""Learners whose statistics are in units of the power of two next below a feature's largest value.

A learner that is invariant to the scale of each feature keeps M_i, the largest |x_i| so far, as two fields: ``inverse``
is 1 / unit_i, with unit_i the power of two next below M_i, and ``largest`` is M_i / unit_i. Some multiply x_i by the
bound on the slope of the round. The other statistics are in units, too, and are rescaled, without rounding, when M_i
reaches the next power of two. All arithmetic uses x_i / unit_i, so nothing overflows whatever the scale of a feature,
and predictions stay identical when a feature is multiplied by a power of two.

The magnitudes of a whole row are updated before anything else, so that the processor fetches the statistics of many
features at once.
"""

from __future__ import annotations

import numpy as np

from tunefree.core.fields import per_feature
from tunefree.core.numbers import LARGEST, bounded, unit_below
from tunefree.learners.contract import Learner


class ScaledLearner(Learner):
    """A learner that keeps its statistics in units."""

    inverse = per_feature("1 / unit_i; 0 until the feature is first seen")
    largest = per_feature("M_i / unit_i, from 1 to 2")

    def magnitude(state, j):
        return largest_value(state, j)

    def in_units(self, weights: np.ndarray) -> np.ndarray:
        """|u_i| unit_i for each feature that was seen."""
        seen = self.inverse > 0.0
        return np.minimum(np.abs(weights[seen]) / self.inverse[seen, None], LARGEST)


def exceeds(state, j, size):
    """Whether a value is larger than M_i."""
    return size * state.inverse[j] > state.largest[j] or (state.inverse[j] == 0.0 and size > 0.0)


def new_unit(state, j, size):
    """Let M_i grow to a size that exceeds it; returns the unit before over the unit now, 0 for a new feature."""
    size = min(size, LARGEST)
    inverse = 1.0 / unit_below(size)
    ratio = inverse / state.inverse[j] if state.inverse[j] > 0.0 else 0.0
    state.inverse[j] = inverse
    state.largest[j] = size * inverse
    return ratio


def write_margins(state, row, margins):
    """The margins of the weights in ``bets``, unit_i w_i. A ratio can be large only in a row of weight 0, which does
    not update the magnitudes."""
    for k in range(len(margins)):
        margins[k] = 0.0
    for e in range(len(row.indices)):
        j, value = row.indices[e], row.values[e]
        if len(margins) == 1 or value != 0.0:
            ratio = bounded(value * state.inverse[j])
            for k in range(len(margins)):
                margins[k] += state.bets[j, k] * ratio
    for k in range(len(margins)):
        margins[k] = bounded(margins[k])


def largest_value(state, j):
    """M_i."""
    return min(state.largest[j] / state.inverse[j], LARGEST) if state.inverse[j] > 0.0 else 0.0
