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

    @property
    def of_level_0(self) -> Knots:
        """Those of level 0."""
        return Knots(*(part[self.levels == 0] for part in self))

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
    """The functions of several columns, tabulated: what they are at both ends of each interval between knots."""

    counts: np.ndarray  # (c,) int64: knots of each column
    knots: np.ndarray  # (c, m) ascending, padded
    starts: np.ndarray  # (c, m) int64: where the parts of the interval that begins at a knot begin
    parts: np.ndarray  # records of the functions that are not 0 in an interval, those of level 0 first:
    #   feature  of the function
    #   cell     its place among the functions of level 0 from 1, 0 if it is of a higher level
    #   left     its value at the beginning of the interval
    #   rise     by how much it is larger at the end of the interval

    @property
    def most_parts(self) -> int:
        """Functions that may be other than 0 in a row."""
        counts = np.diff(self.starts, axis=1, append=0).max(axis=1, initial=0)
        return int(counts.sum())


_PART = np.dtype([("feature", np.int64), ("cell", np.int64), ("left", np.float64), ("rise", np.float64)])


def tabulated(knots: list[Knots]) -> Curves:
    """The functions of the dense columns, in their order; a column of one knot has none yet."""
    counts = np.array([len(own.values) for own in knots], np.int64)
    shape = len(knots), int(counts.max(initial=1))
    made = Curves(counts, np.zeros(shape), np.zeros(shape, np.int64), np.zeros(0, _PART))
    parts: list[tuple[int, int, float, float]] = []
    for c, own in enumerate(knots):
        made.knots[c, : counts[c]] = own.values
        for interval, inside in enumerate(_parts_of(own)):
            made.starts[c, interval] = len(parts)
            parts += inside
        made.starts[c, max(counts[c] - 1, 0) :] = len(parts)
    return made._replace(parts=np.array(parts, _PART))


def _parts_of(own: Knots) -> list[list[tuple[int, int, float, float]]]:
    """For each interval of a column the functions that are not 0 in it."""
    found: list[list[tuple[int, int, float, float]]] = [[] for _ in own.values[1:]]
    base = np.cumsum(own.levels == 0)
    for place in np.argsort(own.levels, kind="stable"):
        if own.features[place] > 0:
            cell = 0 if own.levels[place] else int(base[place])
            for interval, (left, right) in enumerate(pairwise(own.function(place).tolist())):
                if left > 0.0 or right > 0.0:
                    found[interval].append((int(own.features[place]), cell, left, right - left))
    return found


@compiled.inline
def interval_of(knots, count, number):
    """The interval between ``count`` ascending knots that a number lies in; the first or last one if it lies beyond."""
    low, left = 0, count - 1
    while left > 1:
        half = left // 2
        low += half if knots[low + half] <= number else 0
        left -= half
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
