"""Kernels: their interface, the registry of their names, and the median rule for their widths.

The value of a kernel is computed in two steps. First comes a number of the pair of rows, to which only the features
contribute that both rows have: their dot product, or their l1 distance less both norms. Then comes a function of that
number and of the norms of both rows, its similarity, which is compiled for each class of kernel. Kernels that are
exponentials of a distance come in ladders of widths: since exp(-2 g D) = exp(-g D)^2, each further width costs one
multiplication.

A kernel is a NamedTuple of its parameters, with a class method ``create(gamma, degree, coef0)``, that is also a
:class:`KernelFunction`. A kernel that has a width calls it ``gamma``. ``ALL`` holds the kernels by the names that users
pass.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.parameters import refuse
from tunefree.core.registry import Registry

DEGREE = "Exponent of the polynomial kernel (gamma x.z + coef0)^degree."
COEF0 = "Constant of the polynomial kernel (gamma x.z + coef0)^degree."
MOST_SAMPLED = 512  # rows of which the median distance is taken

ALL = Registry(
    "kernel",
    {
        "rbf": "tunefree.papers.kernel.usual:Gaussian",
        "laplacian": "tunefree.papers.kernel.usual:Laplacian",
        "poly": "tunefree.papers.kernel.usual:Polynomial",
        "linear": "tunefree.papers.kernel.usual:Linear",
    },
)


register = ALL.register  # a class as this module describes it, or its place


def kernel_of(name: Any, gamma: float, degree: int = 3, coef0: float = 1.0) -> Any:
    """The kernel called ``name``, with scikit-learn's names and parameters.

    Parameters
    ----------
    name : str
        In ``ALL``.
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
    check_kernel(name)
    if not (math.isfinite(gamma) and gamma > 0.0):
        raise ModelError(f"gamma must be a number above 0, not {gamma}")
    return ALL[name].create(gamma, degree, coef0)


class KernelFunction:
    """The interface of a kernel. It needs :meth:`similarity`; the others have the defaults of kernels of dot products.

    Attributes
    ----------
    is_ladder : bool, default False
        Whether the square of its value is its value at twice the gamma.
    distance : {"euclidean", "manhattan"}, optional
        The distance that the kernel is a function of; None of others, which have no width. With it gamma has a default.
        A euclidean distance d is multiplied by sqrt(gamma), a manhattan distance by gamma.
    """

    is_ladder = False
    distance: str | None = None

    @staticmethod
    def feature_term(one, other):
        """The contribution of a feature of two rows to the number of the pair; 0 if it is 0 in one of them."""
        return one * other

    @staticmethod
    def numbers(left: Any, right: Any) -> np.ndarray:
        """The numbers (n, m) of pairs of rows of two arrays or CSR matrices."""
        return inner_products(left, right)

    @staticmethod
    def norms(rows: Any) -> np.ndarray:
        """The norms (n,) of the rows of an array or a CSR matrix, in float64: sums of squares."""
        return squared_norms(rows)

    @staticmethod
    def self_numbers(norms: np.ndarray) -> np.ndarray:
        """The numbers (n,) of rows paired with themselves, from their norms."""
        return norms

    def similarity(kernel, pair, norm, other_norm, exp=np.exp):
        """The kernel value of two rows, from the number of the pair and the norms of both.

        It is a plain function, called with arrays, and compiled: it uses NumPy's functions, and ``exp`` for the
        exponential of numbers of at most 0.
        """
        raise NotImplementedError

    def tile(self, left: Any, right: Any) -> np.ndarray:
        """The values (n, m) of the rows of two arrays or CSR matrices, in their precision: a tile of a Gram matrix."""
        norms, others = (self.norms(rows).astype(left.dtype) for rows in (left, right))
        values = self.similarity(self.numbers(left, right), norms[:, None], others)
        return np.asarray(values, left.dtype)

    def diagonal(self, rows: Any) -> np.ndarray:
        """k(x, x) (n,) of the rows of an array or a CSR matrix, in float64."""
        norms = self.norms(rows)
        return np.asarray(self.similarity(self.self_numbers(norms), norms, norms), np.float64)


def inner_products(left: Any, right: Any) -> np.ndarray:
    """Dot products (n, m) of the rows of two arrays or CSR matrices, as a contiguous array."""
    products = left @ right.T
    return np.ascontiguousarray(products if isinstance(products, np.ndarray) else products.toarray())


def squared_norms(rows: Any) -> np.ndarray:
    """|x|^2 of each row, in float64."""
    if not isinstance(rows, np.ndarray):
        return np.asarray(rows.multiply(rows).sum(axis=1), np.float64).reshape(-1)
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)


class Width(NamedTuple):
    """The parameter of a kernel of a distance."""

    gamma: float

    @classmethod
    def create(cls, gamma: float, degree: int = 3, coef0: float = 1.0) -> Self:
        """From scikit-learn's parameters, of which it has gamma only."""
        return cls(float(gamma))


def median_gamma(rows: Any, labels: np.ndarray, most: int = MOST_SAMPLED, distance: str = "euclidean") -> float:
    """gamma_0 = 1 / (2 m^2), m the median distance between rows of different labels; 1 / m for manhattan distances.

    Jaakkola, Diekhans, Haussler: Using the Fisher kernel method to detect remote protein homologies (ISMB 1999).

    Parameters
    ----------
    rows : (n, d) array or SciPy sparse matrix
    labels : (n,) array
    most : int, default 512
        How many of the rows are used, the first.
    distance : {"euclidean", "manhattan"}, default "euclidean"

    Returns
    -------
    float
        With one label, or no distance, of all pairs; 1 where all rows are the same.

    Examples
    --------
    >>> median_gamma(np.array([[0.0], [2.0], [0.0]]), np.array(["a", "b", "a"]))
    0.125
    """
    rows, labels = rows[:most].astype(np.float64), np.asarray(labels[:most])
    from sklearn.metrics.pairwise import manhattan_distances

    if distance == "manhattan":
        scale, distances = 1.0, manhattan_distances(rows)
    else:
        norms = np.asarray((rows * rows).sum(axis=1))
        scale, distances = 0.5, norms[:, None] + norms - 2.0 * inner_products(rows, rows)  # their squares
    for chosen in (labels[:, None] != labels, ~np.eye(len(labels), dtype=bool)):
        some = distances[chosen]
        if len(some) and (median := float(np.median(some))) > 0.0:
            return scale / median
    largest = float(distances.max(initial=0.0))
    return scale / largest if largest > 0.0 else 1.0


def check_kernel(name: Any) -> None:
    """Raise an error if there is no kernel of this name.

    Examples
    --------
    >>> check_kernel("cubic")
    Traceback (most recent call last):
    tunefree.core.errors.ModelError: unknown `kernel` 'cubic'; choose one of rbf, laplacian, poly, linear
    """
    if not isinstance(name, str) or name not in ALL:
        raise ModelError(f"unknown `kernel` {name!r}; choose one of {', '.join(ALL)}")


def check_effect(group: Any) -> None:
    """Raise an error for a parameter of a kernel that has no effect with the kernel of a group, or without one."""
    if group.kernel is None:
        names = ("gamma", "degree", "coef0", "precision")
        refuse(group, names, "has no effect without a kernel; pass `kernel='rbf'`, or leave it out")
        return
    usual = {"gamma": 1, "degree": 1, "coef0": 1}
    idle = [name for name in usual if kernel_of(group.kernel, **usual) == kernel_of(group.kernel, **usual | {name: 2})]
    refuse(group, idle, f"has no effect with `kernel={group.kernel!r}`; leave it out")
