"""Rows as kernels take them, in single or double precision, and the numbers of pairs of them, a tile at a time.

Every product has the same shape whatever rows it is made of, padded with zeros. So a row's numbers do not depend on
the rows that it came with, and it does not matter where a stream is cut.
"""

from __future__ import annotations

from functools import singledispatch
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.kernels import Kernel
from tunefree.core.rows import Block, compressed, dense, sparse
from tunefree.kernel.external import External
from tunefree.kernel.kernels import pair_of
from tunefree.kernel.pairs import DotProduct, L1Distance, norm_terms, numbers, pairing, sparse_numbers
from tunefree.kernel.precision import DTYPES

BLOCK = 128  # rows whose kernel values are computed together
TILE = 1024  # points of the support whose kernel values are computed together


class DensePoints(NamedTuple):
    """Rows of an array."""

    values: np.ndarray  # (n, d)
    norms: np.ndarray  # (n,) sums of norm_terms


class SparsePoints(NamedTuple):
    """Rows of which few features are not zero."""

    pointers: np.ndarray  # (n + 1,) int64: row i has the entries pointers[i] .. pointers[i + 1]
    features: np.ndarray  # (entries,) int32
    values: np.ndarray  # (entries,)
    norms: np.ndarray  # (n,)


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
    return DensePoints(values, norm_terms(pair_of(kernel), values).sum(axis=1, dtype=np.float64).astype(dtype))


def sparse_points(pointers: Any, features: Any, values: Any, kernel: Any, dtype: Any) -> SparsePoints:
    """Compressed sparse rows as points."""
    pointers, values = np.ascontiguousarray(pointers, np.int64), np.ascontiguousarray(values, dtype)
    owner, n = np.repeat(np.arange(len(pointers) - 1), np.diff(pointers)), len(pointers) - 1
    norms = np.bincount(
        owner, norm_terms(pair_of(kernel), values), n
    )  # row by row: a row's norm does not depend on the others
    return SparsePoints(pointers, np.ascontiguousarray(features, np.int32), values, norms.astype(dtype))


@singledispatch
def nothing(like: Any, kernel: Any) -> Any:
    """No points at all, of the kind of others."""
    raise TypeError(f"{type(like).__name__} holds no points")


@nothing.register(DensePoints)
def nothing_dense(like, kernel):
    width = 1 if kernel == External(None) else like.values.shape[1]  # of a precomputed matrix, its place in it
    return DensePoints(np.zeros((0, width), like.values.dtype), np.zeros(0, like.norms.dtype))


@nothing.register(SparsePoints)
def nothing_sparse(like, kernel):
    blank = np.zeros(0, like.values.dtype)
    return SparsePoints(np.zeros(1, np.int64), np.zeros(0, np.int32), blank, blank)


@singledispatch
def joined(store: Any, n: int, others: Any, which: np.ndarray) -> Any:
    """The first n points of a store and some others behind them, with zeros up to a whole number of tiles."""
    raise TypeError(f"{type(store).__name__} holds no points")


@joined.register(DensePoints)
def joined_dense(store, n, others, which):
    values, norms = (_roomy(array, n, n + len(which), TILE) for array in store)
    values[n : n + len(which)] = others.values[which, : values.shape[1]]
    norms[n : n + len(which)] = others.norms[which]
    return DensePoints(values, norms)


@joined.register(SparsePoints)
def joined_sparse(store, n, others, which):
    first, counts = store.pointers[n], np.diff(others.pointers)[which]
    after = first + np.cumsum(counts)
    last = int(after[-1]) if len(after) else int(first)
    pointers = _roomy(store.pointers, n + 1, n + 1 + len(which), TILE)
    pointers[n + 1 :] = last
    pointers[n + 1 : n + 1 + len(which)] = after
    starts = np.repeat(others.pointers[which] - (after - counts), counts)
    entries = starts + np.arange(first, last)
    features, values = (_roomy(array, first, last, TILE) for array in (store.features, store.values))
    features[first:last], values[first:last] = others.features[entries], others.values[entries]
    norms = _roomy(store.norms, n, n + len(which), TILE)
    norms[n : n + len(which)] = others.norms[which]
    return SparsePoints(pointers, features, values, norms)


