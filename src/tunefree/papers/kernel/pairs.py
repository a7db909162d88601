"""What kernels need to know of a pair of rows: one number, computed for whole blocks by a matrix product or a sweep.

Most kernels are functions of the dot product x.z, or of the l1 distance |x - z|_1, and of the norms of both rows.
:class:`DotProduct` and :class:`L1Distance` stand for these two; a kernel has one of them as its ``pair``.

==================  =============================  =====================
class               number of the pair             norm of a row
==================  =============================  =====================
:class:`DotProduct`  x.z                           sum of squares
:class:`L1Distance`  |x - z|_1 - |x|_1 - |z|_1     sum of absolute values
==================  =============================  =====================

The l1 distance comes less both norms because only the features that both rows have then contribute to it, as to a dot
product.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core.kernels import Kernel
from tunefree.papers.kernel.precision import DTYPES, NAMES, in_precision

AT_ONCE = 4  # features added before a sum is written back


class DotProduct(NamedTuple):
    """The dot product of two rows; norms are sums of squares."""

    def norm_terms(self, values: np.ndarray) -> np.ndarray:
        """What each number contributes to the norm of its row."""
        return values * values

    def numbers(self, block: Any, store: Any, out: np.ndarray | None = None) -> np.ndarray:
        """The numbers (m, n) of pairs of m dense points of a store and a block's n, with ``values`` and ``norms``.

        They may be written to an array ``out``.
        """
        return np.matmul(store.values, block.values.T, out=out)

    def feature_term(pair, one, other):
        """What a feature of two rows contributes to the number of the pair; 0 if it is 0 in one of them."""
        return one * other

    def matrix_numbers(self, left: Any, right: Any) -> np.ndarray:
        """The numbers (n, m) of pairs of rows of two arrays or CSR matrices."""
        return inner_products(left, right)

    def matrix_norms(self, rows: Any) -> np.ndarray:
        """The norms (n,) of the rows of an array or a CSR matrix, in float64."""
        return squared_norms(rows)

    def self_numbers(self, norms: np.ndarray) -> np.ndarray:
        """The numbers (n,) of rows paired with themselves, from their norms."""
        return norms


class L1Distance(NamedTuple):
    """The sum of absolute differences less both norms, which are sums of absolute values; methods as above."""

    def norm_terms(self, values: np.ndarray) -> np.ndarray:
        return np.abs(values)

    def numbers(self, block: Any, store: Any, out: np.ndarray | None = None) -> np.ndarray:
        width = -(-block.values.shape[1] // AT_ONCE) * AT_ONCE
        values, others = (np.zeros((len(points.values), width), block.values.dtype) for points in (store, block))
        values[:, : store.values.shape[1]], others[:, : block.values.shape[1]] = store.values, block.values
        sums = np.empty((len(values), len(others)), values.dtype) if out is None else out
        DIFFERENCES[NAMES[sums.dtype]](values, np.ascontiguousarray(others.T), store.norms, block.norms, sums)
        return sums

    def feature_term(pair, one, other):
        return abs(one - other) - abs(one) - abs(other)

    def matrix_numbers(self, left: Any, right: Any) -> np.ndarray:
        from sklearn.metrics.pairwise import manhattan_distances

        distances: np.ndarray = manhattan_distances(left, right)
        return distances - self.matrix_norms(left)[:, None] - self.matrix_norms(right)

    def matrix_norms(self, rows: Any) -> np.ndarray:
        return np.asarray(abs(rows).sum(axis=1, dtype=np.float64)).reshape(-1)

    def self_numbers(self, norms: np.ndarray) -> np.ndarray:
        return -2.0 * norms


def inner_products(left: Any, right: Any) -> np.ndarray:
    """Dot products (n, m) of the rows of two arrays or CSR matrices, as a contiguous array."""
    products = left @ right.T
    return np.ascontiguousarray(products if isinstance(products, np.ndarray) else products.toarray())


def squared_norms(rows: Any) -> np.ndarray:
    """|x|^2 of each row, in float64."""
    if not isinstance(rows, np.ndarray):
        return np.asarray(rows.multiply(rows).sum(axis=1), np.float64).reshape(-1)
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)


def sum_differences(
    values: Annotated[np.ndarray, "real[rows, features]"],
    others: Annotated[np.ndarray, "real[features, points]"],
    norms: Annotated[np.ndarray, "real[rows]"],
    other_norms: Annotated[np.ndarray, "real[points]"],
    sums: Annotated[np.ndarray, "real[rows, points]"],
) -> None:
    """Write sums of absolute differences, less both norms; a multiple of AT_ONCE features."""
    for b in range(len(values)):
        of_row, norm = sums[b], norms[b]
        for i in range(len(of_row)):
            of_row[i] = 0.0
        for j in range(0, len(others), AT_ONCE):
            a, b0 = values[b, j], others[j]
            c, b1 = values[b, j + 1], others[j + 1]
            d, b2 = values[b, j + 2], others[j + 2]
            e, b3 = values[b, j + 3], others[j + 3]
            for i in range(len(of_row)):
                of_row[i] = (((of_row[i] + abs(a - b0[i])) + abs(c - b1[i])) + abs(d - b2[i])) + abs(e - b3[i])
        for i in range(len(of_row)):
            of_row[i] = of_row[i] - norm - other_norms[i]


DIFFERENCES = {dtype: in_precision(sum_differences, dtype, "kernel.differences") for dtype in DTYPES}


@cache
def pairing(cls: Any, dtype: str, n_rows: int) -> Kernel:
    """The kernel that adds up what features contribute to the numbers of pairs of sparse points."""
    term_of = cls.feature_term

    def pair_sparse(
        pair: Any,
        index_of: Annotated[np.ndarray, "int32[features]"],
        laid_out: Annotated[np.ndarray, "real[entries, rows]"],
        pointers: Annotated[np.ndarray, "int64[pointers]"],
        features: Annotated[np.ndarray, "int32[other_entries]"],
        values: Annotated[np.ndarray, "real[other_entries]"],
        sums: Annotated[np.ndarray, "real[points, rows]"],
    ) -> None:
        for i in range(len(sums)):
            total, end = sums[i], pointers[i + 1]
            for e in range(pointers[i], end, AT_ONCE):
                x0, z0 = entry(e, end, index_of, laid_out, features, values)
                x1, z1 = entry(e + 1, end, index_of, laid_out, features, values)
                x2, z2 = entry(e + 2, end, index_of, laid_out, features, values)
                x3, z3 = entry(e + 3, end, index_of, laid_out, features, values)
                for b in range(len(total)):
                    first = (total[b] + term_of(pair, x0[b], z0)) + term_of(pair, x1[b], z1)
                    total[b] = (first + term_of(pair, x2[b], z2)) + term_of(pair, x3[b], z3)

    return in_precision(pair_sparse, dtype, f"kernel.pairs.{cls.__name__}", {"pair": cls}, {"rows": n_rows})


def entry(e, end, index_of, laid_out, features, values):
    """The numbers (rows,) of the feature of an entry, and its value; zeros, the last of those laid out, of no feature.

    None has an entry beyond the last one, or one of a feature that no row has.
    """
    last = min(e, end - 1)
    feature = features[last]
    is_known = e < end and feature < len(index_of)
    return laid_out[index_of[feature] if is_known else len(laid_out) - 1], values[last]


def sparse_numbers(pair: Any, block: Any, store: Any, n_rows: int, out: np.ndarray | None = None) -> np.ndarray:
    """The numbers (m, n_rows) of pairs of sparse points of a store and of a block, which may be written to ``out``.

    The block is laid out with a row for each of its features, and one of zeros.
    """
    here = slice(int(block.pointers[0]), int(block.pointers[-1]))
    features, owners = block.features[here], np.repeat(np.arange(len(block.pointers) - 1), np.diff(block.pointers))
    is_known = np.zeros(1 + int(features.max(initial=0)), bool)
    is_known[features] = True
    distinct = np.flatnonzero(is_known)
    index_of = np.full(len(is_known), len(distinct), np.int32)
    index_of[distinct] = np.arange(len(distinct))
    laid_out = np.zeros((len(distinct) + 1, n_rows), block.values.dtype)
    laid_out[index_of[features], owners] = block.values[here]
    sums = np.empty((len(store.norms), n_rows), block.values.dtype) if out is None else out
    sums[:] = 0.0
    cls: Any = type(pair)
    run = pairing(cls, NAMES[sums.dtype], n_rows)
    run(pair, index_of, laid_out, store.pointers, store.features, store.values, sums)
    return sums


def all_kernels() -> list[Kernel]:
    """The kernels of dense points."""
    return list(DIFFERENCES.values())
