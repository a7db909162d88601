"""Rows that generations are grown on, in bounded memory: a uniform sample of those so far, or the latest ones.

Vitter: Random sampling with a reservoir (ACM TOMS 1985), Algorithm R, where the random number of a row is a hash of its
row number, so that the sample does not depend on the division of rows into blocks.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import LEARNED, Part, argument, array, number, packed
from tunefree.core.schema import COUNT, Number

MOST_ROWS = 2**20  # largest number of rows kept; integer sums over more rows would lack bits
FEWEST_OF = 2**7  # however wide rows are, at least 1 / FEWEST_OF of the largest number is kept
SINGLE = ["float32"]
ARRAYS = ("columns", "targets", "weights", "digests")
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FEWEST_KEPT = 2**14  # smallest number of rows kept where memory is short
WIDE = 2**6  # number of columns beyond which fewer rows are kept: 512 MiB of numbers


def mixed(bits):
    """Bits that all depend on all of those before (Steele, Lea, Flood: splitmix, OOPSLA 2014)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def hashed(numbers: np.ndarray) -> np.ndarray:
    """64-bit hashes of integers."""
    return np.asarray(mixed(numbers.astype(np.uint64) * GOLDEN))


def hashed_values(features: np.ndarray, values: np.ndarray) -> np.ndarray:
    """64-bit hashes of values of features; 0 for the value 0."""
    known = np.ascontiguousarray(values + 0.0)  # turns -0.0 into 0.0
    keys = hashed(features.astype(np.int64).view(np.uint64))
    return np.where(known == 0.0, np.uint64(0), hashed(known.view(np.uint64) + keys))


def _numbers(name: str, *axes: Any, **limits: bool) -> Any:
    """The declaration of an array of numbers, in single precision as long as this is exact."""

    def write(reservoir: Any, numbers: np.ndarray) -> None:
        setattr(reservoir, name, packed(numbers, SINGLE))

    return array("float64|float32", ("n", *axes), LEARNED, write=write, **limits)


class Reservoir(Part):
    """Some rows of a stream, with their targets, weights and digests: the latest, or a uniform sample."""

    latest = argument()
    most = number(LEARNED, Number(1, MOST_ROWS, whole=True))
    rows = number(LEARNED, COUNT)
    columns = _numbers("columns", None, may_be_infinite=True, may_be_missing=True)
    targets, weights = _numbers("targets"), _numbers("weights")
    digests = array("uint64", ("n",), LEARNED)

    def __init__(self, latest: int = 0, most: int = MOST_ROWS) -> None:
        self.latest, self.most, self.rows = latest, most, 0
        # (capacity, c), NaN for missing values; in single precision as long as this is exact
        self.columns = np.empty((0, 0), np.float32)
        self.targets, self.weights = np.empty((2, 0), np.float32)  # (capacity,)
        self.digests = np.empty(0, np.uint64)  # (capacity,)

    @property
    def capacity(self) -> int:
        """The largest number of rows kept."""
        limit = max(self.most * WIDE // max(self.columns.shape[1], 1), self.most // FEWEST_OF)
        return min(self.latest or self.most, limit)

    @property
    def n_kept(self) -> int:
        """The number of rows kept."""
        return min(self.rows, self.capacity)

    def add(
        self, columns: np.ndarray, targets: np.ndarray, weights: np.ndarray, digests: np.ndarray, fills: list[float]
    ) -> None:
        """Add rows (n, c) in order; later rows may have more columns at the end, whose fill values earlier rows get."""
        if not len(targets):
            return
        before = self.columns.shape[1]
        if columns.shape[1] > before:
            wider = np.tile(fills[: columns.shape[1]], (len(self.columns), 1))
            wider[:, :before] = self.columns
            self.widen(wider)
        positions, rows = self._positions(self.rows + np.arange(len(targets)))
        size, needed = len(self.targets), int(positions.max(initial=-1)) + 1
        size = size if needed <= size else min(max(needed, 2 * size, 64), self.capacity)
        for name, values in zip(ARRAYS, (columns, targets, weights, digests), strict=True):
            added, kept = packed(values[rows], SINGLE if values is not digests else []), getattr(self, name)
            dtype = np.promote_types(kept.dtype, added.dtype)
            if len(kept) < size or dtype != kept.dtype:
                kept, smaller = np.zeros((size, *kept.shape[1:]), dtype), kept
                kept[: len(smaller)] = smaller
            kept[positions] = added
            setattr(self, name, kept)
        self.rows += len(targets)

    def kept(self, latest: int = 0, columns: list[int] | None = None) -> dict[str, Any]:
        """Copies of the arrays, by name, of all kept rows, or of the latest rows in their order."""
        n = self.n_kept
        order: Any = np.arange(self.rows - min(n, latest), self.rows) % self.capacity if latest else slice(n)
        arrays: dict[str, np.ndarray] = {name: getattr(self, name)[order] for name in ARRAYS}
        if columns is not None:
            arrays["columns"] = arrays["columns"].take(columns, axis=1)
        arrays |= {name: arrays[name].astype(np.float64, copy=False) for name in ARRAYS if name != "digests"}
        return {name: array if array.flags.owndata else array.copy() for name, array in arrays.items()}

    def widen(self, columns: np.ndarray) -> None:
        """Replace the columns by wider ones; fewer rows may be kept then, as if all rows had been so wide."""
        self._change(packed(columns, SINGLE), self.most)

    def keep(self, n: int) -> None:
        """Limit the number of rows in a uniform sample from now on."""
        width = min(max(self.columns.shape[1], WIDE), WIDE * FEWEST_OF)
        self._change(self.columns, math.ceil(n * width / WIDE))

    def _change(self, columns: np.ndarray, most: int) -> None:
        n = self.n_kept
        numbers = np.arange(n) + (self.rows - n if self.latest else 0)
        sources, self.columns, self.most = numbers % self.capacity, columns, most
        if n > self.capacity:
            _, rows = self._positions(numbers)
            for name in ARRAYS:
                setattr(self, name, getattr(self, name)[sources[rows]])

    def _positions(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ascending positions of rows with these row numbers, and the index of the row at each: the latest one."""
        positions = numbers % self.capacity
        if not self.latest:
            chosen = (hashed(numbers + 1) % (numbers + 1).astype(np.uint64)).astype(np.int64)
            positions = np.where(numbers < self.capacity, numbers, chosen)
        kept = positions < self.capacity
        taken, last = np.unique(positions[kept][::-1], return_index=True)
        return taken, np.flatnonzero(kept)[::-1][last]

    def prepare(self) -> None:
        """Shrink the arrays to the kept rows."""
        for name in ARRAYS:
            setattr(self, name, getattr(self, name)[: self.n_kept])

    def check(self) -> None:
        """Raise a ModelError unless the number of kept rows agrees with the header."""
        if len(self.targets) != self.n_kept:
            raise ModelError(f"there are {len(self.targets)} rows of a sample, where the header tells {self.n_kept}")
