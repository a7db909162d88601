"""Features of sparse rows in bundles: neighbours of which no row has two are the categories of one column.

Ke et al.: LightGBM (NIPS 2017), section 4. Encoders write the categories of a column as neighbouring features of value
1. So a bundle is a run of features here, and one pass over the rows finds all runs. A feature with another value is a
number, and a run of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import LEARNED, Part, array, number
from tunefree.core.schema import COUNT

UNLIMITED = 2**31 - 1  # beyond all features


class Runs(NamedTuple):
    """Runs of features."""

    starts: np.ndarray  # (r,) the first feature of each
    stops: np.ndarray  # (r,) one more than the last, UNLIMITED for the last run
    shares: np.ndarray  # (r,) of the rows that have one of its features
    sizes: np.ndarray  # (r,) features that some rows have


class Bundles(Part):
    """What tells bundles of features, of the rows so far.

    Attributes
    ----------
    limits : (d,) array of int32
        Where a run that has this feature, or begins behind it, ends at the latest.
    counts : (d,) array of int64
        Rows that have this feature.
    rows : int

    Examples
    --------
    >>> bundles = Bundles()
    >>> bundles.add(2, np.array([0, 0, 1, 1]), np.array([1, 5, 3, 5]), np.array([1.0, 0.5, 1.0, 1.5]))
    >>> bundles.runs()
    Runs(starts=array([1, 5]), stops=array([5, 6]), shares=array([1., 1.]), sizes=array([2, 1]))
    """

    limits = array("int32", ("b",), LEARNED, low=0)
    counts = array("int64", ("b",), LEARNED, low=0)
    rows = number(LEARNED, COUNT)

    def __init__(self) -> None:
        self.limits, self.counts, self.rows = np.zeros(0, np.int32), np.zeros(0, np.int64), 0

    def check(self) -> None:
        """Raise a ModelError unless each run ends behind its features."""
        if not (self.limits > np.arange(len(self.limits))).all():
            raise ModelError("a bundle ends before its first feature")

    def add(self, n: int, row: np.ndarray, features: np.ndarray, values: np.ndarray) -> None:
        """Add n rows by their entries, which are not 0; those of a row lie behind each other."""
        self.rows += n
        missing = int(features.max(initial=-1)) + 1 - len(self.counts)
        if missing > 0:
            self.limits = np.append(self.limits, np.full(missing, UNLIMITED, np.int32))
            self.counts = np.append(self.counts, np.zeros(missing, np.int64))
        np.add.at(self.counts, features, 1)
        order = np.lexsort((features, row))
        row, features, is_number = row[order], features[order], values[order] != 1.0
        follows = row[1:] == row[:-1]
        np.minimum.at(self.limits, features[:-1][follows], features[1:][follows])
        numbers = np.unique(features[is_number])
        np.minimum.at(self.limits, numbers, numbers + 1)
        np.minimum.at(self.limits, numbers - 1, numbers)

    def forget(self, features: np.ndarray) -> None:
        """Know nothing of some features."""
        features = features[features < len(self.counts)]
        self.limits[features], self.counts[features] = UNLIMITED, 0

    def runs(self) -> Runs:
        """The fewest runs of which no row so far has two features; without those that no row has."""
        ends = np.minimum.accumulate(self.limits[::-1])[::-1].tolist()
        starts = [1]
        while starts[-1] < len(ends) and ends[starts[-1]] < UNLIMITED:
            starts.append(ends[starts[-1]])
        stops = np.array([*starts[1:], UNLIMITED])
        padded = np.append(self.counts, 0)
        counts, sizes = np.add.reduceat(padded, starts), np.add.reduceat(np.minimum(padded, 1), starts)
        runs = Runs(np.array(starts), stops, counts / max(self.rows, 1), sizes)
        return Runs(*(part[sizes > 0] for part in runs))
