"""The Gaussian kernel exp(-gamma ||x - z||^2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.papers.kernel.kernels import KernelFunction, Width, inner_products, squared_norms


class Gaussian(Width, KernelFunction):
    """exp(-gamma ||x - z||^2)."""

    is_ladder = True
    distance = "euclidean"

    def similarity(kernel, pair, norm, other_norm, exp=np.exp):
        # next to 0 rounding may make it negative
        return exp(-kernel.gamma * abs((norm - pair) + (other_norm - pair)))

    def tile(self, left: Any, right: Any) -> np.ndarray:
        """exp(-gamma (|a|^2 + |b|^2 - 2 ab)), in place."""
        inner = inner_products(left, right)
        inner *= 2.0 * self.gamma
        inner -= (self.gamma * squared_norms(left)).astype(inner.dtype)[:, None]
        inner -= (self.gamma * squared_norms(right)).astype(inner.dtype)
        np.minimum(inner, 0.0, out=inner)
        return np.exp(inner, out=inner)
