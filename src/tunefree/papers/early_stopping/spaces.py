"""The two forms of f in the subgradient method: weights on a finite dictionary, and coefficients of a kernel.

A space holds the rows that are learned and those held out. It computes margins from coefficients, and the coefficients
of the subgradient from slopes in the margins. The method (:mod:`.subgradient`) is the same in
both.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from tunefree.core.threads import each
from tunefree.papers.early_stopping.products import gram_of
from tunefree.papers.kernel.pairs import squared_norms

PANEL = 2**21  # bytes of rows that a thread takes at a time: they stay in the cache for both products
MOST_PANELS = 64

Respond = Callable[[slice, np.ndarray], np.ndarray]


class Dictionary:
    """Weights on Phi(x): f(x) = w . Phi(x), with one more element, 1, whose weight is the last.

    Parameters
    ----------
    rows, held : (n, p) and (v, p) arrays or CSR matrices
        Phi of the rows.
    """

    def __init__(self, rows: Any, held: Any) -> None:
        self.rows, self._held = rows, held
        self.n_rows, self.n_coefficients = rows.shape[0], rows.shape[1] + 1
        size = rows.data.nbytes + rows.indices.nbytes if sparse.issparse(rows) else rows.nbytes
        sums = 8 * self.n_coefficients  # bytes of a panel's part of the gradient: no more in all than rows
        n_panels = max(min(size // PANEL, size // sums, MOST_PANELS, self.n_rows), 1)
        edges = np.linspace(0, self.n_rows, n_panels + 1).astype(int).tolist()
        self._places = [slice(a, b) for a, b in pairwise(edges)]
        self._panels = [rows[place] for place in self._places]

    def sweep(self, coefficients: np.ndarray, respond: Respond) -> np.ndarray:
        """The coefficients of sum_j slope_j K_{x_j}, with the slopes that ``respond`` returns for the rows' margins."""
        parts: list[Any] = [None] * len(self._panels)

        def work(k: int) -> None:
            slopes = respond(self._places[k], self._margins(self._panels[k], coefficients))
            parts[k] = self._gradient(self._panels[k], slopes)

        each(work, [(k,) for k in range(len(parts))], self.n_rows)
        total = parts[0]
        for part in parts[1:]:
            total += part
        return total

    def held(self, coefficients: np.ndarray) -> np.ndarray:
        """Margins (v, K) of the rows held out."""
        return self._margins(self._held, coefficients)

    def norm(self, coefficients: np.ndarray, margins: np.ndarray) -> float:
        """||f||, from its coefficients and its margins (n, K)."""
        return float(np.linalg.norm(coefficients))

    def squared_sizes(self) -> np.ndarray:
        """K(x, x) of each row."""
        return squared_norms(self.rows) + 1.0

    def some(self, rows: np.ndarray, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Margins (b, K) and inner products (b, b) of some rows."""
        block = self.rows[rows]
        inner = block @ block.T
        inner = inner.toarray() if sparse.issparse(inner) else inner
        return self._margins(block, coefficients), np.ascontiguousarray(inner + 1.0)

    def pull(self, rows: np.ndarray, slopes: np.ndarray, coefficients: np.ndarray) -> None:
        """Subtract sum_j slope_j K_{x_j} over some rows from the coefficients."""
        coefficients -= self._gradient(self.rows[rows], slopes)

    def release(self) -> None:
        """Free what can be computed again: here nothing."""

    def _margins(self, rows: Any, coefficients: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(rows @ coefficients[:-1]) + coefficients[-1]

    def _gradient(self, rows: Any, slopes: np.ndarray) -> np.ndarray:
        gradient = np.empty((self.n_coefficients, slopes.shape[1]))
        gradient[:-1] = rows.T @ slopes
        gradient[-1] = slopes.sum(axis=0)
        return gradient


class KernelSpace:
    """Coefficients of a kernel: f(x) = sum_i c_i K(x, x_i); methods as of :class:`Dictionary`.

    Parameters
    ----------
    kernel : kernel
        See :mod:`tunefree.papers.kernel.kernels`.
    rows, held : (n, d) and (v, d) arrays or CSR matrices
        In the precision in which the kernel is computed.
    budget : int
        Bytes of the Gram matrix that may be kept.
    device : str, optional
        Where PyTorch computes the Gram matrix; by default NumPy does, on the processor.
    """

    def __init__(self, kernel: Any, rows: Any, held: Any, budget: int, device: str | None = None) -> None:
        self.gram = gram_of(kernel, rows, held, budget, device)
        self.n_rows = self.n_coefficients = rows.shape[0]

    @property
    def rows(self) -> Any:
        return self.gram.rows

    def sweep(self, coefficients: np.ndarray, respond: Respond) -> np.ndarray:
        return respond(slice(0, self.n_rows), self.gram.times(coefficients))

    def held(self, coefficients: np.ndarray) -> np.ndarray:
        return self.gram.times_held(coefficients)

    def norm(self, coefficients: np.ndarray, margins: np.ndarray) -> float:
        return float(np.sqrt(max((coefficients * margins).sum(), 0.0)))

    def squared_sizes(self) -> np.ndarray:
        return self.gram.kernel.diagonal(self.gram.rows)

    def some(self, rows: np.ndarray, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        block = self.gram.rows[rows]
        inner = self.gram.kernel.tile(block, block).astype(np.float64)
        return self.gram.times_others(block, coefficients), inner

    def pull(self, rows: np.ndarray, slopes: np.ndarray, coefficients: np.ndarray) -> None:
        coefficients[rows] -= slopes

    def release(self) -> None:
        self.gram.release()


Space = Dictionary | KernelSpace


def space_of(kernel: Any, rows: Any, held: Any, budget: int, device: str | None = None) -> Space:
    """The space of a kernel, or weights on the features where it is None; arguments as in :class:`KernelSpace`."""
    return Dictionary(rows, held) if kernel is None else KernelSpace(kernel, rows, held, budget, device)


def largest_eigenvalue(space: Space, weight: np.ndarray, start: np.ndarray, products: int = 12) -> float:
    """An estimate of the largest eigenvalue of f -> sum_j weight_j f(x_j) K_{x_j}, by the power method, plus a tenth.

    Times the smoothness of the loss it is the smoothness of the empirical error, which the theorems bound by kappa^2.
    Weights (n,) of the rows have the sum 1, and ``start`` (n,) is a function of the rows: power steps do not depend on
    how equal rows are written down.
    """
    roots, largest = np.sqrt(weight)[:, None], 0.0
    vector = roots * start[:, None]
    for _ in range(products):
        length = np.linalg.norm(vector)
        if not length > 0.0:
            break
        vector /= length
        image = _image(space, roots * vector)
        largest = max(largest, float((roots * vector * image).sum()))
        vector = roots * image
    return 1.1 * largest


def _image(space: Space, slopes: np.ndarray) -> np.ndarray:
    """sum_j slope_j K(x_i, x_j) (n, 1) for each row i."""
    nothing = np.zeros((space.n_coefficients, 1))
    gradient = space.sweep(nothing, lambda place, margins: slopes[place])
    image = np.empty_like(slopes)

    def read(place: slice, margins: np.ndarray) -> np.ndarray:
        image[place] = margins
        return np.zeros_like(margins)

    space.sweep(gradient, read)
    return image
