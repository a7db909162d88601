"""Kernels of the papers, and functions of their reproducing kernel Hilbert spaces, for algorithms with any kernel.

With the linear kernel a function has weights. With others it is sum_t c_t k(x_t, .), with the row x_t of each round and
a coefficient for each output.

The Gaussian kernel is exp(-gamma ||x - z||^2) in Orabona 2014 and Nitanda, Suzuki 2019; Lin, Rosasco, Zhou 2016 have
gamma = 1 / (2 sigma^2). Differences are squared, not expanded, so that rows far from 0 lose no precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tunefree.papers.algorithm import Algorithm, Stream

Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]


def kernel_of(name: Any, gamma: float | None = None, degree: int = 3, coef0: float = 1.0) -> Kernel:
    """Return the kernel with this name; a callable is returned unchanged.

    Parameters
    ----------
    name : {"linear", "gaussian", "laplacian", "polynomial"} or callable
    gamma : float, optional
        Required for the Gaussian and Laplacian kernels; by default 1 for the polynomial kernel.
    degree, coef0
        Parameters of the polynomial kernel (gamma x z + coef0)^degree.

    Examples
    --------
    >>> kernel_of("gaussian", 0.5)(np.array([1.0]), np.array([[1.0], [3.0]])).round(4).tolist()
    [1.0, 0.1353]
    """
    if callable(name):
        return name
    if name in ("gaussian", "laplacian") and not (gamma is not None and gamma > 0.0):
        raise ValueError(f"the {name} kernel has a width that the papers leave to the user: pass gamma, above 0")
    rate = 1.0 if gamma is None else float(gamma)
    known: dict[str, Kernel] = {
        "linear": lambda x, rows: rows @ x,
        "gaussian": lambda x, rows: np.exp(-rate * ((rows - x) ** 2).sum(axis=1)),
        "laplacian": lambda x, rows: np.exp(-rate * np.abs(rows - x).sum(axis=1)),
        "polynomial": lambda x, rows: (rate * (rows @ x) + coef0) ** degree,
    }
    if name not in known:
        raise ValueError(f"unknown kernel {name!r}; choose one of {', '.join(known)}, or pass a function")
    return known[name]


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
    """Return the kernel of an algorithm; None if it is linear."""
    name = getattr(algorithm, "kernel", None)
    if name is None or name == "linear":
        return None
    parameters = {key: getattr(algorithm, key) for key in ("gamma", "degree", "coef0") if hasattr(algorithm, key)}
    return kernel_of(name, **parameters)


def space_of(algorithm: Any, stream: Stream) -> Weights | Expansion:
    """Return the function 0 in the space of an algorithm's kernel."""
    kernel = kernel_used(algorithm)
    return Weights(stream) if kernel is None else Expansion(kernel, stream)


class KernelAlgorithm(Algorithm):
    """Base class of algorithms with any kernel: f_t is ``scale`` times a function ``f`` of the kernel's space.

    Parameters
    ----------
    kernel : str or callable, default "linear"
        ``"linear"``, ``"gaussian"``, ``"laplacian"``, ``"polynomial"``, or a function of a row (d,) and rows (n, d).
    gamma, degree, coef0
        Parameters of the kernel, see :func:`kernel_of`.
    """

    scale = 1.0

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
