"""Columns as codes of one byte: quantile bins of numbers, and categories in the order of their mean target.

A code is the number of edges up to a number, or the rank of a category. MISSING is the code of missing values, and of
categories that are not in the bins.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.core.schema import Limits

MISSING = 255
MOST_CODES = 254  # per column
MOST_QUANTILE_ROWS = 2**16  # rows from which quantiles are computed
BLOCK = 64  # rows per block
PRIOR_ROWS = 10.0  # added rows with the mean target, in the mean of a category


class Bins(NamedTuple):
    """The bins that map columns to codes."""

    # (c + 1,): column j has the points starts[j] .. starts[j + 1]
    starts: Annotated[np.ndarray, "int64[starts]", Limits(ascends_to="points")]
    points: Annotated[np.ndarray, "float64[points]"]  # ascending in a column: edges of numbers, or ids of categories
    ranks: Annotated[np.ndarray, "uint8[points]"]  # the code of each category; 0 for edges
    is_categorical: Annotated[np.ndarray, "bool[columns]"]

    @property
    def n_codes(self) -> np.ndarray:
        """The number of codes (c,) int64 of each column, without MISSING."""
        counts = np.diff(self.starts)
        n_codes = counts + 1
        for c in np.flatnonzero(self.is_categorical).tolist():
            n_codes[c] = int(self.ranks[self.starts[c] : self.starts[c + 1]].max()) + 1 if counts[c] else 0
        return n_codes


def bins_of(columns: np.ndarray, is_categorical: np.ndarray, scores: np.ndarray) -> Bins:
    """Bins of some rows (n, c), where NaN is missing; categories are ordered by their mean scores (n,)."""
    points, ranks = [], []
    for column, has_categories in zip(map(np.ascontiguousarray, columns.T), is_categorical, strict=True):
        if has_categories:
            ids = np.unique(column[~np.isnan(column)])
            column_ranks = _ranks(ids, column, scores)
        else:
            ids = _edges(column)
            column_ranks = np.zeros(len(ids), np.uint8)
        points.append(ids)
        ranks.append(column_ranks)
    starts = np.cumsum([0, *map(len, points)]).astype(np.int64)
    empty = np.empty(0)
    return Bins(
        starts, np.concatenate([empty, *points]), np.concatenate([empty, *ranks]).astype(np.uint8), is_categorical
    )


def _edges(column: np.ndarray) -> np.ndarray:
    """Edges between neighbouring values of a column: codes depend only on the order of the values."""
    known = column[~np.isnan(column)]
    if len(known) > MOST_QUANTILE_ROWS:
        known = known[np.linspace(0, len(known) - 1, MOST_QUANTILE_ROWS).astype(np.int64)]
    values, counts = np.unique(known, return_counts=True)
    ends = np.ones(len(values), bool)
    if len(values) > MOST_CODES:
        _write_ends(counts, MOST_CODES, ends)
    below, above = values[:-1][ends[:-1]], values[1:][ends[:-1]]
    middle = below / 2.0 + above / 2.0  # halves, as a sum might overflow
    return np.where((middle > below) & (middle <= above), middle, above)


@compiled
def _write_ends(
    counts: Annotated[np.ndarray, "int64[values]"], most: int, ends: Annotated[np.ndarray, "bool[values]"]
) -> None:
    """Mark the values that end a code: frequent ones have a code for themselves, the others share about evenly."""
    total, rows, codes, n_ends, inside = 0, 0, most, 0, 0
    for i in range(len(counts)):
        total += counts[i]
    for i in range(len(counts)):
        if counts[i] * most >= total:
            codes -= 1
        else:
            rows += counts[i]
    for i in range(len(counts) - 1):
        inside += counts[i]
        alone, is_full = counts[i] * most >= total, inside * codes >= rows
        before_alone = counts[i + 1] * most >= total and 2 * inside * codes >= rows
        ends[i] = n_ends < most - 1 and (alone or is_full or before_alone)
        if ends[i]:
            if not alone:
                rows, codes = rows - inside, max(codes - 1, 1)
            inside, n_ends = 0, n_ends + 1


def _ranks(ids: np.ndarray, column: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Ranks of the categories of a column by their mean scores; neighbours share a rank if there are too many."""
    known = ~np.isnan(column)
    indices = np.searchsorted(ids, column[known])
    centred = scores[known] - (scores.mean() if len(scores) else 0.0)
    counts, sums = np.bincount(indices, minlength=len(ids)), np.bincount(indices, centred, len(ids))
    order = np.argsort(sums / (counts + PRIOR_ROWS), kind="stable")
    ranks = np.empty(len(ids), np.int64)
    ranks[order] = np.arange(len(ids)) if len(ids) <= MOST_CODES else _shared_ranks(counts[order])
    return ranks.astype(np.uint8)


def _shared_ranks(counts: np.ndarray) -> np.ndarray:
    """Ranks of ordered categories, with about the same number of rows in each rank."""
    middle = np.cumsum(counts) - counts / 2.0
    return np.minimum((middle / counts.sum() * MOST_CODES).astype(np.int64), MOST_CODES - 1)


def place_of(points, low, high, x):
    """The place of the first of the ascending points low .. high above x; without a branch, each step halves them."""
    place, size = np.uint64(low), np.uint64(high - low)
    while size > np.uint64(1):
        half = size >> np.uint64(1)
        place += half * np.uint64(points[place + half - np.uint64(1)] <= x)
        size -= half
    return place + np.uint64(points[place] <= x) if size == np.uint64(1) else place


@compiled
def write_codes(
    bins: Bins,
    columns: Annotated[np.ndarray, "float64[rows, columns]"],
    codes: Annotated[np.ndarray, "uint8[rows, columns]"],
) -> None:
    """Write codes, of some rows column by column, so that points and rows stay in the cache."""
    n = len(columns)
    for start in range(0, n, BLOCK):
        for j in range(columns.shape[1]):
            low, high = bins.starts[j], bins.starts[j + 1]
            for i in range(start, min(start + BLOCK, n)):
                x = columns[i, j]
                place = place_of(bins.points, low, high, x)
                code = place - np.uint64(low)
                if bins.is_categorical[j]:
                    is_known = np.int64(place) > low and bins.points[place - np.uint64(1)] == x
                    code = np.uint64(bins.ranks[place - np.uint64(1)] if is_known else MISSING)
                codes[i, j] = MISSING if np.isnan(x) else code


def codes_of(bins: Bins, columns: np.ndarray) -> np.ndarray:
    """Codes (n, c) uint8 of rows."""
    codes = np.empty(columns.shape, np.uint8)
    write_codes(bins, np.ascontiguousarray(columns), codes)
    return codes
