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
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc

LEVEL = 0.001  # probability that a column is beyond it by chance, of all columns together
BINS, RELATED_BINS = (
    10,
    4,
)  # of a column, at most: of its values alone, and where its relation to the target is compared
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
    """Values of two samples, in bins."""

    codes: np.ndarray  # (n + m,) int64
    n_bins: int
    is_rare: bool  # whether the first bin is that of the rare categories


def compared(
    before: np.ndarray, after: np.ndarray, keys: Sequence[int], is_category: Sequence[bool]
) -> Comparison | None:
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
    Comparison or None
        None if a sample has fewer than FEWEST rows.

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
        return None
    both, is_before = np.concatenate([before, after]), np.arange(n + m) < n
    share, level = min(n, m) / (n + m), LEVEL / (2 * both.shape[1] - 1)
    target = _binned(both[:, 0], is_category[0], share, RELATED_BINS)
    changes, least = [], 0.0
    for c, (key, values, of_categories) in enumerate(zip(keys, both.T.copy(), is_category, strict=True)):
        binned = _binned(values, of_categories, share, BINS)
        changes += _of_values(int(key), values, of_categories, binned, is_before, level)
        if c == 0:
            distance, error = _distance(*_counts(target.codes, is_before, target.n_bins))
            least = distance + 2.0 * error if changes else 0.0
        else:
            few = _binned(values, of_categories, share, RELATED_BINS)
            relation = _of_relation(int(key), few, target, is_before, level)
            changes += [change for change in relation if change.distance > least]
    changes.sort(key=lambda change: -change.distance)
    return Comparison(n, m, both.shape[1], changes[:MOST_CHANGES])


def _of_values(
    key: int, values: np.ndarray, is_category: bool, binned: _Binned, is_before: np.ndarray, level: float
) -> list[Change]:
    """The change of a column's values, if it is beyond chance."""
    x, y = _counts(binned.codes, is_before, binned.n_bins)
    if len(x) < 2 or chdtrc(len(x) - 1, _chi_square(x, y)) > level:
        return []
    p, q = x / x.sum(), y / y.sum()
    b = int(np.argmax(np.abs(p - q)))
    held = _bin(values[binned.codes == b], is_category, binned.is_rare and b == 0)
    return [Change(key, False, *_distance(x, y), held, float(p[b]), float(q[b]))]


def _of_relation(key: int, values: _Binned, target: _Binned, is_before: np.ndarray, level: float) -> list[Change]:
    """The change of a column's relation to the target, if it is beyond chance."""
    statistic, degrees, distance, variance, rows = 0.0, 0, 0.0, 0.0, 0
    for b in range(values.n_bins):
        here = values.codes == b
        x, y = _merged(*_counts(target.codes[here], is_before[here], target.n_bins))
        if len(x) < 2:
            continue
        of_bin, error = _distance(x, y)
        statistic, degrees = statistic + _chi_square(x, y), degrees + len(x) - 1
        count = int(x.sum() + y.sum())
        distance, variance, rows = distance + count * of_bin, variance + (count * error) ** 2, rows + count
    if not degrees or chdtrc(degrees, statistic) > level:
        return []
    return [Change(key, True, distance / rows, math.sqrt(variance) / rows)]


def _counts(codes: np.ndarray, is_before: np.ndarray, n_bins: int) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.bincount(codes[rows], minlength=n_bins) for rows in (is_before, ~is_before))  # type: ignore[return-value]


def _merged(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts in which bins that are too rare for a test are one; no bins where a sample has too few rows."""
    n, m = int(x.sum()), int(y.sum())
    if min(n, m) < 2.0 * EXPECTED:
        return x[:0], y[:0]
    is_rare = (x + y) * min(n, m) < EXPECTED * (n + m)
    rare = [x[is_rare].sum(), y[is_rare].sum()]
    if sum(rare) * min(n, m) < EXPECTED * (n + m):
        return x[~is_rare], y[~is_rare]
    return np.append(x[~is_rare], rare[0]), np.append(y[~is_rare], rare[1])


def _chi_square(x: np.ndarray, y: np.ndarray) -> float:
    """Equation (2)."""
    ratio = math.sqrt(y.sum() / x.sum())
    return float(((ratio * x - y / ratio) ** 2 / (x + y)).sum())


def _distance(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Equation (1)."""
    n, m = int(x.sum()), int(y.sum())
    p, q = x / n, y / m
    sign = np.sign(p - q)
    variance = (1.0 - float(sign @ p) ** 2) / (4.0 * n) + (1.0 - float(sign @ q) ** 2) / (4.0 * m)
    return float(np.abs(p - q).sum() / 2.0), math.sqrt(max(variance, 0.0))


def _binned(values: np.ndarray, is_category: bool, share: float, most: int) -> _Binned:
    """Values in bins that have EXPECTED rows or more in the smaller sample, which has this share of all rows."""
    bin_of = (_categories if is_category else _numbers)(values, EXPECTED / share, most)
    kept, codes = np.unique(bin_of, return_inverse=True)
    return _Binned(codes, len(kept), bool(kept[0] == RARE))


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


def _numbers(values: np.ndarray, least: float, most: int) -> np.ndarray:
    """Bins from quantile to quantile; a number that is frequent, and missing ones, have bins of their own.

    Cells are the gaps between quantiles, at even places, and the quantiles themselves; neighbours make a bin.
    """
    known = values[values != MISSING]
    if not len(known):
        return np.zeros(len(values), np.int64)
    quantiles = np.unique(np.quantile(known, np.linspace(0.0, 1.0, most + 1)[1:-1], method="inverted_cdf"))
    cells = np.searchsorted(quantiles, values, "left") + np.searchsorted(quantiles, values, "right")
    bin_of, number, count = np.zeros(2 * len(quantiles) + 1, np.int64), 0, 0
    enough = max(least, len(known) / most)
    for cell, rows in enumerate(np.bincount(cells[values != MISSING], minlength=len(bin_of)).tolist()):
        bin_of[cell], count = number, count + rows
        if count >= enough:
            number, count = number + 1, 0
    bin_of = np.minimum(bin_of, max(number - 1, 0))  # what is left belongs to the last bin
    missing = number if len(values) - len(known) >= least else 0
    return np.where(values == MISSING, missing, bin_of[np.minimum(cells, len(bin_of) - 1)])
