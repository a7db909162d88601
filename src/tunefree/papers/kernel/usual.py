"""The Gaussian, the Laplacian, the polynomial and the linear kernel; see :mod:`tunefree.papers.kernel.kernels`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.papers.kernel.kernels import KernelFunction, Width, inner_products, squared_norms

MOST = {4: 1e30, 8: 1e250}  # of values in a Gram matrix, by the bytes of a number: sums of such are numbers


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


class Parameters(NamedTuple):
    """Of a polynomial."""

    degree: int
    gamma: float
    constant: float


class Polynomial(Parameters, KernelFunction):
    """(gamma x.z + constant)^degree; the linear kernel is one of them."""

    @classmethod
    def create(cls, gamma: float, degree: int = 3, coef0: float = 1.0) -> Polynomial:
        """From scikit-learn's parameters."""
        if not (degree >= 1 and coef0 >= 0.0):
            raise ModelError(
                f"a polynomial kernel has a degree from 1 on and a constant from 0 on, not {degree}, {coef0}"
            )
        return cls(int(degree), float(gamma), float(coef0))

    def similarity(kernel, pair, norm, other_norm, exp=np.exp):
        return raised(kernel.gamma * pair + kernel.constant, kernel.degree)

    def tile(self, left: Any, right: Any) -> np.ndarray:
        inner = inner_products(left, right)
        if self == LINEAR:
            return inner
        inner *= self.gamma
        inner += self.constant
        with np.errstate(over="ignore"):
            np.power(inner, self.degree, out=inner)
        most = MOST[inner.dtype.itemsize]
        return np.clip(inner, -most, most, out=inner)


LINEAR = Polynomial(1, 1.0, 0.0)


class Linear:
    """The linear kernel x.z by its name; it is a polynomial, so that compiled code is shared."""

    @staticmethod
    def create(gamma: float = 1.0, degree: int = 3, coef0: float = 1.0) -> Polynomial:
        """The polynomial that is the linear kernel; it has no parameters."""
        return LINEAR


def raised(base, degree):
    """A power of numbers with a whole exponent from 1 on, by squares: that of compiled code may raise errors."""
    square, rest = base, degree
    while rest & 1 == 0:
        square, rest = square * square, rest >> 1
    power, rest = square, rest >> 1
    while rest > 0:
        square = square * square
        power, rest = (power * square if rest & 1 == 1 else power), rest >> 1
    return power
