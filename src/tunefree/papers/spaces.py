"""Functions of a reproducing kernel Hilbert space, in which algorithms of the papers are written once.

With the linear kernel a function is its weights; with another it is sum_t c_t k(x_t, .), the row of each round with a
coefficient for each output.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.papers.algorithm import Algorithm, Stream
from tunefree.papers.kernels import Kernel, kernel_of


class Weights:
    """A function x -> x w."""

    def __init__(self, stream: Stream) -> None:
        self.coefficients = np.zeros((stream.n_features, stream.n_outputs))

    def at(self, x: np.ndarray) -> np.ndarray:
        """Its values (K,) at a row."""
        return x @ self.coefficients

    def add(self, x: np.ndarray, coefficients: np.ndarray) -> None:
        """Add coefficients (K,) times k(x, .)."""
        self.coefficients += np.outer(x, coefficients)

    def squared_size(self, x: np.ndarray) -> float:
        """k(x, x)."""
        return float(x @ x)


class Expansion:
    """A function sum_t c_t k(x_t, .)."""

    def __init__(self, kernel: Kernel, stream: Stream) -> None:
        self.kernel, self.n = kernel, 0
        self.rows = np.empty((stream.rounds, stream.n_features))
        self.coefficients = np.zeros((stream.rounds, stream.n_outputs))

    def at(self, x: np.ndarray) -> np.ndarray:
        """Its values (K,) at a row."""
        return self.kernel(x, self.rows[: self.n]) @ self.coefficients[: self.n]

    def add(self, x: np.ndarray, coefficients: np.ndarray) -> None:
        """Add coefficients (K,) times k(x, .)."""
        self.rows[self.n], self.coefficients[self.n] = x, coefficients
        self.n += 1

    def squared_size(self, x: np.ndarray) -> float:
        """k(x, x)."""
        return float(self.kernel(x, x[None])[0])


def kernel_used(algorithm: Any) -> Kernel | None:
    """The kernel of an algorithm; None if its functions are weights."""
    name = getattr(algorithm, "kernel", None)
    if name is None or name == "linear":
        return None
    parameters = {key: getattr(algorithm, key) for key in ("gamma", "degree", "coef0") if hasattr(algorithm, key)}
    return kernel_of(name, **parameters)


def space_of(algorithm: Any, stream: Stream) -> Weights | Expansion:
    """The function 0 in the space of an algorithm's kernel."""
    kernel = kernel_used(algorithm)
    return Weights(stream) if kernel is None else Expansion(kernel, stream)


class KernelAlgorithm(Algorithm):
    """An algorithm in the space of any kernel: f_t is a function of that space, f, times a number.

    Parameters
    ----------
    kernel : str or callable, default "linear"
        ``"linear"``, ``"gaussian"``, ``"laplacian"``, ``"polynomial"``, or a function of a row (d,) and rows (n, d).
    gamma, degree, coef0
        Of the kernel, see :func:`tunefree.papers.kernels.kernel_of`.
    """

    scale = 1.0  # the number

    def __init__(self, kernel: Any = "linear", gamma: float | None = None, degree: int = 3, coef0: float = 1.0) -> None:
        self.kernel, self.gamma, self.degree, self.coef0 = kernel, gamma, degree, coef0

    def begin(self, stream: Stream) -> None:
        self.f, self.t = space_of(self, stream), 0

    @property
    def weights(self) -> np.ndarray:
        """f_t."""
        return self.scale * self.f.coefficients

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.scale * self.f.at(x)
