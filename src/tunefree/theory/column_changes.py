"""Which columns changed most between two samples of rows, and in which the relation to the target did.

The values of a column are put into bins: numbers by quantiles of both samples together, categories by themselves, the
rare ones together, and missing ones. With counts x_b of n rows before, y_b of m rows after, and shares p_b = x_b / n,
q_b = y_b / m, the distance is the total variation with its standard error,

    d = 1/2 sum_b |p_b - q_b|,  e^2 = (1 - s_p^2) / (4 n) + (1 - s_q^2) / (4 m),  s_p = sum_b sign(p_b - q_b) p_b,  (1)

the delta method for fixed signs, and Pearson's test of homogeneity has the statistic

    X^2 = sum_b (sqrt(m / n) x_b - sqrt(n / m) y_b)^2 / (x_b + y_b)                                              (2)

(Press et al.: Numerical Recipes, 3rd edition, equation 14.3.3), of about a chi-square distribution with one degree less
than there are bins, if rows are independent. The relation of a column to the target is compared in the same way: (1)
and (2) of the target's bins, within each bin of the column. There d is the mean over the bins of the column, by their
shares of all rows, and X^2 and the degrees are sums. Where the values of the target changed, so did its relation to
all columns; then relations count whose distance is larger than that of the target by two standard errors. The level is
divided by the number of tests (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

LEVEL = 0.001  # probability that a column is beyond it by chance, of all columns together
BINS, RELATED_BINS = 10, 4  # of a column, at most: of its values alone, and where relations are compared
EXPECTED = 5.0  # rows of the smaller sample in each bin, at least (Cochran 1954)
FEWEST = 40  # rows of the smaller sample
MOST_CHANGES = 12  # that are kept, of all columns
MISSING = math.inf
TARGET = 0  # key of the target among the columns
RARE = -1  # code of the rare categories together


class Bin(NamedTuple):
    """What a bin holds."""

    kind: str  # "numbers", "category", "rare" for the rare categories together, or "missing"
    low: float | None = None  # the smallest and the largest number; a category is its own
    high: float | None = None


@dataclass(frozen=True)
class Change:
    """A column whose values, or whose relation to the target, differ by more than chance would let them."""

    key: int  # of the column
    is_relation: bool
    distance: float
    error: float  # its standard error
    bin: Bin | None = None  # of the values, in which shares differ most; None of a relation
    before: float | None = None  # the share of this bin
    after: float | None = None


@dataclass(frozen=True)
class Comparison:
    """What changed between rows before and after."""

    rows_before: int
    rows_after: int
    columns: int  # that were compared
    changes: list[Change]  # the largest distance first

    @classmethod
    def restore(cls, saved: dict[str, Any] | None) -> Comparison | None:
        """The comparison of which a file holds the fields."""
        if saved is None:
            return None
        bins = [None if change["bin"] is None else Bin(*change["bin"]) for change in saved["changes"]]
        changes = [Change(**change | {"bin": held}) for change, held in zip(saved["changes"], bins, strict=True)]
        return cls(**saved | {"changes": changes})


class _Binned(NamedTuple):
    """Values of several columns in bins."""

    codes: np.ndarray  # (c, rows) int64
    n_bins: np.ndarray  # (c,) int64
    is_rare: np.ndarray  # (c,) bool: whether the first bin of a column is that of the rare categories


class _Tests(NamedTuple):
    """What differs between two samples, of each column."""

    statistic: np.ndarray  # (c,) equation (2)
    degrees: np.ndarray  # (c,) of its chi-square distribution; 0 where there is no test
    distance: np.ndarray  # (c,) equation (1)
    error: np.ndarray  # (c,)

    def are_beyond(self, level: float) -> np.ndarray:
        """Which columns (c,) differ by more than chance would let them."""
        is_tested = self.degrees > 0
        if not is_tested.any():
            return is_tested
        from scipy.special import chdtrc  # which takes as long to import as a small training takes

        return is_tested & (chdtrc(np.where(is_tested, self.degrees, 1), self.statistic) <= level)


def compared(before: np.ndarray, after: np.ndarray, keys: Sequence[int], is_category: Sequence[bool]) -> Comparison:
    """Compare two samples of rows.

    Parameters
    ----------
    before, after : (n, c), (m, c) arrays
        The first column is the target. MISSING is missing; categories are numbers without an order.
    keys : sequence of int
        What the columns are known by.
    is_category : sequence of bool

    Returns
    -------
    Comparison
        Of no columns if a sample has fewer than FEWEST rows.

    Examples
    --------
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
    both, of_categories = np.concatenate([before, after]).T.copy(), np.asarray(is_category, bool)
    share, level = min(n, m) / (n + m), LEVEL / (2 * len(both) - 1)
    binned, related = (_binned(both, of_categories, EXPECTED / share, most) for most in (BINS, RELATED_BINS))
    x, y = _counts(binned.codes, BINS + 1, n)
    of_values, of_relations = _values(x, y), _relations(related, n)
    is_changed, is_related = of_values.are_beyond(level), of_relations.are_beyond(level)
    least = of_values.distance[0] + 2.0 * of_values.error[0] if is_changed[0] else 0.0
    is_related[0] = False
    is_related &= of_relations.distance > least
    changes = [(float(of_values.distance[c]), 2 * c) for c in np.flatnonzero(is_changed).tolist()]
    changes += [(float(of_relations.distance[c]), 2 * c + 1) for c in np.flatnonzero(is_related).tolist()]
    kept = []
    for distance, place in sorted(changes, key=lambda change: (-round(change[0], 12), change[1]))[:MOST_CHANGES]:
        c, is_relation = divmod(place, 2)
        error = float((of_relations if is_relation else of_values).error[c])
        change = Change(int(keys[c]), bool(is_relation), distance, error)
        kept.append(change if is_relation else _with_bin(change, both[c], bool(of_categories[c]), binned, c, x, y))
    return Comparison(n, m, len(both), kept)