def _roomy(array: np.ndarray, used: int, needed: int, unit: int) -> np.ndarray:
    """The array, or one of at least twice the size where it has no capacity."""
    room = -(-needed // unit) * unit + (1 if array.ndim == 1 and array.dtype == np.int64 else 0)
    if needed <= len(array) and len(array) >= room:
        return array
    grown = np.zeros((max(room, 2 * len(array)), *array.shape[1:]), array.dtype)
    grown[:used] = array[:used]
    return grown


@singledispatch
def cut(store: Any, start: int, stop: int) -> Any:
    """The points from start to stop, sharing memory."""
    raise TypeError(f"{type(store).__name__} holds no points")


@cut.register(DensePoints)
def cut_dense(store, start, stop):
    return DensePoints(store.values[start:stop], store.norms[start:stop])


@cut.register(SparsePoints)
def cut_sparse(store, start, stop):
    return SparsePoints(store.pointers[start : stop + 1], store.features, store.values, store.norms[start:stop])


@singledispatch
def as_matrix(store: Any) -> Any:
    """The points as an array, or as a SciPy sparse matrix."""
    raise TypeError(f"{type(store).__name__} holds no points")


@as_matrix.register(DensePoints)
def as_matrix_dense(store):
    return store.values


@as_matrix.register(SparsePoints)
def as_matrix_sparse(store):
    from scipy.sparse import csr_array

    shape = (size(store), 1 + int(store.features.max(initial=0)))
    return csr_array((store.values, store.features, store.pointers), shape)


@singledispatch
def as_rows(store: Any) -> Any:
    """The points as rows without a constant."""
    raise TypeError(f"{type(store).__name__} holds no points")


@as_rows.register(DensePoints)
def as_rows_dense(store):
    return dense(store.values, intercept=False)


@as_rows.register(SparsePoints)
def as_rows_sparse(store):
    first, last = store.pointers[0], store.pointers[size(store)]
    return sparse(
        store.pointers[: size(store) + 1] - first, store.features[first:last], store.values[first:last], False
    )


def size(store: Any) -> int:
    """How many points there are."""
    return len(store.norms)


@singledispatch
def packed(store: Any, n: int) -> dict[str, np.ndarray]:
    """The arrays of the first n points, without spare capacity."""
    raise TypeError(f"{type(store).__name__} holds no points")


@packed.register(DensePoints)
def packed_dense(store, n):
    return {"values": store.values[:n], "norms": store.norms[:n]}


@packed.register(SparsePoints)
def packed_sparse(store, n):
    last = int(store.pointers[n])
    kept = {"pointers": store.pointers[: n + 1], "features": store.features[:last], "values": store.values[:last]}
    return kept | {"norms": store.norms[:n]}


def unpacked(arrays: dict[str, np.ndarray], prefix: str) -> Any:
    """The points that :func:`packed` gave, from arrays named with a prefix."""
    kind = SparsePoints if f"{prefix}pointers" in arrays else DensePoints
    return kind(*(np.array(arrays[prefix + name]) for name in kind._fields))


@singledispatch
def like_those_of(block: Any, store: Any) -> Any:
    """A block's points as a store keeps them: of a row of a precomputed matrix, its place in it."""
    raise TypeError(f"{type(block).__name__} holds no points")


@like_those_of.register(DensePoints)
def like_those_of_dense(block, store):
    return DensePoints(np.ascontiguousarray(block.values[:, : store.values.shape[1]]), block.norms)


@like_those_of.register(SparsePoints)
def like_those_of_sparse(block, store):
    return block


@singledispatch
def keys(store: Any, n: int) -> list[bytes]:
    """For each of the first n points, bytes that only the same point has."""
    raise TypeError(f"{type(store).__name__} holds no points")


@keys.register(DensePoints)
def keys_dense(store, n):
    width = store.values.shape[1] * store.values.itemsize
    data = (store.values[:n] + 0).tobytes()  # -0.0 becomes 0.0
    return [data[i * width : (i + 1) * width] for i in range(n)]


@keys.register(SparsePoints)
def keys_sparse(store, n):
    edges = store.pointers[: n + 1].tolist()
    spans = [slice(first, last) for first, last in pairwise(edges)]
    return [store.features[span].tobytes() + store.values[span].tobytes() for span in spans]


@singledispatch
def pairs(store: Any, block: Any, kernel: Any, out: np.ndarray | None = None) -> np.ndarray:
    """The number of each pair (n, BLOCK) of a store's points and a block's, as the kernel takes it.

    They may be written to an array ``out``.
    """
    raise TypeError(f"{type(store).__name__} holds no points")


@pairs.register(DensePoints)
def pairs_dense(store, block, kernel, out=None):
    return numbers(pair_of(kernel), block, store, out)


@pairs.register(SparsePoints)
def pairs_sparse(store, block, kernel, out=None):
    if isinstance(kernel, External):
        raise ModelError("a kernel given as a matrix or a function takes dense rows; pass an array")
    return sparse_numbers(pair_of(kernel), block, store, BLOCK, out)


def all_kernels() -> list[Kernel]:
    """The kernels of pairs of sparse points."""
    return [pairing(cls, dtype, BLOCK) for cls in (DotProduct, L1Distance) for dtype in DTYPES]
