"""A kernel that is not in the package: all that one has to write to add it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.kernel.kernels import distance_of, pair_of, similarity, torch_similarity
from tunefree.kernel.pairs import DotProduct


class Matern(NamedTuple):
    """(1 + r) exp(-r) with r = sqrt(6 gamma) ||x - z||: the Matérn kernel with nu = 3/2 and 1 / (2 gamma) = l^2."""

    gamma: float

    @classmethod
    def create(cls, gamma: float, degree: int = 3, coef0: float = 1.0) -> Matern:
        """From scikit-learn's parameters, of which it has gamma only."""
        return cls(float(gamma))


@pair_of.register(Matern)
def pair_of_matern(kernel):
    return DotProduct()


@similarity.register(Matern)
def similarity_matern(kernel, pair, own, other):
    r = np.sqrt(6.0 * kernel.gamma * abs((own - pair) + (other - pair)))
    return (1.0 + r) * compiled.exponential(-r)


@distance_of.register(Matern)
def distance_of_matern(kernel):
    return "euclidean"


@torch_similarity.register(Matern)
def torch_similarity_matern(kernel, rows, others):
    squares = (rows.values @ others.values.T).mul_(-2.0).add_(rows.norms[:, None]).add_(others.norms).abs_()
    r = squares.mul_(6.0 * kernel.gamma).sqrt_()
    return (1.0 + r).mul_(r.neg().exp_())
