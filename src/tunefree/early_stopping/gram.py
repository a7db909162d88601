"""Products with a kernel's Gram matrix, a tile at a time: kept where memory allows, computed anew where it does not.

The matrix is symmetric, so only the tiles on and below the diagonal exist. Each serves twice while it is in the cache:
K_ij c_j is a part of block i, and K_ij' c_i of block j. A step reads half of the matrix, and a tile that is not kept
costs half the kernel evaluations. Parts are added up in a fixed order, and each is the product of one thread, so the
number of threads changes no bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import manhattan_distances

from tunefree.core.threads import FEW, each

MOST = {np.dtype(np.float32): 1e30, np.dtype(np.float64): 1e250}  # of a polynomial: sums of such are numbers
BLOCK = 1024  # rows of a tile: 4 MiB in float32


class Kernel(NamedTuple):
    """A kernel and its parameters."""

    name: str  # "linear", "rbf", "laplacian" or "poly"
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 1.0


def tile(kernel: Kernel, left: Any, right: Any) -> np.ndarray:
    """The kernel's values (n, m) of two blocks of rows, in their precision."""
    if kernel.name == "laplacian":
        return np.exp(-kernel.gamma * manhattan_distances(left, right)).astype(left.dtype, copy=False)
    inner = left @ right.T
    inner = np.ascontiguousarray(inner.toarray() if sparse.issparse(inner) else inner)
    if kernel.name == "rbf":  # exp(-gamma (|a|^2 + |b|^2 - 2 ab)), in place
        inner *= 2.0 * kernel.gamma
        inner -= (kernel.gamma * squared_norms(left)).astype(inner.dtype)[:, None]
        inner -= (kernel.gamma * squared_norms(right)).astype(inner.dtype)
        np.minimum(inner, 0.0, out=inner)
        return np.exp(inner, out=inner)
    if kernel.name == "poly":
        inner *= kernel.gamma
        inner += kernel.coef0
        with np.errstate(over="ignore"):
            np.power(inner, kernel.degree, out=inner)
        return np.clip(inner, -MOST[inner.dtype], MOST[inner.dtype], out=inner)
    return inner


def diagonal(kernel: Kernel, rows: Any) -> np.ndarray:
    """K(x, x) of each row."""
    if kernel.name in ("rbf", "laplacian"):
        return np.ones(rows.shape[0])
    norms = squared_norms(rows)
    return norms if kernel.name == "linear" else (kernel.gamma * norms + kernel.coef0) ** kernel.degree


def squared_norms(rows: Any) -> np.ndarray:
    """|x|^2 of each row, in float64."""
    if sparse.issparse(rows):
        return np.asarray(rows.multiply(rows).sum(axis=1), np.float64).reshape(-1)
    return np.einsum("ij,ij->i", rows, rows, dtype=np.float64)


class Gram:
    """Products with the matrix of a kernel's values of rows with themselves, and of held-out rows with them.

    Parameters
    ----------
    kernel : Kernel
    rows, held : (n, d) and (v, d) arrays or CSR matrices
        In the precision of the products.
    budget : int
        Bytes of tiles that may be kept.
    """

    def __init__(self, kernel: Kernel, rows: Any, held: Any, budget: int) -> None:
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
        """Let go of the tiles."""
        self._tiles.clear()

    def _tile(self, k: int, left: Any, i: slice, j: slice) -> Any:
        values = self._tiles.get(k)
        if values is None:
            values = self._values(left, i, j)
            if k < self._kept:
                self._tiles[k] = values
        return values

    def _values(self, left: Any, i: slice, j: slice) -> Any:
        return tile(self.kernel, left[i], self.rows[j])

    def _blocks(self, n: int) -> list[slice]:
        return blocks(n, BLOCK if n > FEW else n)

    def _that_fit(self, budget: float) -> int:
        """How many tiles may be kept."""
        return int(np.searchsorted(self._ends, budget, side="right"))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_tiles": {}}


def blocks(n: int, step: int) -> list[slice]:
    """n rows, so many at a time."""
    return [slice(start, min(start + step, n)) for start in range(0, n, max(step, 1))]


def _size(block: slice) -> int:
    return block.stop - block.start
