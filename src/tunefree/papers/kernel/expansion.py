"""Functions as sums over support points that they share: f_m = factor_m * sum_i c_im k_m(x_i, .).

The rows of the open block stand apart until it is full: their kernel values among themselves are computed at once, and
their coefficients are still being learned. When it is closed, rows with a coefficient join the support. A row that is
in the support already only has its coefficient changed, so a second pass adds no points for rows of the first.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import LEARNED, Part, argument, child, scratch
from tunefree.papers.kernel.points import BLOCK, Points, sums_at, values_within

AXES = {"pointers": "points+1", "outputs": "K"}  # as files name them
Coefficients = tuple[np.ndarray, np.ndarray]  # (M, K, n) of the support, and of the open block


class Terms(NamedTuple):
    """Points, and their coefficients in M functions with K outputs."""

    points: Points
    coefficients: Annotated[np.ndarray, "float64[functions, outputs, n]"]
    lags: Annotated[np.ndarray, "float64[functions, outputs, n]"]  # see pistol

    @classmethod
    def none(cls, n_functions: int, n_outputs: int) -> Terms:
        """No points."""
        nowhere = Points(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0))
        return cls(nowhere, *np.zeros((2, n_functions, n_outputs, 0)))

    def joined(self, others: Points, which: np.ndarray) -> Terms:
        """The points and some others behind them, which have no coefficients yet."""
        none = np.zeros((*self.coefficients.shape[:2], len(which)))
        arrays = (np.concatenate([array, none], axis=2) for array in self[1:])
        return Terms(self.points.joined(others, which), *arrays)


class Expansion(Part):
    """Support points, the open block, and the coefficients of M functions with K outputs.

    Parameters
    ----------
    kernel : kernel
        At the least gamma of the grid.
    steps : (M,) int array
        For each function its step on the grid of bandwidths; several may share one.
    n_outputs : int
    """

    kernel, steps = argument(), argument()
    support: Terms = child(Terms, LEARNED, make=lambda *_: Terms, axes=AXES)
    block: Terms = child(Terms, LEARNED, make=lambda *_: Terms, axes=AXES)  # the open one
    _places: dict[int, int] | None = scratch()  # of the support points, by the hash of their keys; None: not known

    def __init__(self, kernel: Any, steps: np.ndarray, n_outputs: int) -> None:
        self.kernel, self.steps = kernel, np.asarray(steps, np.int64)
        self.support, self.block = (Terms.none(len(steps), n_outputs) for _ in range(2))
        self._places = None

    def check(self) -> None:
        """Raise a ModelError unless each point has its coefficients, and the open block has room."""
        for terms in (self.support, self.block):
            if any(array.shape[::2] != (len(self.steps), terms.points.size) for array in terms[1:]):
                raise ModelError("points or functions of an expansion have not a coefficient each")
        if self.block.points.size >= BLOCK:
            raise ModelError("the open block of support points is full")

    @property
    def n_support(self) -> int:
        """Rows that the functions are made of."""
        return self.support.points.size + self.block.points.size

    def open(self, rows: Points, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Put the rows from ``start`` to ``stop`` into the open block, which has room for them.

        Returns
        -------
        known : (M, stop - start, K) array
            The functions' sums over the support, at these rows.
        values : (S, stop - start, n) array
            At each step of the grid up to theirs, kernel values of these rows and the n rows of the block.
        """
        first = self.block.points.size
        self.block = self.block.joined(rows, np.arange(start, stop))
        n_steps = int(self.steps.max(initial=0)) + 1
        known = self._sums(self.support.points, self.support.coefficients, rows, start, stop)
        return known, values_within(self.kernel, n_steps, self.block.points, first)

    def _sums(self, points: Points, coefficients: np.ndarray, rows: Points, first: int, stop: int) -> np.ndarray:
        """Sums (M, stop - first, K) over points at some rows."""
        return np.ascontiguousarray(sums_at(self.kernel, self.steps, points, coefficients, rows, first, stop))

    def close(self) -> None:
        """Close the open block: its rows that have a coefficient join the support."""
        block, n = self.block, self.support.points.size
        if self._places is None:
            self._places = {hash(key): i for i, key in enumerate(self.support.points.keys())}
        active, keys = np.flatnonzero(block.coefficients.any(axis=(0, 1))), block.points.keys()
        new: list[int] = []
        places = []
        for i in active.tolist():
            places.append(self._places.setdefault(hash(keys[i]), n + len(new)))
            if places[-1] == n + len(new):
                new.append(i)
        self.support = self.support.joined(block.points, np.array(new, np.int64))
        columns: Any = np.s_[:, :, np.array(places, np.int64)]
        for totals, terms in zip(self.support[1:], block[1:], strict=True):
            np.add.at(totals, columns, terms[:, :, active])  # a place may come twice
        self.block = Terms.none(*block.coefficients.shape[:2])

    def restart_averages(self, clocks: np.ndarray) -> None:
        """Begin the averages of the functions anew; the functions learned before go into their lags."""
        for terms in (self.support, self.block):
            terms.lags[:] = terms.coefficients * clocks[:, :, None]

    def averaged(self, clocks: np.ndarray, weights: np.ndarray) -> Coefficients:
        """Coefficients of the averages of the functions.

        Clocks (M, K) and weights (M,) are those of :class:`tunefree.papers.kernel.pistol.KernelPiSTOL`.
        """
        weights = weights[:, None, None]

        def of(terms: Terms) -> np.ndarray:
            totals = terms.coefficients * clocks[:, :, None] - terms.lags
            return np.divide(totals, weights, out=np.zeros_like(totals), where=weights > 0)

        return of(self.support), of(self.block)

    def scaled(self, factors: np.ndarray) -> Coefficients:
        """Coefficients of the functions as they are, with their factors (M, K)."""
        return self.support.coefficients * factors[:, :, None], self.block.coefficients * factors[:, :, None]

    def values(self, rows: Points, coefficients: Coefficients) -> np.ndarray:
        """Values (M, n, K) of functions at any rows."""
        values = np.zeros((len(self.steps), rows.size, self.support.coefficients.shape[1]))
        for start in range(0, rows.size, BLOCK):
            stop = min(start + BLOCK, rows.size)
            for terms, of_terms in zip((self.support, self.block), coefficients, strict=True):
                values[:, start:stop] += self._sums(terms.points, of_terms, rows, start, stop)
        return values

    def remap_outputs(self, placed: np.ndarray) -> None:
        """Change the outputs: each new one is a combination ``placed`` (K_new, K) of the old ones."""
        self.support, self.block = (
            Terms(terms.points, *(np.einsum("lk,mkn->mln", placed, array) for array in terms[1:]))
            for terms in (self.support, self.block)
        )
