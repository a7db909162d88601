"""Curves: each numeric column as the values of piecewise linear functions, constant beyond the range of the knots.

The functions of level 0 are hats on the first knots: 1 at a knot, 0 at its neighbours, linear between. A knot of a
higher level lies between knots of lower levels, and its hat is 0 at the nearest of these. So a new knot changes no
function before, and its weight begins at 0 (hierarchical basis: Yserentant, On the multi-level splitting of finite
element spaces, 1986). A knot beyond the ends has a ramp, which stays 1 on the far side. A column of two values has one
function, a ramp between them.

At most two functions of level 0 and one of each higher level are not 0 at a number. Between neighbouring knots all of
them are linear; :class:`Curves` holds their values at both ends of each such interval.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import LARGEST


class Knots(NamedTuple):
    """The knots of a column, ascending."""

    values: np.ndarray  # (m,) float64
    levels: np.ndarray  # (m,) int64
    features: np.ndarray  # (m,) int64: the feature of each knot's function, 0 if it has none

    @classmethod
    def create(cls, values: np.ndarray, first: int) -> Knots:
        """Knots of level 0, with features from ``first`` on; one of two needs no function beside the constant."""
        features = first + np.arange(len(values))
        if len(values) <= 2:
            features = np.array([0, first][: len(values)], np.int64)
        return cls(values, np.zeros(len(values), np.int64), features.astype(np.int64))

    @property
    def n_functions(self) -> int:
        """How many of the knots have a function."""
        return int(np.count_nonzero(self.features))

    def with_more(self, values: np.ndarray, first: int) -> Knots:
        """With knots of the next level, whose features begin at ``first``."""
        level = np.full(len(values), self.levels.max(initial=0) + 1)
        added = Knots(values, level, first + np.arange(len(values)))
        joined = [np.concatenate(pair) for pair in zip(self, added, strict=True)]
        order = np.argsort(joined[0], kind="stable")
        return Knots(*(part[order] for part in joined))

    def function(self, place: int) -> np.ndarray:
        """The values (m,) of the function of a knot at all knots.

        Examples
        --------
        >>> knots = Knots.create(np.array([0.0, 1.0, 3.0]), 1).with_more(np.array([2.0]), 4)
        >>> knots.function(1), knots.function(2)
        (array([0. , 1. , 0.5, 0. ]), array([0., 0., 1., 0.]))
        """
        level = self.levels[place]
        lower = np.flatnonzero(self.levels < level if level else self.levels == 0)
        own, before, after = self.values[place], lower[lower < place], lower[lower > place]
        rises = ascent(self.values, self.values[before[-1]], own) if len(before) else np.ones(len(self.values))
        return np.minimum(rises, 1.0 - ascent(self.values, own, self.values[after[0]])) if len(after) else rises


def ascent(numbers: np.ndarray, start: float, stop: float) -> np.ndarray:
    """From 0 up to ``start`` to 1 from ``stop`` on, linear between: :func:`position` of many numbers.

    Examples
    --------
    >>> ascent(np.array([-1.7e308, 0.0, 1.7e308]), -1.7e308, 1.7e308)
    array([0. , 0.5, 1. ])
    """
    unit = 1.0 if 0.5 * stop - 0.5 * start < 0.5 * LARGEST else 0.5
    return (unit * np.clip(numbers, start, stop) - unit * start) / (unit * stop - unit * start)


class Curves(NamedTuple):
    """The functions of several columns, tabulated: what they are at the ends of each interval between knots.

    Padding has the feature 0.
    """

    columns: np.ndarray  # (c,) int64: places among the dense numbers
    counts: np.ndarray  # (c,) int64: knots of each column
    knots: np.ndarray  # (c, m) ascending, padded
    features: np.ndarray  # (c, m, s) int64: of the functions that are not 0 in the interval that begins at the knot
    left: np.ndarray  # (c, m, s) their values at the beginning of the interval
    right: np.ndarray  # (c, m, s) their values at its end
    cells: np.ndarray  # (c, m, s) int64: the place of the function among those of level 0 from 1, 0 of higher levels


def tabulated(columns: list[int], knots: list[Knots]) -> Curves:
    """The functions of columns; a column of one knot has none yet."""
    m = max((len(own.values) for own in knots), default=1)
    slots = max((2 + int(own.levels.max(initial=0)) for own in knots), default=2)
    shape = len(knots), m
    made = Curves(
        np.array(columns, np.int64),
        np.array([len(own.values) for own in knots], np.int64),
        np.zeros(shape),
        np.zeros((*shape, slots), np.int64),
        np.zeros((*shape, slots)),
        np.zeros((*shape, slots)),
        np.zeros((*shape, slots), np.int64),
    )
    for c, own in enumerate(knots):
        made.knots[c, : len(own.values)] = own.values
        _tabulate(own, Curves(*(part[c] for part in made)))
    return made


def _tabulate(own: Knots, row: Curves) -> None:
    """Fill in the functions of one column."""
    base = np.cumsum(own.levels == 0)
    for place, (level, feature) in enumerate(zip(own.levels, own.features, strict=True)):
        if feature == 0:
            continue
        heights = own.function(place)
        slot = 1 + level if level else base[place] % 2
        for interval, (left, right) in enumerate(pairwise(heights)):
            if left > 0.0 or right > 0.0:
                row.features[interval, slot] = feature
                row.left[interval, slot], row.right[interval, slot] = left, right
                row.cells[interval, slot] = 0 if level else base[place]


@compiled.inline
def interval_of(knots, count, number):
    """The interval between ``count`` ascending knots that a number lies in; the first or last one if it lies beyond."""
    low, high = 0, count - 1
    while high - low > 1:
        middle = (low + high) // 2
        if number < knots[middle]:
            high = middle
        else:
            low = middle
    return low


@compiled.inline
def position(knots, interval, number):
    """Where a number lies in an interval, from 0 at its beginning to 1 at its end; computed without overflow."""
    start, stop = knots[interval], knots[interval + 1]
    if number <= start:
        return 0.0
    if number >= stop:
        return 1.0
    unit = 1.0 if 0.5 * stop - 0.5 * start < 0.5 * LARGEST else 0.5
    return (unit * number - unit * start) / (unit * stop - unit * start)


@compiled.entry
def write_curves(curves, place_of, inputs, pointers, features, values):
    """Write rows of codes, words and the functions that are not 0 as sparse rows; returns the number of entries.

    ``place_of`` has the feature of each code and word here, 0 if it is not known; ``inputs`` is an ``Inputs``.
    """
    at = 0
    for i in range(len(inputs.numbers)):
        for q in range(inputs.codes.shape[1]):
            place = place_of[inputs.codes[i, q]]
            if place > 0:
                features[at], values[at] = place, 1.0
                at += 1
        for e in range(inputs.pointers[i], inputs.pointers[i + 1]):
            place = place_of[inputs.features[e]]
            if place > 0 and inputs.values[e] != 0.0:
                features[at], values[at] = place, inputs.values[e]
                at += 1
        for c in range(len(curves.columns)):
            if curves.counts[c] > 1:
                number = inputs.numbers[i, curves.columns[c]]
                interval = interval_of(curves.knots[c], curves.counts[c], number)
                t = position(curves.knots[c], interval, number)
                for s in range(curves.features.shape[2]):
                    left, right = curves.left[c, interval, s], curves.right[c, interval, s]
                    value = left + t * (right - left)
                    if value != 0.0 and curves.features[c, interval, s] > 0:
                        features[at], values[at] = curves.features[c, interval, s], value
                        at += 1
        pointers[i + 1] = at
    return at