def _with_bin(
    change: Change, values: np.ndarray, is_category: bool, binned: _Binned, c: int, x: np.ndarray, y: np.ndarray
) -> Change:
    """A change with the bin of column c in which shares differ most."""
    p, q = x[c] / x[c].sum(), y[c] / y[c].sum()
    b = int(np.argmax(np.abs(p - q)))
    held = _bin(values[binned.codes[c] == b], is_category, bool(binned.is_rare[c]) and b == 0)
    return replace(change, bin=held, before=float(p[b]), after=float(q[b]))


def _values(x: np.ndarray, y: np.ndarray) -> _Tests:
    """Tests of the values of columns, by counts (c, bins) before and after."""
    return _Tests(_chi_square(x, y), np.count_nonzero(x + y, axis=-1) - 1, *_distance(x, y))


def _relations(binned: _Binned, n: int) -> _Tests:
    """Tests of the relations of columns to the first one, the target, by the first n rows and the others."""
    width = RELATED_BINS + 1
    codes = binned.codes * width + binned.codes[0]
    x, y = (count.reshape(-1, width, width) for count in _counts(codes, width**2, n))
    x, y = _merged(x, y)
    degrees = np.count_nonzero(x + y, axis=-1) - 1
    is_used = degrees > 0
    statistic, (distance, error) = np.where(is_used, _chi_square(x, y), 0.0).sum(axis=1), _distance(x, y)
    weight = np.where(is_used, (x + y).sum(axis=-1), 0)
    total = np.maximum(weight.sum(axis=1), 1)
    mean, deviation = (weight * distance).sum(axis=1) / total, np.sqrt(((weight * error) ** 2).sum(axis=1)) / total
    return _Tests(statistic, np.where(is_used, degrees, 0).sum(axis=1), mean, deviation)


