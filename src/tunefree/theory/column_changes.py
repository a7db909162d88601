"""Tests for changes of columns, and of their relations to the target, between two samples of rows.

The values of a column are binned: numbers by the quantiles of both samples together, missing values, and each category;
rare categories share a bin. Bins with too few rows for a test are merged. With counts x_b of n rows before, y_b of m
rows after, and shares p_b = x_b / n, q_b = y_b / m, the distance is the total variation with its standard error,

    d = 1/2 sum_b |p_b - q_b|,  e^2 = (1 - s_p^2) / (4 n) + (1 - s_q^2) / (4 m),  s_p = sum_b sign(p_b - q_b) p_b,  (1)

the delta method for fixed signs, and Pearson's test of homogeneity has the statistic

    X^2 = sum_b (sqrt(m / n) x_b - sqrt(n / m) y_b)^2 / (x_b + y_b)                                              (2)

(Press et al.: Numerical Recipes, 3rd edition, equation 14.3.3). For independent rows it has approximately a chi-square
distribution with one degree of freedom less than the number of bins. The relation of a column to the target is compared
in the same way, by (1) and (2) for the target's bins within each bin of the column. Then d is the mean over the
column's bins, weighted by their shares of all rows, and X^2 and the degrees of freedom are sums. A change of the target
changes its relation to all columns; then only relations count whose distance exceeds the target's distance plus two
standard errors. The level is divided by the number of tests (Bonferroni).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from tunefree.core.schema import Number, Record, Sequence, Size

LEVEL = 0.001  # probability of a false positive among all columns
BINS, RELATED_BINS = 10, 4  # largest numbers of bins of a column: for its values, and for relations
EXPECTED = 5.0  # least expected rows of the smaller sample in each bin (Cochran 1954)
FEWEST = 40  # least number of rows of the smaller sample
MOST_CHANGES = 12  # largest number of changes reported
MISSING = math.inf
TARGET = 0  # key of the target among the columns


class Bin(NamedTuple):
    """A bin of the values of a column."""

    kind: str  # "numbers", "category", "rare" for the rare categories together, or "missing"
    low: float | None = None  # the smallest and the largest value; equal for a category
    high: float | None = None


@dataclass(frozen=True)
class Change:
    """A significant change of the values of a column, or of its relation to the target."""

    key: Annotated[int, Number(-(2**31) + 1, 2**31 - 1, whole=True)]  # of the column
    is_relation: bool
    distance: Size
    error: Size  # standard error of the distance
    bin: Bin | None = None  # bin whose share changed most; None for a relation
    before: Annotated[float | None, Number(0, 1, may_be_none=True)] = None  # share of rows in this bin
    after: Annotated[float | None, Number(0, 1, may_be_none=True)] = None


@dataclass(frozen=True)
class Comparison:
    """The columns that changed between rows before and after."""

    rows_before: int
    rows_after: int
    columns: int  # number of compared columns
    changes: Annotated[list[Change], Sequence(Record(Change), MOST_CHANGES)]  # the largest distance first


class _Test(NamedTuple):
    """A test of the difference between two samples."""

    statistic: float  # equation (2)
    degrees: int  # of freedom of the chi-square distribution; 0 without a test
    distance: float  # equation (1)
    error: float

    def is_beyond(self, level: float) -> bool:
        """Whether the difference is significant at a level."""
        from scipy.special import chdtrc  # the import takes as long as a small training

        return self.degrees > 0 and bool(chdtrc(self.degrees, self.statistic) <= level)


def compared(before: np.ndarray, after: np.ndarray, keys: list[int], is_category: list[bool]) -> Comparison:
    """The columns that changed between two samples (n, c) and (m, c) of rows; the first column is the target.

    MISSING marks missing values; categories are unordered numbers. No column is compared if a sample has fewer than
    FEWEST rows.

    >>> rng = np.random.default_rng(0)
    >>> before, after = rng.normal(size=(400, 3)), rng.normal(size=(200, 3))
    >>> after[:, 1] += 1.0
    >>> (change,) = compared(before, after, [TARGET, 1, 2], [False] * 3).changes
    >>> change.key, change.is_relation, round(change.distance, 2), round(change.error, 2)
    (1, False, 0.45, 0.04)
    """
    n, m = len(before), len(after)
    if min(n, m) < FEWEST:
        return Comparison(n, m, 0, [])
    columns, changes, least_distance = np.concatenate([before, after]).T.copy(), list[Change](), 0.0
    level, target_codes = LEVEL / (2 * len(columns) - 1), np.zeros(0, np.int64)
    for c, (key, values, is_of_categories) in enumerate(zip(keys, columns, is_category, strict=True)):
        codes, related = (_bins(values, is_of_categories, k) for k in (BINS, RELATED_BINS))
        counts = _counts(codes, BINS + 1, n)
        test = _test(counts)
        if test.is_beyond(level):
            changed_bin = _changed_bin(counts, codes, values, is_of_categories)
            changes.append(Change(int(key), False, test.distance, test.error, *changed_bin))
        if c == 0:
            target_codes, least_distance = related, test.distance + 2.0 * test.error if changes else 0.0
            continue
        width = RELATED_BINS + 1
        counts = _counts(related * width + target_codes, width**2, n)
        test = _test(counts.reshape(2, width, width))
        if test.is_beyond(level) and test.distance > least_distance:
            changes.append(Change(int(key), True, test.distance, test.error))
    changes.sort(key=lambda change: -round(change.distance, 12))
    return Comparison(n, m, len(columns), changes[:MOST_CHANGES])


def _changed_bin(
    counts: np.ndarray, codes: np.ndarray, values: np.ndarray, is_category: bool
) -> tuple[Bin, float, float]:
    """The bin whose share differs most, and its shares before and after."""
    p, q = counts / counts.sum(axis=-1, keepdims=True)
    b = int(np.argmax(np.abs(p - q)))
    bin_values = values[(codes == b) & (values != MISSING)]
    low, high = (float(bin_values.min()), float(bin_values.max())) if len(bin_values) else (None, None)
    if low is None or (is_category and low != high):
        changed_bin = Bin("missing" if low is None else "rare")
    else:
        changed_bin = Bin("category" if is_category else "numbers", low, high)
    return changed_bin, float(p[b]), float(q[b])


def _test(counts: np.ndarray) -> _Test:
    """The test for counts (2, bins), or (2, k, bins) within k bins of another column."""
    merged = _merged(counts)
    rows = merged.sum(axis=0)
    degrees = np.count_nonzero(rows, axis=-1) - 1
    is_used = degrees > 0
    distance, error = _distance(merged)
    weight = np.where(is_used, rows.sum(axis=-1), 0)
    total, statistic = max(weight.sum(), 1), float(np.where(is_used, _chi_square(merged), 0.0).sum())
    mean, deviation = float((weight * distance).sum() / total), float(np.sqrt(((weight * error) ** 2).sum()) / total)
    return _Test(statistic, int(np.where(is_used, degrees, 0).sum()), mean, deviation)


def _counts(codes: np.ndarray, width: int, n: int) -> np.ndarray:
    """Counts (2, width) of the codes 0 .. width - 1 in the first n rows and in the other rows."""
    return np.stack([np.bincount(part, minlength=width) for part in (codes[:n], codes[n:])])


def _merged(counts: np.ndarray) -> np.ndarray:
    """Counts (2, ..., bins + 1) with bins too rare for a test merged into the last one; all 0 for small samples."""
    totals = counts.sum(axis=-1, keepdims=True)
    fewer, all_rows = totals.min(axis=0), totals.sum(axis=0)
    is_rare = counts.sum(axis=0) * fewer < EXPECTED * all_rows
    rare = np.where(is_rare, counts, 0).sum(axis=-1, keepdims=True)
    is_kept = rare.sum(axis=0) * fewer >= EXPECTED * all_rows
    merged = np.concatenate([np.where(is_rare, 0, counts), is_kept * rare], axis=-1)
    return np.where(fewer < 2.0 * EXPECTED, 0, merged)


def _chi_square(counts: np.ndarray) -> np.ndarray:
    """Equation (2) for counts (2, ..., bins)."""
    (x, y), (n, m) = counts, np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    ratio = np.sqrt(m / n)
    statistic: np.ndarray = ((ratio * x - y / ratio) ** 2 / np.maximum(x + y, 1)).sum(axis=-1)
    return statistic


def _distance(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equation (1) for counts (2, ..., bins): distances and standard errors."""
    rows = np.maximum(counts.sum(axis=-1), 1)
    shares = counts / rows[..., None]
    p, q = shares
    variance = ((1.0 - (np.sign(p - q) * shares).sum(axis=-1) ** 2) / (4.0 * rows)).sum(axis=0)
    return np.abs(p - q).sum(axis=-1) / 2.0, np.sqrt(np.maximum(variance, 0.0))


def _bins(values: np.ndarray, is_category: bool, most: int) -> np.ndarray:
    """The bin numbers (rows,) of a column, below ``most``; missing numbers have the bin ``most``."""
    if is_category:
        _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
        ranks = np.argsort(np.argsort(-counts, kind="stable"))
        return np.minimum(ranks, most - 1)[codes]
    sorted_values = np.sort(values[values != MISSING])
    if not len(sorted_values):
        return np.full(len(values), most)
    edges = sorted_values[np.maximum((np.arange(1, most) * len(sorted_values) - 1) // most, 0)]
    return np.where(values == MISSING, most, np.searchsorted(edges, values))
