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

from typing import Any, NamedTuple

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

    def functions(self) -> np.ndarray:
        """The values (m, m) of the function of each knot at all knots.

        Examples
        --------
        >>> knots = Knots.create(np.array([0.0, 1.0, 3.0]), 1).with_more(np.array([2.0]), 4)
        >>> knots.functions()[1:3]
        array([[0. , 1. , 0.5, 0. ],
               [0. , 0. , 1. , 0. ]])
        """
        m, values = len(self.values), self.values[:, None]
        before, after = np.full(m, -1), np.full(m, m)  # the nearest knots at which the function of a knot is 0
        for level in np.unique(self.levels):
            places = np.flatnonzero(self.levels == level)
            lower = np.flatnonzero(self.levels < level) if level else places
            found = np.concatenate([[-1], lower, [m]])
            at = np.searchsorted(lower, places)
            before[places], after[places] = found[at], found[at + 1 + (level == 0)]
        made = np.ones((m, m))
        rises, falls = before >= 0, after < m
        made[rises] = ascent(self.values, values[before[rises]], values[rises])
        made[falls] = np.minimum(made[falls], 1.0 - ascent(self.values, values[falls], values[after[falls]]))
        return made


def ascent(numbers: np.ndarray, start: Any, stop: Any) -> np.ndarray:
    """From 0 up to ``start`` to 1 from ``stop`` on, linear between: :func:`position` of many numbers.

    Examples
    --------
    >>> ascent(np.array([-1.7e308, 0.0, 1.7e308]), -1.7e308, 1.7e308)
    array([0. , 0.5, 1. ])
    """
    unit = np.where(0.5 * stop - 0.5 * start < 0.5 * LARGEST, 1.0, 0.5)
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
    parts, begun = [made.parts], 0
    for c, own in enumerate(knots):
        intervals, inside = _parts_of(own)
        made.knots[c, : counts[c]] = own.values
        made.starts[c] = begun + np.searchsorted(intervals, np.arange(shape[1]))
        parts.append(inside)
        begun += len(inside)
    return made._replace(parts=np.concatenate(parts))


def _parts_of(own: Knots) -> tuple[np.ndarray, np.ndarray]:
    """The functions that are not 0 in an interval of a column, those of level 0 first: the interval, and the part."""
    order = np.argsort(own.levels, kind="stable")
    order = order[own.features[order] > 0]
    functions, cells = own.functions()[order], np.where(own.levels == 0, np.cumsum(own.levels == 0), 0)[order]
    left, right = functions[:, :-1], functions[:, 1:]
    intervals, found = np.nonzero(((left > 0.0) | (right > 0.0)).T)
    made = np.empty(len(found), _PART)
    made["feature"], made["cell"] = own.features[order[found]], cells[found]
    made["left"] = left[found, intervals]
    made["rise"] = right[found, intervals] - made["left"]
    return intervals, made


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
