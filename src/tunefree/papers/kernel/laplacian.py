"""The Laplacian kernel exp(-gamma |x - z|_1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.papers.kernel.kernels import KernelFunction, Width


class Laplacian(Width, KernelFunction):
    """exp(-gamma |x - z|_1), a function of |x - z|_1 - |x|_1 - |z|_1 and of norms that are sums of absolute values."""

    is_ladder = True
    distance = "manhattan"

    @staticmethod
    def feature_term(one, other):
        return abs(one - other) - abs(one) - abs(other)

    @staticmethod
    def numbers(left: Any, right: Any) -> np.ndarray:
        from sklearn.metrics.pairwise import manhattan_distances

        distances: np.ndarray = manhattan_distances(left, right)
        return distances - Laplacian.norms(left)[:, None] - Laplacian.norms(right)

    @staticmethod
    def norms(rows: Any) -> np.ndarray:
        return np.asarray(abs(rows).sum(axis=1, dtype=np.float64)).reshape(-1)

    @staticmethod
    def self_numbers(norms: np.ndarray) -> np.ndarray:
        return -2.0 * norms

    def similarity(kernel, pair, norm, other_norm, exp=np.exp):
        # next to 0 rounding may make it negative
        return exp(-kernel.gamma * abs((norm + pair) + other_norm))
