"""The polynomial kernel (gamma x.z + constant)^degree, and the linear one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.papers.kernel.kernels import KernelFunction, inner_products

MOST = {4: 1e30, 8: 1e250}  # of values in a Gram matrix, by the bytes of a number: sums of such are numbers


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
