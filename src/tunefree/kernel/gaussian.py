"""The Gaussian kernel exp(-gamma ||x - z||^2)."""

from __future__ import annotations

import math
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
from tunefree.kernel.pairs import DotProduct, inner_products, squared_norms


class Gaussian(NamedTuple):
    """exp(-gamma ||x - z||^2)."""

    gamma: float

    @classmethod
    def create(cls, gamma: float, degree: int = 3, coef0: float = 1.0) -> Gaussian:
        """From scikit-learn's parameters, of which it has gamma only."""
        return cls(float(gamma))


@pair_of.register(Gaussian)
def pair_of_gaussian(kernel):
    return DotProduct()


@similarity.register(Gaussian)
def similarity_gaussian(kernel, pair, norm, other_norm, exp=np.exp):
    # next to 0 rounding may make it negative
    return exp(-kernel.gamma * abs((norm - pair) + (other_norm - pair)))


@is_ladder.register(Gaussian)
def gaussian_is_ladder(kernel):
    return True


@distance_of.register(Gaussian)
def distance_of_gaussian(kernel):
    return "euclidean"


@tile.register(Gaussian)
def tile_gaussian(kernel, left, right):
    """exp(-gamma (|a|^2 + |b|^2 - 2 ab)), in place."""
    inner = inner_products(left, right)
    inner *= 2.0 * kernel.gamma
    inner -= (kernel.gamma * squared_norms(left)).astype(inner.dtype)[:, None]
    inner -= (kernel.gamma * squared_norms(right)).astype(inner.dtype)
    np.minimum(inner, 0.0, out=inner)
    return np.exp(inner, out=inner)


@diagonal.register(Gaussian)
def diagonal_gaussian(kernel, rows):
    return np.ones(rows.shape[0])


@spectral_distribution.register(Gaussian)
def spectral_distribution_gaussian(kernel):
    return "normal"


@frequency_scale.register(Gaussian)
def frequency_scale_gaussian(kernel):
    return math.sqrt(2.0 * kernel.gamma)


@torch_similarity.register(Gaussian)
def torch_similarity_gaussian(kernel, rows, others):
    distances = (rows.values @ others.values.T).mul_(-2.0).add_(rows.norms[:, None]).add_(others.norms).abs_()
    return distances.mul_(-kernel.gamma).exp_()
