"""The Laplacian kernel exp(-gamma |x - z|_1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.papers.kernel.kernels import KernelFunction, Width
from tunefree.papers.kernel.pairs import L1Distance


class Laplacian(Width, KernelFunction):
    """exp(-gamma |x - z|_1)."""

    pair = L1Distance()
    is_ladder = True
    distance = "manhattan"
    spectral_distribution = "cauchy"

    def similarity(kernel, pair, norm, other_norm, exp=np.exp):
        # next to 0 rounding may make it negative
        return exp(-kernel.gamma * abs((norm + pair) + other_norm))

    def tile(self, left: Any, right: Any) -> np.ndarray:
        from sklearn.metrics.pairwise import manhattan_distances

        return np.exp(-self.gamma * manhattan_distances(left, right)).astype(left.dtype, copy=False)

    def diagonal(self, rows: Any) -> np.ndarray:
        return np.ones(rows.shape[0])

    def frequency_scale(self) -> float:
        return self.gamma

    def torch_similarity(self, rows: Any, others: Any) -> Any:
        import torch

        return torch.cdist(rows.values, others.values, p=1.0).mul_(-self.gamma).exp_()
