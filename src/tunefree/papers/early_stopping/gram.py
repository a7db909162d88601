"""Products with a kernel's Gram matrix, a tile at a time: kept where memory allows, computed anew where it does not.

The matrix of rows with themselves is symmetric, so only the tiles on and below the diagonal are computed, and each is
used twice while it is in the cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

BLOCK = 1024  # rows of a tile: 4 MiB in float32
MOST_BYTES = 2**30  # of the tiles of a matrix that are kept


class Gram:
    """The matrix (n, m) of a kernel's values, which is multiplied by coefficients (m, K): ``gram @ coefficients``.

    Parameters
    ----------
    kernel : kernel
        See :mod:`tunefree.papers.kernel.kernels`.
    left : (n, d) array or CSR matrix
    right : (m, d) array or CSR matrix, optional
        Both are in the precision of the products. By default the rows of ``left``.

    Examples
    --------
    >>> from tunefree.papers.kernel.usual import Gaussian
    >>> (Gram(Gaussian(0.5), np.array([[1.0], [3.0]])) @ np.array([[1.0], [0.0]])).round(4).tolist()
    [[1.0], [0.1353]]
    """

    def __init__(self, kernel: Any, left: Any, right: Any = None) -> None:
        self.kernel, self.left, self.right = kernel, left, left if right is None else right
        self.is_symmetric = right is None
        self.shape = left.shape[0], self.right.shape[0]
        self.tiles: dict[tuple[int, int], np.ndarray] = {}
        self.kept = 0  # bytes

    def __matmul__(self, coefficients: np.ndarray) -> np.ndarray:
        product = np.zeros((self.shape[0], coefficients.shape[1]))
        if not coefficients.any():
            return product
        thin = coefficients.astype(self.right.dtype)
        with np.errstate(invalid="ignore"):  # of coefficients that leave the range of single precision
            for i in _blocks(self.shape[0]):
                for j in _blocks(i.stop if self.is_symmetric else self.shape[1]):
                    values = self._tile(i, j)
                    product[i] += values @ thin[j]
                    if self.is_symmetric and i != j:
                        product[j] += values.T @ thin[i]
        return product

    def _tile(self, i: slice, j: slice) -> np.ndarray:
        values = self.tiles.get((i.start, j.start))
        if values is None:
            values = self.kernel.tile(self.left[i], self.right[j])
            if self.kept + values.nbytes <= MOST_BYTES:
                self.tiles[i.start, j.start] = values
                self.kept += values.nbytes
        return values


def _blocks(n: int) -> list[slice]:
    return [slice(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
