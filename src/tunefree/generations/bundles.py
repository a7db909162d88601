"""Indicators in bundles: neighbouring features, at most one of them in a row, like the categories of a column.

Ke et al.: LightGBM (NIPS 2017), section 4, exclusive feature bundling, without conflicts. Here bundles are runs of
neighbours, as few as possible; a column with other values than 0 and 1 is a run by itself. The rows of a tree are
summed once per bundle, and the sums of its columns are identical to sums of single columns. Where sparse rows have more
features than trees have columns, one pass over the rows finds the runs, and each bundle is one categorical column.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import LEARNED, Part, array, number
from tunefree.core.schema import COUNT

UNLIMITED = 2**31 - 1  # larger than all features
MOST_MEMBERS = 255  # per bundle of columns; code 0 is for rows with none of them


class Exclusive(NamedTuple):
    """Bundles of columns of a tree."""

    codes: Annotated[np.ndarray, "uint8[bundles, all_rows]"]  # code of the column that is 1 in a row, or 0
    bundles: Annotated[np.ndarray, "int32[columns]"]  # index of the bundle of each column; -1 for none
    members: Annotated[np.ndarray, "uint8[columns]"]  # the code of each column in its bundle

    @property
    def n_filled(self) -> int:
        """The number of histograms that are filled: one per bundle, and one per column in no bundle."""
        return int(np.count_nonzero(self.bundles < 0)) + len(self.codes)


def exclusive_of(codes: np.ndarray, n_codes: np.ndarray, is_categorical: np.ndarray) -> Exclusive:
    """The bundles of columns by the codes (c, n) of their rows."""
    n_columns, n = codes.shape
    runs, taken = list[list[int]](), np.zeros(n, np.uint8)
    for j in np.flatnonzero((n_codes == 2) & ~is_categorical).tolist():
        if codes[j].max(initial=0) > 1:  # some values are missing
            continue
        is_next = bool(runs) and runs[-1][-1] == j - 1 and len(runs[-1]) < MOST_MEMBERS
        if is_next and not (taken & codes[j]).any():
            taken |= codes[j]
            runs[-1].append(j)
        else:
            taken = codes[j].copy()
            runs.append([j])
    runs = [run for run in runs if len(run) > 1]
    bundled = Exclusive(
        np.zeros((len(runs), n), np.uint8), np.full(n_columns, -1, np.int32), np.zeros(n_columns, np.uint8)
    )
    for b, run in enumerate(runs):
        for code, j in enumerate(run, 1):
            bundled.codes[b][codes[j] == 1] = code
            bundled.bundles[j], bundled.members[j] = b, code
    return bundled


class Bundles(Part):
    """Statistics of the rows so far that determine the bundles of features.

    A run that begins at a feature, or before it, ends at the limit of the feature at the latest.

    >>> bundles = Bundles()
    >>> bundles.add(2, np.array([0, 0, 1, 1]), np.array([1, 5, 3, 5]), np.array([1.0, 0.5, 1.0, 1.5]))
    >>> bundles.runs()
    (array([1, 5]), array([5, 6]), array([1., 1.]), array([2, 1]))
    """

    limits = array("int32", ("b",), LEARNED, low=0)
    counts = array("int64", ("b",), LEARNED, low=0)
    rows = number(LEARNED, COUNT)

    def __init__(self) -> None:
        self.limits, self.counts, self.rows = np.zeros(0, np.int32), np.zeros(0, np.int64), 0

    def check(self) -> None:
        """Raise a ModelError unless the limit of each feature is after the feature."""
        if not (self.limits > np.arange(len(self.limits))).all():
            raise ModelError("a bundle ends before its first feature")

    def add(self, n: int, row: np.ndarray, features: np.ndarray, values: np.ndarray) -> None:
        """Add n rows by their non-zero entries, which are sorted by row."""
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

    def runs(self) -> tuple[np.ndarray, ...]:
        """The fewest runs of features such that no row so far has two of a run; unused features are left out.

        Returns arrays (r,): the first feature of each run; its end, UNLIMITED for the last run; the share of the rows
        that have one of its features; and the number of its features that occur in the rows.
        """
        ends = np.minimum.accumulate(self.limits[::-1])[::-1].tolist()
        starts = [1]
        while starts[-1] < len(ends) and ends[starts[-1]] < UNLIMITED:
            starts.append(ends[starts[-1]])
        stops = np.array([*starts[1:], UNLIMITED])
        padded = np.append(self.counts, 0)
        counts, sizes = np.add.reduceat(padded, starts), np.add.reduceat(np.minimum(padded, 1), starts)
        runs = np.array(starts), stops, counts / max(self.rows, 1), sizes
        return tuple(part[sizes > 0] for part in runs)
