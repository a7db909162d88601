"""The number of a pair of rows that a kernel is a function of, beside the norms of both rows.

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

from typing import Any

import numpy as np


class DotProduct:
    """The dot product of two rows; norms are sums of squares."""

    @staticmethod
    def feature_term(one, other):
        """The contribution of a feature of two rows to the number of the pair; 0 if it is 0 in one of them."""
        return one * other

    @staticmethod
    def numbers(left: Any, right: Any) -> np.ndarray:
        """The numbers (n, m) of pairs of rows of two arrays or CSR matrices."""
        return inner_products(left, right)

    @staticmethod
    def norms(rows: Any) -> np.ndarray:
        """The norms (n,) of the rows of an array or a CSR matrix, in float64."""
        return squared_norms(rows)

    @staticmethod
    def self_numbers(norms: np.ndarray) -> np.ndarray:
        """The numbers (n,) of rows paired with themselves, from their norms."""
        return norms


class L1Distance:
    """The sum of absolute differences less both norms, which are sums of absolute values; methods as above."""

    @staticmethod
    def feature_term(one, other):
        return abs(one - other) - abs(one) - abs(other)

    @staticmethod
    def numbers(left: Any, right: Any) -> np.ndarray:
        from sklearn.metrics.pairwise import manhattan_distances

        distances: np.ndarray = manhattan_distances(left, right)
        return distances - L1Distance.norms(left)[:, None] - L1Distance.norms(right)

    @staticmethod
    def norms(rows: Any) -> np.ndarray:
        return np.asarray(abs(rows).sum(axis=1, dtype=np.float64)).reshape(-1)

    @staticmethod
    def self_numbers(norms: np.ndarray) -> np.ndarray:
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
