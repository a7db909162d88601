"""Kernels, and the width rule of Jaakkola, Diekhans, Haussler (1999): the median distance between different labels.

A kernel value is computed in two steps: a number of the pair of rows that a library computes for whole blocks (a dot
product, a sum of absolute differences, or the kernel itself), and a function of that number and of the rows' own
numbers, compiled into whatever uses it. Kernels that are exponentials of a distance come in ladders: since
exp(-2 g D) = exp(-g D)^2, each further width costs one multiplication.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.errors import ModelError
from tunefree.core.generic import generic

MOST_SAMPLED = 512  # rows of which the median distance is taken


class Gaussian(NamedTuple):
    """exp(-gamma ||x - z||^2)."""

    gamma: float


class Laplacian(NamedTuple):
    """exp(-gamma ||x - z||_1)."""

    gamma: float


class Polynomial(NamedTuple):
    """(gamma x.z + constant)^degree; the linear kernel is one of them."""

    degree: int
    gamma: float
    constant: float


class Given(NamedTuple):
    """A kernel whose values are computed by others: a matrix made beforehand, or a function of two arrays."""

    function: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None  # None for a matrix


class Ready(NamedTuple):
    """What compiled code knows of a kernel whose values are computed by others."""

    factor: float = 1.0


ALL = ("rbf", "laplacian", "poly", "linear", "precomputed")
LADDERS = ("rbf", "laplacian")  # those that have many widths, see is_ladder


def kernel_of(name: Any, gamma: float, degree: int = 3, constant: float = 1.0) -> Any:
    """The kernel called ``name``, as scikit-learn calls it.

    Parameters
    ----------
    name : {"rbf", "laplacian", "poly", "linear", "precomputed"} or callable
        A callable takes two arrays of rows and returns the matrix of their kernel values.
    gamma : float
        Of the exponentials and of the polynomial.
    degree, constant : int, float
        Of the polynomial.

    Examples
    --------
    >>> kernel_of("rbf", 0.5)
    Gaussian(gamma=0.5)
    """
    if callable(name):
        return Given(name)
    if name not in ALL:
        raise ModelError(f"unknown kernel {name!r}; choose one of {', '.join(ALL)}, or give a function of two arrays")
    if not (math.isfinite(gamma) and gamma > 0.0):
        raise ModelError(f"gamma must be a number above 0, not {gamma}")
    if not (degree >= 1 and constant >= 0.0):
        raise ModelError(
            f"a polynomial kernel has a degree from 1 on and a constant from 0 on, not {degree}, {constant}"
        )
    made = {
        "rbf": Gaussian(float(gamma)),
        "laplacian": Laplacian(float(gamma)),
        "poly": Polynomial(int(degree), float(gamma), float(constant)),
        "linear": Polynomial(1, 1.0, 0.0),
        "precomputed": Given(None),
    }
    return made[name]


def in_compiled_code(kernel: Any, dtype: Any) -> Any:
    """The kernel, as compiled code can hold it: its numbers are of the type of the pairs'."""
    kernel = Ready() if isinstance(kernel, Given) else kernel
    return type(kernel)(*(dtype(value) if isinstance(value, float) else value for value in kernel))


def is_ladder(kernel: Any) -> bool:
    """Whether the square of its value is its value at twice the gamma."""
    return isinstance(kernel, Gaussian | Laplacian)


@generic
def similarity(kernel: Any, pair: float, own: float, other: float) -> float:
    """The kernel value of two rows, from their number (see :mod:`tunefree.kernel.points`) and their norms."""
    raise TypeError(f"{type(kernel).__name__} is not a kernel")


@similarity.register(Gaussian)
def similarity_gaussian(kernel, pair, own, other):
    # next to 0 rounding may make it negative
    return compiled.exponential(-kernel.gamma * abs((own - pair) + (other - pair)))


@similarity.register(Laplacian)
def similarity_laplacian(kernel, pair, own, other):
    return compiled.exponential(-kernel.gamma * abs((own + pair) + other))


@similarity.register(Polynomial)
def similarity_polynomial(kernel, pair, own, other):
    return (kernel.gamma * pair + kernel.constant) ** kernel.degree


@similarity.register(Ready)
def similarity_ready(kernel, pair, own, other):
    return pair


def median_gamma(rows: Any, labels: np.ndarray) -> float:
    """gamma_0 = 1 / (2 m^2), m the median distance between rows of different labels.

    Jaakkola, Diekhans, Haussler: Using the Fisher kernel method to detect remote protein homologies (ISMB 1999).

    Parameters
    ----------
    rows : (n, d) array or SciPy sparse matrix
        The first MOST_SAMPLED are used.
    labels : (n,) array

    Returns
    -------
    float
        With one label, or no distance, of all pairs; 1 where all rows are the same.

    Examples
    --------
    >>> median_gamma(np.array([[0.0], [2.0], [0.0]]), np.array(["a", "b", "a"]))
    0.125
    """
    rows, labels = rows[:MOST_SAMPLED].astype(np.float64), np.asarray(labels[:MOST_SAMPLED])
    norms, products = np.asarray((rows * rows).sum(axis=1)), rows @ rows.T
    squares = norms[:, None] + norms - 2.0 * (products if isinstance(products, np.ndarray) else products.toarray())
    for chosen in (labels[:, None] != labels, ~np.eye(len(norms), dtype=bool)):
        distances = squares[chosen]
        if len(distances) and (median := float(np.median(distances))) > 0.0:
            return 0.5 / median
    largest = float(squares.max(initial=0.0))
    return 0.5 / largest if largest > 0.0 else 1.0
