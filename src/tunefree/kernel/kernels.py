"""Kernels: what each of them provides, the registry of their names, and the median rule for their widths.

The value of a kernel is computed in two steps. First comes a number of the pair of rows, which a library computes for
whole blocks: their dot product or their l1 distance (:mod:`tunefree.kernel.pairs`). Then comes a function of that
number and of the norms of both rows, :func:`similarity`, of which a compiled loop is made for each class of kernel.
Kernels that are exponentials of a distance come in ladders of widths: since exp(-2 g D) = exp(-g D)^2, each further
width costs one multiplication.

A kernel is a NamedTuple with a class method ``create(gamma, degree, coef0)``, and bodies for the generic functions of
this module. It needs :func:`pair_of` and :func:`similarity`; the others have defaults. A kernel that has a width calls
it ``gamma``. ``ALL`` holds the kernels by the names that users pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.registry import Registry
from tunefree.kernel.pairs import matrix_norms, matrix_numbers, self_numbers
from tunefree.kernel.precision import MOST

MOST_SAMPLED = 512  # rows of which the median distance is taken

ALL = Registry(
    "kernel",
    {
        "rbf": "tunefree.kernel.gaussian:Gaussian",
        "laplacian": "tunefree.kernel.laplacian:Laplacian",
        "poly": "tunefree.kernel.polynomial:Polynomial",
        "linear": "tunefree.kernel.polynomial:Linear",
        "precomputed": "tunefree.kernel.external:External",
    },
)


def kernel_of(name: Any, gamma: float, degree: int = 3, coef0: float = 1.0) -> Any:
    """The kernel called ``name``, with scikit-learn's names and parameters.

    Parameters
    ----------
    name : str or callable
        A name in ``ALL``, or a function that takes two arrays of rows and returns the matrix of their kernel values.
    gamma : float
        Of the exponentials and of the polynomial.
    degree, coef0 : int, float
        Of the polynomial.

    Raises
    ------
    ModelError
        If there is no such kernel, or a parameter is out of range.

    Examples
    --------
    >>> kernel_of("rbf", 0.5)
    Gaussian(gamma=0.5)
    """
    if callable(name):
        return ALL["precomputed"](name)
    if not isinstance(name, str) or name not in ALL:
        raise ModelError(f"unknown kernel {name!r}; choose one of {', '.join(ALL)}, or give a function of two arrays")
    if not (math.isfinite(gamma) and gamma > 0.0):
        raise ModelError(f"gamma must be a number above 0, not {gamma}")
    return ALL[name].create(gamma, degree, coef0)


def register(name: str, kernel: Any) -> None:
    """Add a kernel.

    Parameters
    ----------
    name : str
        A name that is not taken.
    kernel : class, or str
        A class as this module describes it, or its place ``"package.module:Class"``.

    Raises
    ------
    ModelError
        If the name is taken by another kernel.

    Examples
    --------
    >>> register("rbf", "my_package.kernels:Mine")
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: there is a kernel 'rbf' already; choose another name
    """
    ALL.register(name, kernel)


def names_of(has_property: Callable[[Any], Any]) -> list[str]:
    """The names of all kernels with a property.

    Examples
    --------
    >>> names_of(is_ladder)
    ['rbf', 'laplacian']
    """
    return [name for name in ALL if has_property(kernel_of(name, 1.0))]


@singledispatch
def pair_of(kernel: Any) -> Any:
    """The number of a pair of rows that the kernel is a function of, see :mod:`tunefree.kernel.pairs`."""
    raise TypeError(f"{type(kernel).__name__} is not a kernel")


@singledispatch
def similarity(kernel: Any, pair: Any, norm: Any, other_norm: Any, exp: Any = np.exp) -> Any:
    """The kernel value of two rows, from the number of the pair and the norms of both.

    Bodies are plain functions, called with arrays, and compiled: they use NumPy's functions, and ``exp`` for the
    exponential of numbers of at most 0, which in single precision is faster than NumPy's.
    """
    raise TypeError(f"{type(kernel).__name__} is not a kernel")


@singledispatch
def in_compiled_code(kernel: Any, dtype: Any) -> Any:
    """The kernel as compiled code can hold it: its numbers are in the range of the pairs' type."""
    most = MOST[np.dtype(dtype)]  # a width of distances near 0 is beyond single precision
    return type(kernel)(*(min(max(v, -most), most) if isinstance(v, float) else v for v in kernel))


