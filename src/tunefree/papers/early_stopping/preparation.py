"""Preparation of rows for the subgradient method: they are standardised, and some are held out.

Everything here depends on the weighted set of rows alone, not on how it is written down: a row of weight 2 stands for
two equal rows, and equal rows are held out together or not at all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tunefree.core.rows import Block
from tunefree.estimators.tables import as_block
from tunefree.estimators.validation import digests, target_digests
from tunefree.papers.kernel.points import as_csr

DENSE_BYTES = 2**30  # rows that take at most this are stored as an array; columns of a sparse matrix are not centred
FEWEST = 40  # different rows that are too few to hold any out
FARTHEST = 1e100  # standardised numbers are cut here: their squares are numbers
FARTHEST_THIN = 1e15  # the same in single precision
LARGEST = np.finfo(np.float64).max


def matrix(blocks: list[Block], n_features: int, is_dense: bool | None = None) -> Any:
    """Blocks of rows as one array or sparse matrix, without the constant.

    ``n_features``: features of the model, the constant included; other features are left out.
    ``is_dense``: whether to make an array of sparse rows; by default if it takes at most ``DENSE_BYTES``.
    """
    if all(X.numbers.shape[1] and not X.is_table for X in blocks):
        return np.concatenate([X.numbers for X in blocks])
    whole = sparse.vstack([as_csr(X, n_features) for X in blocks], format="csr")[:, 1:]
    is_dense = whole.shape[0] * whole.shape[1] * 8 <= DENSE_BYTES if is_dense is None else is_dense
    return whole.toarray() if is_dense else whole


def shares(weight: np.ndarray) -> np.ndarray:
    """Weights in proportion, of sum 1, whatever their size; none for none."""
    relative = weight / weight.max(initial=np.finfo(np.float64).tiny)
    return relative / max(relative.sum(), np.finfo(np.float64).tiny)


class Standards(NamedTuple):
    """Scales by which columns have mean 0 and mean square 1; sparse columns keep their zeros, and their means."""

    unit: np.ndarray  # (d,) largest absolute value, a power of two; 1 for columns of zeros
    centre: np.ndarray  # (d,) in units; 0 for sparse columns
    spread: np.ndarray  # (d,) in units

    def apply(self, X: Any, farthest: float = FARTHEST) -> Any:
        """Standardised rows, cut at ``farthest``."""
        if sparse.issparse(X):
            scaled = X.copy()
            with np.errstate(over="ignore"):  # a new row may be larger than any that was learned
                scaled.data = np.clip(scaled.data / self.unit[X.indices] / self.spread[X.indices], -farthest, farthest)
            return scaled
        with np.errstate(over="ignore"):
            return np.clip((X / self.unit - self.centre) / self.spread, -farthest, farthest)

    def restore(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights (d, K) of the columns as given, and the constants (K,) that go with them."""
        relative = weights / self.spread[:, None]
        with np.errstate(over="ignore"):
            return np.clip(relative / self.unit[:, None], -LARGEST, LARGEST), -(self.centre @ relative)


def standards(X: Any, weight: np.ndarray) -> Standards:
    """Standards of rows with weights of sum 1; columns that never change keep the size they have."""
    unit = units(X).unit
    if sparse.issparse(X):
        rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        squares = np.bincount(X.indices, weight[rows] * (X.data / unit[X.indices]) ** 2, minlength=X.shape[1])
        return Standards(unit, np.zeros(X.shape[1]), np.where(squares > 0, np.sqrt(squares), 1.0))
    scaled = X / unit
    centre = weight @ scaled
    scaled -= centre
    spread = np.sqrt(weight @ np.square(scaled, out=scaled))
    return Standards(unit, centre, np.where(spread > 1e-12, spread, 1.0))


def unchanged(X: Any, farthest: float) -> Standards:
    """Standards that change nothing.

    ``farthest``: where rows are cut.
    Raises ValueError where sums of squares of such rows would leave the range of numbers.
    """
    values = X.data if sparse.issparse(X) else X
    if values.size and np.abs(values).max() > farthest:
        raise ValueError(f"X has values beyond {farthest:g}, whose squares are no numbers; pass standardize=True")
    d = X.shape[1]
    return Standards(np.ones(d), np.zeros(d), np.ones(d))


def units(X: Any) -> Standards:
    """Standards that bring columns to sizes from 1 to 2, without any rounding."""
    if sparse.issparse(X):
        largest = np.zeros(X.shape[1])
        np.maximum.at(largest, X.indices, np.abs(X.data))
    else:
        largest = np.maximum(X.max(axis=0, initial=0.0), -X.min(axis=0, initial=0.0))
    _, exponents = np.frexp(largest)
    unit = np.where(largest > 0, np.ldexp(1.0, np.maximum(exponents - 1, -1022)), 1.0)
    return Standards(unit, np.zeros(X.shape[1]), np.ones(X.shape[1]))


def order(X: Any, y: np.ndarray, random: np.random.RandomState) -> np.ndarray:
    """Keys (n,) that put rows in an order that looks random; those of equal rows with equal targets are the same.

    It depends on the contents of the rows, and is drawn anew for each state of the generator.

    Columns are taken in units of a power of two below their largest value, so that units do not change the order.
    """
    X = units(X).apply(X)
    salt = np.uint64(random.randint(0, 2**31 - 1))
    keys = ((digests(as_block(X)) + target_digests(y)) ^ salt) * np.uint64(0x9E3779B97F4A7C15)
    keys ^= keys >> np.uint64(29)
    keys *= np.uint64(0xBF58476D1CE4E5B9)
    keys ^= keys >> np.uint64(32)
    return keys


def held_out(keys: np.ndarray, strata: np.ndarray, weight: np.ndarray, fraction: float) -> np.ndarray:
    """Which rows (n,) to hold out: the first of the order in each stratum, up to a fraction of its weight.

    At least one of the different rows of a stratum is learned, and one is held out if there are two.
    """
    held = np.zeros(len(strata), bool)
    for stratum in np.unique(strata):
        place = np.flatnonzero(strata == stratum)
        _, which = np.unique(keys[place], return_inverse=True)
        mass = np.bincount(which, weight[place])
        below = np.cumsum(mass) <= fraction * mass.sum() * (1.0 + 1e-9)
        below[:1], below[-1:] = True, False
        held[place] = below[which]
    return held
