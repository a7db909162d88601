"""Rows as kernels take them, in single or double precision, and the numbers of pairs of them, a tile at a time.

Every product has the same shape whatever rows it is made of, padded with zeros. So a row's numbers do not depend on
the rows that it came with, and it does not matter where a stream is cut.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.kernels import Kernel
from tunefree.core.rows import Block, compressed, dense, sparse
from tunefree.papers.kernel.external import External
from tunefree.papers.kernel.pairs import DotProduct, L1Distance, pairing, sparse_numbers
from tunefree.papers.kernel.precision import DTYPES

BLOCK = 128  # rows whose kernel values are computed together
TILE = 1024  # points of the support whose kernel values are computed together


class DensePoints(NamedTuple):
    """Rows of an array."""

    values: np.ndarray  # (n, d)
    norms: np.ndarray  # (n,) sums of norm_terms

    @property
    def size(self) -> int:
        """How many points there are."""
        return len(self.norms)

    def empty(self, kernel: Any) -> DensePoints:
        """No points at all, of this kind."""
        width = 1 if kernel == External(None) else self.values.shape[1]  # of a precomputed matrix, its place in it
        return DensePoints(np.zeros((0, width), self.values.dtype), np.zeros(0, self.norms.dtype))

    def joined(self, n: int, others: DensePoints, which: np.ndarray) -> DensePoints:
        """The first n points and some others behind them, with zeros up to a whole number of tiles."""
        values, norms = (_roomy(array, n, n + len(which), TILE) for array in self)
        values[n : n + len(which)] = others.values[which, : values.shape[1]]
        norms[n : n + len(which)] = others.norms[which]
        return DensePoints(values, norms)

    def cut(self, start: int, stop: int) -> DensePoints:
        """The points from start to stop, sharing memory."""
        return DensePoints(self.values[start:stop], self.norms[start:stop])

    def as_matrix(self) -> np.ndarray:
        """The points as an array."""
        return self.values

    def as_rows(self) -> Block:
        """The points as rows without a constant."""
        return dense(self.values, intercept=False)

    def packed(self, n: int) -> dict[str, np.ndarray]:
        """The arrays of the first n points, without spare capacity."""
        return {"values": self.values[:n], "norms": self.norms[:n]}

    def as_kept_by(self, store: DensePoints) -> DensePoints:
        """The points as a store keeps them: of a row of a precomputed matrix, its place in it."""
        return DensePoints(np.ascontiguousarray(self.values[:, : store.values.shape[1]]), self.norms)

    def keys(self, n: int) -> list[bytes]:
        """For each of the first n points, bytes that only the same point has."""
        width = self.values.shape[1] * self.values.itemsize
        data = (self.values[:n] + 0).tobytes()  # -0.0 becomes 0.0
        return [data[i * width : (i + 1) * width] for i in range(n)]

    def pairs(self, block: DensePoints, kernel: Any, out: np.ndarray | None = None) -> np.ndarray:
        """The number of each pair (n, BLOCK) of these points and a block's, as the kernel takes it.

        They may be written to an array ``out``.
        """
        return kernel.pair.numbers(block, self, out)


class SparsePoints(NamedTuple):
    """Rows of which few features are not zero; methods as of :class:`DensePoints`."""

    pointers: np.ndarray  # (n + 1,) int64: row i has the entries pointers[i] .. pointers[i + 1]
    features: np.ndarray  # (entries,) int32
    values: np.ndarray  # (entries,)
    norms: np.ndarray  # (n,)

    @property
    def size(self) -> int:
        return len(self.norms)

    def empty(self, kernel: Any) -> SparsePoints:
        blank = np.zeros(0, self.values.dtype)
        return SparsePoints(np.zeros(1, np.int64), np.zeros(0, np.int32), blank, blank)

    def joined(self, n: int, others: SparsePoints, which: np.ndarray) -> SparsePoints:
        first, counts = self.pointers[n], np.diff(others.pointers)[which]
        after = first + np.cumsum(counts)
        last = int(after[-1]) if len(after) else int(first)
        pointers = _roomy(self.pointers, n + 1, n + 1 + len(which), TILE)
        pointers[n + 1 :] = last
        pointers[n + 1 : n + 1 + len(which)] = after
        starts = np.repeat(others.pointers[which] - (after - counts), counts)
        entries = starts + np.arange(first, last)
        features, values = (_roomy(array, first, last, TILE) for array in (self.features, self.values))
        features[first:last], values[first:last] = others.features[entries], others.values[entries]
        norms = _roomy(self.norms, n, n + len(which), TILE)
        norms[n : n + len(which)] = others.norms[which]
        return SparsePoints(pointers, features, values, norms)

    def cut(self, start: int, stop: int) -> SparsePoints:
        return SparsePoints(self.pointers[start : stop + 1], self.features, self.values, self.norms[start:stop])

    def as_matrix(self) -> Any:
        from scipy.sparse import csr_array

        shape = (self.size, 1 + int(self.features.max(initial=0)))
        return csr_array((self.values, self.features, self.pointers), shape)

    def as_rows(self) -> Block:
        first, last = self.pointers[0], self.pointers[self.size]
        pointers = self.pointers[: self.size + 1] - first
        return sparse(pointers, self.features[first:last], self.values[first:last], False)

    def packed(self, n: int) -> dict[str, np.ndarray]:
        last = int(self.pointers[n])
        kept = {"pointers": self.pointers[: n + 1], "features": self.features[:last], "values": self.values[:last]}
        return kept | {"norms": self.norms[:n]}

    def as_kept_by(self, store: SparsePoints) -> SparsePoints:
        return self

    def keys(self, n: int) -> list[bytes]:
        edges = self.pointers[: n + 1].tolist()
        spans = [slice(first, last) for first, last in pairwise(edges)]
        return [self.features[span].tobytes() + self.values[span].tobytes() for span in spans]

    def pairs(self, block: SparsePoints, kernel: Any, out: np.ndarray | None = None) -> np.ndarray:
        if isinstance(kernel, External):
            raise ModelError("a kernel given as a matrix or a function takes dense rows; pass an array")
        return sparse_numbers(kernel.pair, block, self, BLOCK, out)


def _roomy(array: np.ndarray, used: int, needed: int, unit: int) -> np.ndarray:
    """The array, or one of at least twice the size where it has no capacity."""
    room = -(-needed // unit) * unit + (1 if array.ndim == 1 and array.dtype == np.int64 else 0)
    if needed <= len(array) and len(array) >= room:
        return array
    grown = np.zeros((max(room, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[:used] = array[:used]
    return grown


def points(X: Block, kernel: Any, dtype: Any) -> DensePoints | SparsePoints:
    """A block of rows without its constant, as points of a kernel.

    Numbers of a table are entries, even where it has no codes and words: those may come with later rows.
    """
    if X.numbers.shape[1] and not X.is_table:
        return dense_points(X.numbers, kernel, dtype)
    return sparse_points(*compressed(X), kernel, dtype)


def dense_points(values: np.ndarray, kernel: Any, dtype: Any) -> DensePoints:
    """Rows of an array as points."""
    values = np.ascontiguousarray(values, dtype)
    return DensePoints(values, kernel.pair.norm_terms(values).sum(axis=1, dtype=np.float64).astype(dtype))


def sparse_points(pointers: Any, features: Any, values: Any, kernel: Any, dtype: Any) -> SparsePoints:
    """Compressed sparse rows as points."""
    pointers, values = np.ascontiguousarray(pointers, np.int64), np.ascontiguousarray(values, dtype)
    owner, n = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers)), len(pointers) - 1
    norms = np.bincount(
        owner, kernel.pair.norm_terms(values), n
    )  # row by row: a row's norm does not depend on the others
    return SparsePoints(pointers, np.ascontiguousarray(features, np.int32), values, norms.astype(dtype))


def selected(points: Any, which: np.ndarray, kernel: Any = None) -> Any:
    """Some points, with zeros up to a whole number of tiles; those of a kernel are as its store keeps them."""
    return points.empty(kernel).joined(0, points, which)


def unpacked(arrays: dict[str, np.ndarray], prefix: str) -> Any:
    """The points whose :meth:`~DensePoints.packed` arrays these are, named with a prefix."""
    kind: Any = SparsePoints if f"{prefix}pointers" in arrays else DensePoints
    return kind(*(np.array(arrays[prefix + name]) for name in kind._fields))


def all_kernels() -> list[Kernel]:
    """The kernels of pairs of sparse points."""
    return [pairing(cls, dtype, BLOCK) for cls in (DotProduct, L1Distance) for dtype in DTYPES]
