"""Products with a kernel's Gram matrix, a tile at a time: kept where memory allows, computed anew where it does not.

The matrix is symmetric, so only the tiles on and below the diagonal are computed. Each is used twice while it is in the
cache: K_ij c_j is a part of block i, and K_ij' c_i of block j. So a product reads half of the matrix, and computes half
of the kernel values that are not kept. Each part is computed by one thread, and parts are added up in a fixed order:
the number of threads changes no bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.threads import FEW, each

BLOCK = 1024  # rows of a tile: 4 MiB in float32


class Gram:
    """Products with the matrix of a kernel's values of rows with themselves, and of held-out rows with them.

    Parameters
    ----------
    kernel : kernel
        See :mod:`tunefree.papers.kernel.kernels`.
    rows, held : (n, d) and (v, d) arrays or CSR matrices
        In the precision of the products.
    budget : int
        Bytes of tiles that may be kept.
    """

    def __init__(self, kernel: Any, rows: Any, held: Any, budget: int) -> None:
        self.kernel, self.rows, self.held, self.budget = kernel, rows, held, budget
        mine, others = self._blocks(rows.shape[0]), self._blocks(held.shape[0])
        self._square = [(i, j) for n, i in enumerate(mine) for j in mine[: n + 1]]
        self._beside = [(i, j) for i in others for j in mine]
        sizes = [_size(i) * _size(j) * rows.dtype.itemsize for i, j in self._square + self._beside]
        self._ends = np.cumsum(sizes)
        self._kept = self._that_fit(budget)
        self._tiles: dict[int, Any] = {}

    def times(self, coefficients: np.ndarray) -> np.ndarray:
        """K c (n, K) of the rows, from coefficients (n, K); nothing is multiplied by zeros."""
        if not coefficients.any():
            return np.zeros(coefficients.shape)
        parts: list[Any] = [None] * len(self._square)
        thin = coefficients.astype(self.rows.dtype)

        def multiply(k: int, i: slice, j: slice) -> None:
            values = self._tile(k, self.rows, i, j)
            with np.errstate(invalid="ignore"):  # of coefficients that leave the range of single precision
                parts[k] = values @ thin[j], values.T @ thin[i] if i != j else None

        each(multiply, [(k, i, j) for k, (i, j) in enumerate(self._square)], self.rows.shape[0])
        product = np.zeros(coefficients.shape)
        for (i, j), (below, above) in zip(self._square, parts, strict=True):
            product[i] += below
            if above is not None:
                product[j] += above
        return product

    def times_held(self, coefficients: np.ndarray) -> np.ndarray:
        """K c (v, K) of the held-out rows."""
        parts: list[Any] = [None] * len(self._beside)
        thin = coefficients.astype(self.rows.dtype)

        def multiply(k: int, i: slice, j: slice) -> None:
            with np.errstate(invalid="ignore"):
                parts[k] = self._tile(k + len(self._square), self.held, i, j) @ thin[j]

        each(multiply, [(k, i, j) for k, (i, j) in enumerate(self._beside)], self.rows.shape[0])
        product = np.zeros((self.held.shape[0], coefficients.shape[1]))
        for (i, _), part in zip(self._beside, parts, strict=True):
            product[i] += part
        return product

    def times_others(self, others: Any, coefficients: np.ndarray) -> np.ndarray:
        """K c (m, K) of any other rows; nothing of theirs is kept."""
        return Gram(self.kernel, self.rows, others, 0).times_held(coefficients)

    def release(self) -> None:
        """Free the tiles."""
        self._tiles.clear()

    def _tile(self, k: int, left: Any, i: slice, j: slice) -> Any:
        values = self._tiles.get(k)
        if values is None:
            values = self._values(left, i, j)
            if k < self._kept:
                self._tiles[k] = values
        return values

    def _values(self, left: Any, i: slice, j: slice) -> Any:
        return self.kernel.tile(left[i], self.rows[j])

    def _blocks(self, n: int) -> list[slice]:
        return slices_of(n, BLOCK if n > FEW else n)

    def _that_fit(self, budget: float) -> int:
        """How many tiles may be kept."""
        return int(np.searchsorted(self._ends, budget, side="right"))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_tiles": {}}


def slices_of(n: int, step: int) -> list[slice]:
    """n rows, so many at a time."""
    return [slice(start, min(start + step, n)) for start in range(0, n, max(step, 1))]


def _size(block: slice) -> int:
    return block.stop - block.start
