"""The Laplacian kernel exp(-gamma |x - z|_1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree.kernel.kernels import (
    diagonal,
    distance_of,
    frequency_scale,
    is_ladder,
    pair_of,
    similarity,
    spectral_distribution,
    tile,
    torch_similarity,
)
from tunefree.kernel.pairs import L1Distance


class Laplacian(NamedTuple):
    """exp(-gamma |x - z|_1)."""

    gamma: float

    @classmethod
    def create(cls, gamma: float, degree: int = 3, coef0: float = 1.0) -> Laplacian:
        """From scikit-learn's parameters, of which it has gamma only."""
        return cls(float(gamma))


@pair_of.register(Laplacian)
def pair_of_laplacian(kernel):
    return L1Distance()


@similarity.register(Laplacian)
def similarity_laplacian(kernel, pair, norm, other_norm, exp=np.exp):
    # next to 0 rounding may make it negative
    return exp(-kernel.gamma * abs((norm + pair) + other_norm))


@is_ladder.register(Laplacian)
def laplacian_is_ladder(kernel):
    return True


@distance_of.register(Laplacian)
def distance_of_laplacian(kernel):
    return "manhattan"


@tile.register(Laplacian)
def tile_laplacian(kernel, left, right):
    from sklearn.metrics.pairwise import manhattan_distances

    return np.exp(-kernel.gamma * manhattan_distances(left, right)).astype(left.dtype, copy=False)


@diagonal.register(Laplacian)
def diagonal_laplacian(kernel, rows):
    return np.ones(rows.shape[0])


@spectral_distribution.register(Laplacian)
def spectral_distribution_laplacian(kernel):
    return "cauchy"


@frequency_scale.register(Laplacian)
def frequency_scale_laplacian(kernel):
    return kernel.gamma


@torch_similarity.register(Laplacian)
def torch_similarity_laplacian(kernel, rows, others):
    import torch

    return torch.cdist(rows.values, others.values, p=1.0).mul_(-kernel.gamma).exp_()
