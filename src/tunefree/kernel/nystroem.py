"""Features of a Gaussian kernel from the data: coordinates in the span of a few rows.

Williams, Seeger: Using the Nyström method to speed up kernel machines (NIPS 2000). With K the kernel matrix of m
landmarks, K = U S U', and k(x) the kernel values of a row with them,

    phi(x) = S^{-1/2} U' k(x),    so that    phi(x) phi(z) = k(x)' K^{-1} k(z)

is the product of the projections of k(x, .) and k(z, .) on the span of the landmarks. Any root of K^{-1} has this
property; U S^{-1/2} gives principal axes, large ones first, each of which a learner that adapts itself to every feature
learns at its own pace: with it such learners come near to second-order ones. The landmarks are chosen among the rows
of a block by Cholesky's factorisation with the pivot of the largest residue (Fine, Scheinberg: Efficient SVM training
using low-rank kernel representations, JMLR 2001): a row that is nearly a combination of others is never taken.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from tunefree.core import compiled
from tunefree.core.rows import Dense, dense, n_rows
from tunefree.kernel.fourier import LENGTH, MOST_NUMBERS
from tunefree.kernel.projection import TILE, as_directions, in_tiles, lengths_of, products_with, tiles_of

N_LANDMARKS = 1024  # m
NOTHING = 1e-9  # residue of a row that adds nothing; K of the landmarks then has no eigenvalue much below


class Nystroem(NamedTuple):
    """Landmarks as directions, and what makes coordinates of kernel values."""

    landmarks: np.ndarray  # (m / TILE, rows, TILE); never changed
    squares: np.ndarray  # (m,) squared lengths; infinite where there is no landmark, for kernel values of 0
    axes: np.ndarray  # (m / TILE, 1 + m, TILE) U S^{-1/2} as directions of a row of kernel values, zeros elsewhere
    gamma: np.ndarray  # () of exp(-gamma ||x - z||^2)
    limit: int  # features from here on are hashed

    @classmethod
    def create(
        cls, block: Any, n_features: int, gamma: float, usable: np.ndarray | None = None, n_landmarks: int = N_LANDMARKS
    ) -> Nystroem:
        """Landmarks from a block of rows, whose features are below ``n_features``, all or those that are ``usable``."""
        m, usable = tiles_of(n_landmarks) * TILE, np.arange(n_rows(block)) if usable is None else usable
        limit = MOST_NUMBERS // m
        directions = as_directions(block, n_features, limit)
        kernel = np.exp(-gamma * squared_distances(block, directions, limit)[np.ix_(usable, usable)])
        with threadpool_limits(1):  # sums whose order depends on the number of threads would give other bytes
            chosen = pivots(kernel, m)
            sizes, vectors = np.linalg.eigh(kernel[np.ix_(chosen, chosen)])
        axes, squares, chosen = np.zeros((1 + m, m)), np.full(m, np.inf), usable[chosen]
        axes[1 : 1 + len(chosen), : len(chosen)] = (vectors / np.sqrt(np.maximum(sizes, NOTHING)))[:, ::-1]
        squares[: len(chosen)] = lengths_of(block)[chosen]
        rows_apart = directions.transpose(0, 2, 1).reshape(-1, directions.shape[1])[chosen]
        met = 1 + int(np.max(np.flatnonzero(rows_apart.any(axis=0)), initial=0))
        landmarks = np.zeros((met, m))  # not of features that may be known already but are in no landmark
        landmarks[:, : len(chosen)] = rows_apart[:, :met].T
        return cls(in_tiles(landmarks), squares, in_tiles(axes), np.array(gamma), limit)


def squared_distances(block: Any, directions: np.ndarray, limit: int) -> np.ndarray:
    """Squared distances (n, n) between the rows of a block, which are the directions too."""
    lengths = lengths_of(block)
    products = products_with(block, directions, limit)[:, : len(lengths)]
    squares = np.maximum(lengths[:, None] + lengths - 2.0 * products, 0.0)
    np.fill_diagonal(squares, 0.0)
    return squares


def pivots(kernel: np.ndarray, most: int) -> np.ndarray:
    """Rows chosen one after the other, each the worst represented by those before; at most so many.

    Examples
    --------
    >>> pivots(np.array([[1.0, 1.0, 0.1], [1.0, 1.0, 0.1], [0.1, 0.1, 1.0]]), 3)
    array([0, 2])
    """
    most = min(most, len(kernel))
    residues, factors = np.diag(kernel).copy(), np.zeros((len(kernel), most))
    chosen = np.zeros(most, np.int64)
    for i in range(most):
        worst = int(np.argmax(residues))
        if residues[worst] < NOTHING:
            return chosen[:i]
        factors[:, i] = (kernel[:, worst] - factors[:, :i] @ factors[worst, :i]) / math.sqrt(residues[worst])
        residues -= factors[:, i] ** 2
        residues[worst] = 0.0
        chosen[i] = worst
    return chosen


def features(nystroem: Nystroem, X: Any, constant: float = 1.0) -> Dense:
    """Rows of m features for the kernel of the landmarks.

    Examples
    --------
    >>> block = dense([[0.0, 1.0], [0.5, 1.0], [2.0, 0.0]])
    >>> x, z, _ = features(Nystroem.create(block, 3, gamma=0.2), block).values / LENGTH
    >>> round(x @ z, 6), round(math.exp(-0.2 * 0.25), 6)
    (np.float64(0.951229), 0.951229)
    """
    kernel = products_with(X, nystroem.landmarks, nystroem.limit)
    bend(kernel, lengths_of(X), nystroem.squares, float(nystroem.gamma))
    values = products_with(dense(kernel), nystroem.axes, nystroem.axes.shape[1])
    return dense(LENGTH * values)._replace(constant=constant)


@compiled.entry
def bend(products, lengths, squares, gamma):
    for i in range(len(products)):
        for m in range(len(squares)):
            distance = max(lengths[i] + squares[m] - 2.0 * products[i, m], 0.0)
            products[i, m] = math.exp(-gamma * distance)