@singledispatch
def is_ladder(kernel: Any) -> bool:
    """Whether the square of its value is its value at twice the gamma."""
    return False


@singledispatch
def distance_of(kernel: Any) -> str | None:
    """The distance that the kernel is a function of, "euclidean" or "manhattan"; None of others, which have no width.

    With it gamma has a default. A euclidean distance d is multiplied by sqrt(gamma), a manhattan distance by gamma.
    """
    return None


@singledispatch
def tile(kernel: Any, left: Any, right: Any) -> np.ndarray:
    """The values (n, m) of the rows of two arrays or CSR matrices, in their precision: a tile of a Gram matrix."""
    pair = pair_of(kernel)
    norms = (matrix_norms(pair, rows).astype(left.dtype) for rows in (left, right))
    values = similarity(kernel, matrix_numbers(pair, left, right), next(norms)[:, None], next(norms))
    return np.asarray(values, left.dtype)


@singledispatch
def diagonal(kernel: Any, rows: Any) -> np.ndarray:
    """k(x, x) (n,) of the rows of an array or a CSR matrix, in float64."""
    norms = matrix_norms(pair_of(kernel), rows)
    return np.asarray(similarity(kernel, self_numbers(pair_of(kernel), norms), norms, norms), np.float64)


@singledispatch
def spectral_distribution(kernel: Any) -> Any:
    """The distribution of the directions of random Fourier features; None if the kernel has no such features.

    The name is one in :data:`tunefree.kernel.fourier.SPECTRAL_DISTRIBUTIONS`.
    """
    return None


@singledispatch
def frequency_scale(kernel: Any) -> float:
    """What directions of the spectral distribution are multiplied by."""
    raise TypeError(f"{type(kernel).__name__} has no Fourier features")


@singledispatch
def torch_similarity(kernel: Any, rows: Any, others: Any) -> Any:
    """The values (R, n) of rows and others on a device, each given as tensors ``values`` and ``norms``.

    A body that uses methods of tensors only needs no import of PyTorch.
    """
    name = type(kernel).__name__.lower()
    raise ModelError(f"the kernel {name} is computed on the processor; leave the device out")


@singledispatch
def torch_tile(kernel: Any, rows: Any, others: Any) -> Any:
    """The values (R, n) as a tile of a Gram matrix; as :func:`torch_similarity` for most kernels."""
    return torch_similarity(kernel, rows, others)


def median_gamma(rows: Any, labels: np.ndarray, most: int | None = None) -> float:
    """gamma_0 = 1 / (2 m^2), m the median distance between rows of different labels.

    Jaakkola, Diekhans, Haussler: Using the Fisher kernel method to detect remote protein homologies (ISMB 1999).

    Parameters
    ----------
    rows : (n, d) array or SciPy sparse matrix
    labels : (n,) array
    most : int, optional
        How many of the rows are used, the first; by default MOST_SAMPLED.

    Returns
    -------
    float
        With one label, or no distance, of all pairs; 1 where all rows are the same.

    Examples
    --------
    >>> median_gamma(np.array([[0.0], [2.0], [0.0]]), np.array(["a", "b", "a"]))
    0.125
    """
    most = MOST_SAMPLED if most is None else most
    rows, labels = rows[:most].astype(np.float64), np.asarray(labels[:most])
    norms, products = np.asarray((rows * rows).sum(axis=1)), rows @ rows.T
    squares = norms[:, None] + norms - 2.0 * (products if isinstance(products, np.ndarray) else products.toarray())
    for chosen in (labels[:, None] != labels, ~np.eye(len(norms), dtype=bool)):
        distances = squares[chosen]
        if len(distances) and (median := float(np.median(distances))) > 0.0:
            return 0.5 / median
    largest = float(squares.max(initial=0.0))
    return 0.5 / largest if largest > 0.0 else 1.0
