"""What kernels need to know of a pair of rows: one number, computed for whole blocks by a matrix product or a sweep.

Most kernels are functions of the dot product x.z, or of the l1 distance |x - z|_1, and of the norms of both rows.
:class:`DotProduct` and :class:`L1Distance` stand for these two; a kernel names its own with
:func:`tunefree.kernel.kernels.pair_of`.

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

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tunefree.core import compiled
from tunefree.core.generic import generic


class DotProduct(NamedTuple):
    """The dot product of two rows; norms are sums of squares."""


class L1Distance(NamedTuple):
    """The sum of absolute differences less both norms, which are sums of absolute values."""


@generic
def norm_terms(pair: Any, values: np.ndarray) -> np.ndarray:
    """What each number contributes to the norm of its row."""
    raise TypeError(f"{type(pair).__name__} is not a number of pairs of rows")


@norm_terms.register(DotProduct)
def norm_terms_squares(pair, values):
    return values * values


@norm_terms.register(L1Distance)
def norm_terms_absolute(pair, values):
    return np.abs(values)


@generic
def numbers(pair: Any, block: Any, store: Any) -> np.ndarray:
    """The numbers (n, m) of pairs of dense points, given with their ``values`` and ``norms``."""
    raise TypeError(f"{type(pair).__name__} is not a number of pairs of rows")


@numbers.register(DotProduct)
def numbers_by_products(pair, block, store):
    return block.values @ store.values.T


@numbers.register(L1Distance)
def numbers_by_differences(pair, block, store):
    found = np.empty((len(block.values), len(store.values)), block.values.dtype)
    sum_differences(block.values, store.values, block.norms, store.norms, found)
    return found


@generic
def feature_term(pair: Any, one: float, other: float) -> float:
    """What a feature of two rows contributes to the number of the pair; 0 if it is 0 in one of them."""
    raise TypeError(f"{type(pair).__name__} is not a number of pairs of rows")


@feature_term.register(DotProduct)
def feature_term_of_product(pair, one, other):
    return one * other


@feature_term.register(L1Distance)
def feature_term_of_distance(pair, one, other):
    return abs(one - other) - abs(one) - abs(other)


@generic
def matrix_numbers(pair: Any, left: Any, right: Any) -> np.ndarray:
    """The numbers (n, m) of pairs of rows of two arrays or CSR matrices."""
    raise TypeError(f"{type(pair).__name__} is not a number of pairs of rows")


@matrix_numbers.register(DotProduct)
def matrix_numbers_by_products(pair, left, right):
    return inner_products(left, right)


@matrix_numbers.register(L1Distance)
def matrix_numbers_by_differences(pair, left, right):
    from sklearn.metrics.pairwise import manhattan_distances

    return manhattan_distances(left, right) - matrix_norms(pair, left)[:, None] - matrix_norms(pair, right)


@generic
def matrix_norms(pair: Any, rows: Any) -> np.ndarray:
    """The norms (n,) of the rows of an array or a CSR matrix, in float64."""
    raise TypeError(f"{type(pair).__name__} is not a number of pairs of rows")


@matrix_norms.register(DotProduct)
def matrix_norms_squared(pair, rows):
    return squared_norms(rows)


@matrix_norms.register(L1Distance)
def matrix_norms_absolute(pair, rows):
    return np.asarray(abs(rows).sum(axis=1, dtype=np.float64)).reshape(-1)


@generic
def self_numbers(pair: Any, norms: np.ndarray) -> np.ndarray:
    """The numbers (n,) of rows paired with themselves, from their norms."""
    raise TypeError(f"{type(pair).__name__} is not a number of pairs of rows")


@self_numbers.register(DotProduct)
def self_numbers_of_products(pair, norms):
    return norms


@self_numbers.register(L1Distance)
def self_numbers_of_distances(pair, norms):
    return -2.0 * norms


def inner_products(left: Any, right: Any) -> np.ndarray:
    """Dot products (n, m) of the rows of two arrays or CSR matrices, as a contiguous array."""
    products = left @ right.T
    return np.ascontiguousarray(products.toarray() if sparse.issparse(products) else products)


def squared_norms(rows: Any) -> np.ndarray:
    """|x|^2 of each row, in float64."""
    if sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1), np.float64).reshape(-1)
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)


@compiled.summing
def sum_differences(values, store_values, norms, store_norms, found):
    """Sums of absolute differences, less both norms."""
    for b in range(len(values)):
        for i in range(len(store_values)):
            total = found.dtype.type(0)
            for j in range(values.shape[1]):
                total += abs(values[b, j] - store_values[i, j])
            found[b, i] = total - norms[b] - store_norms[i]


@compiled.summing
def pair_sparse(pair, pointers, features, values, store_pointers, store_features, store_values, n_features, found):
    """Numbers (n, BLOCK) of pairs of sparse points: the block is laid out with a row for each of its features."""
    place, n_places = np.full(n_features, -1, np.int32), 0
    for e in range(pointers[0], pointers[len(pointers) - 1]):
        if place[features[e]] < 0:
            place[features[e]] = n_places
            n_places += 1
    laid_out = np.zeros((n_places, found.shape[1]), values.dtype)
    for b in range(len(pointers) - 1):
        for e in range(pointers[b], pointers[b + 1]):
            laid_out[place[features[e]], b] = values[e]
    for i in range(len(store_pointers) - 1):
        for e in range(store_pointers[i], store_pointers[i + 1]):
            if store_features[e] < n_features and place[store_features[e]] >= 0:
                row = laid_out[place[store_features[e]]]
                for b in range(found.shape[1]):
                    found[i, b] += feature_term(pair, row[b], store_values[e])