def _counts(codes: np.ndarray, width: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """How often each column (c, rows) has each code below the width: (c, width) of the first n rows and the others."""
    shifted, size = codes + width * np.arange(len(codes))[:, None], width * len(codes)
    before, after = (np.bincount(part.reshape(-1), minlength=size) for part in (shifted[:, :n], shifted[:, n:]))
    return before.reshape(-1, width), after.reshape(-1, width)


def _merged(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts (..., bins) in which those that are too rare for a test are one, the last; all 0 of samples too small."""
    n, m = x.sum(axis=-1, keepdims=True), y.sum(axis=-1, keepdims=True)
    fewer, all_rows = np.minimum(n, m), n + m
    is_rare = (x + y) * fewer < EXPECTED * all_rows
    rare = [np.where(is_rare, counts, 0).sum(axis=-1, keepdims=True) for counts in (x, y)]
    is_kept = sum(rare) * fewer >= EXPECTED * all_rows
    merged = (
        np.where(fewer < 2.0 * EXPECTED, 0, np.concatenate([np.where(is_rare, 0, c), is_kept * r], axis=-1))
        for c, r in zip((x, y), rare, strict=True)
    )
    return next(merged), next(merged)


def _chi_square(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Equation (2) of counts (..., bins)."""
    n, m = (np.maximum(counts.sum(axis=-1, keepdims=True), 1) for counts in (x, y))
    ratio = np.sqrt(m / n)
    statistic: np.ndarray = ((ratio * x - y / ratio) ** 2 / np.maximum(x + y, 1)).sum(axis=-1)
    return statistic


def _distance(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Equation (1) of counts (..., bins)."""
    n, m = (np.maximum(counts.sum(axis=-1), 1) for counts in (x, y))
    p, q = x / n[..., None], y / m[..., None]
    sign = np.sign(p - q)
    variance = (1.0 - (sign * p).sum(axis=-1) ** 2) / (4.0 * n) + (1.0 - (sign * q).sum(axis=-1) ** 2) / (4.0 * m)
    return np.abs(p - q).sum(axis=-1) / 2.0, np.sqrt(np.maximum(variance, 0.0))


def _binned(values: np.ndarray, is_category: np.ndarray, least: float, most: int) -> _Binned:
    """Columns (c, rows) in bins that have so many rows at least."""
    codes, n_bins = np.zeros(values.shape, np.int64), np.ones(len(values), np.int64)
    is_rare, numbers = np.zeros(len(values), bool), np.flatnonzero(~is_category)
    codes[numbers], n_bins[numbers] = _numbers(values[numbers], least, most)
    for c in np.flatnonzero(is_category):
        kept, codes[c] = np.unique(_categories(values[c], least, most), return_inverse=True)
        n_bins[c], is_rare[c] = len(kept), kept[0] == RARE
    return _Binned(codes, n_bins, is_rare)


def _bin(values: np.ndarray, is_category: bool, is_rare: bool) -> Bin:
    """The bin that has these values."""
    known = values[values != MISSING]
    if is_rare or not len(known):
        return Bin("rare" if is_rare else "missing")
    return Bin("category" if is_category else "numbers", float(known.min()), float(known.max()))


def _categories(values: np.ndarray, least: float, most: int) -> np.ndarray:
    """The most frequent categories, and all others together."""
    different, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    kept = [int(k) for k in order[: most - 1] if counts[k] >= least]
    if kept and 0 < len(values) - int(counts[kept].sum()) < least:
        kept.pop()
    place = np.full(len(different), RARE)
    place[kept] = np.arange(len(kept))
    return place[codes]


def _numbers(values: np.ndarray, least: float, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Bins of columns (c, rows) from quantile to quantile, and how many each column has.

    Cells are the gaps between quantiles, at even places, and the quantiles themselves; neighbours make a bin. So a
    number that is frequent has a bin to itself, and missing ones have theirs.
    """
    known = np.count_nonzero(values != MISSING, axis=1)
    places = (np.arange(1, most) * known[:, None] - 1) // most  # the k-th of the smallest share k / most ends there
    quantiles = np.take_along_axis(np.sort(values, axis=1), np.maximum(places, 0), axis=1)
    cells, n_cells = np.zeros(values.shape, np.uint8), 2 * most
    for quantile in quantiles.T[:, :, None]:
        cells += values > quantile
        cells += values >= quantile
    cells = np.where(values == MISSING, n_cells - 1, cells.astype(np.int64))
    _, counts = _counts(cells, n_cells, 0)
    bin_of, number, count = np.zeros(counts.shape, np.int64), np.zeros(len(values), np.int64), np.zeros(len(values))
    enough = np.maximum(least, known / most)
    for cell in range(n_cells - 1):
        bin_of[:, cell] = number
        count += counts[:, cell]
        number += count >= enough
        count = np.where(count >= enough, 0.0, count)
    bin_of = np.minimum(bin_of, np.maximum(number - 1, 0)[:, None])  # what is left belongs to the last bin
    has_missing = counts[:, -1] >= least
    bin_of[:, -1] = np.where(has_missing, number, 0)
    return np.take_along_axis(bin_of, cells, axis=1), np.maximum(number + has_missing, 1)
