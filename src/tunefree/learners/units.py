"""Statistics in units of the power of two next below a feature's largest value.

A learner that is invariant to the scale of each feature keeps M_i, the largest |x_i| so far, as two numbers in
``features``: ``inverse`` is 1 / unit_i, with unit_i the power of two next below M_i, and ``largest`` is M_i / unit_i.
Its other statistics are in units too, and are rescaled, without rounding, when M_i reaches the next power of two. All
arithmetic is on x_i / unit_i: whatever the scale of a feature nothing overflows, and multiplying it by a power of two
changes no prediction by one bit.
"""

from __future__ import annotations

import math
from typing import Any

from tunefree.core import compiled
from tunefree.core.generic import generic
from tunefree.core.numbers import LARGEST, SMALLEST_EXPONENT, bounded
from tunefree.core.rows import entry, size
from tunefree.learners.contract import matters


@generic
def rescale(state: Any, j: int, shrink: float) -> None:
    """Express the statistics of feature ``j`` in its new unit; what had the dimension of x_i is multiplied by
    ``shrink``, a power of two, or 0 where the feature is new."""
    raise TypeError(f"{type(state).__name__} keeps no statistics in units")


@compiled.inline
def is_larger(state, j, size_of_x):
    """Whether a value exceeds M_i."""
    feature = state.features[j]
    return size_of_x * feature.inverse > feature.largest or (feature.inverse == 0.0 and size_of_x > 0.0)


@compiled.inline
def see(state, j, size_of_x):
    """Let M_i grow to the size of a value that exceeds it."""
    feature = state.features[j]
    inverse = math.ldexp(1.0, 1 - max(math.frexp(min(size_of_x, LARGEST))[1], SMALLEST_EXPONENT))
    if inverse != feature.inverse:
        shrink = inverse / feature.inverse if feature.inverse > 0.0 else 0.0
        feature.inverse = inverse
        rescale(state, j, shrink)
    feature.largest = min(size_of_x, LARGEST) * inverse


@compiled.inline
def update_magnitudes(state, x, slope):
    """Let M_i of all features of a row, times ``slope``, grow; returns how many features are new. So little is done
    here for each that the processor fetches the statistics of many at once. What follows finds them in its cache."""
    new = 0
    for e in range(size(x)):
        j, x_j = entry(x, e)
        size_of_x = slope * abs(x_j)
        if is_larger(state, j, size_of_x):
            if state.features[j].inverse == 0.0:
                new += 1
            see(state, j, size_of_x)
    return new


@compiled.inline
def combine(state, x, margins):
    """The margins of the weights in ``bets``, unit_i w_i. A ratio can be large only in a row of weight 0, which does
    not update the magnitudes."""
    for k in range(len(state.outputs)):
        margins[k] = 0.0
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if matters(state, x_j):
            ratio = bounded(x_j * state.features[j].inverse)
            for k in range(len(state.outputs)):
                margins[k] += state.coordinates[j, k].bets * ratio
    for k in range(len(state.outputs)):
        margins[k] = bounded(margins[k])


@compiled.inline
def largest_value(state, j):
    """M_i."""
    feature = state.features[j]
    return min(feature.largest / feature.inverse, LARGEST) if feature.inverse > 0.0 else 0.0
