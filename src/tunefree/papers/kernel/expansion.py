"""Functions as sums over support points that they share: f_m = factor_m * sum_i c_im k_m(x_i, .).

The rows of the open block stand apart until it is full: their kernel values among themselves are computed at once, and
their coefficients are still being learned. When it is closed, rows with a coefficient join the support. A row that is
in the support already only has its coefficient changed, so a second pass adds no points for rows of the first.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import LEARNED, Part, argument, array, child, scratch
from tunefree.core.schema import Limits
from tunefree.papers.kernel.points import BLOCK, ROOM, Points, sums_at, values_within

Coefficients = tuple[np.ndarray, np.ndarray]  # (M, K, n) of the support, and (M, K, BLOCK) of the open block


class SavedPoints(NamedTuple):
    """Points as files have them, without spare capacity."""

    pointers: Annotated[np.ndarray, "int64[n+1]", Limits(ascends_to="e")]
    features: Annotated[np.ndarray, "int32[e]", Limits(0, "D")]
    values: Annotated[np.ndarray, "float64[e]"]
    norms: Annotated[np.ndarray, "float64[n]"]


def _saved_points(name: str, filled: str, write: Any) -> Any:
    """A field of points, of which so many are in use."""

    def read(expansion: Any) -> SavedPoints:
        return SavedPoints(*getattr(expansion, name).packed(getattr(expansion, filled)))

    return child(SavedPoints, LEARNED, make=lambda *_: SavedPoints, read=read, write=write)


def _saved_numbers(name: str, n: str) -> Any:
    """A field of numbers of functions, outputs and points, of which so many are in use."""

    def write(expansion: Any, saved: np.ndarray) -> None:
        getattr(expansion, name)[:, :, : getattr(expansion, n)] = saved

    def read(expansion: Any) -> np.ndarray:
        numbers: np.ndarray = getattr(expansion, name)[:, :, : getattr(expansion, n)]
        return numbers

    return array("float64", ("n_functions", "K", n), LEARNED, read=read, write=write)


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

    kernel, steps, n, filled = argument(), argument(), argument(), argument()
    store: Points = _saved_points("store", "n", lambda expansion, points: expansion._have_support(points))
    block: Points = _saved_points("block", "filled", lambda expansion, points: expansion._have_block(points))
    coefficients, lags = _saved_numbers("coefficients", "n"), _saved_numbers("lags", "n")
    open_coefficients = _saved_numbers("open_coefficients", "filled")
    open_lags = _saved_numbers("open_lags", "filled")
    _places: dict[int, int] | None = scratch()  # of the support points, by the hash of their keys

    def __init__(self, kernel: Any, steps: np.ndarray, n_outputs: int) -> None:
        self.kernel, self.steps = kernel, np.asarray(steps, np.int64)
        n_functions = len(self.steps)
        self.store, self.n = Points.empty(), 0
        self.coefficients = np.zeros((n_functions, n_outputs, 0))  # (M, K, capacity)
        self.lags = np.zeros((n_functions, n_outputs, 0))  # (M, K, capacity): see pistol
        self.block, self.filled = Points.empty(), 0
        self.open_coefficients = np.zeros((n_functions, n_outputs, BLOCK))
        self.open_lags = np.zeros((n_functions, n_outputs, BLOCK))
        self._places = None

    @property
    def n_functions(self) -> int:
        return self.coefficients.shape[0]

    @property
    def n_outputs(self) -> int:
        return self.coefficients.shape[1]

    @property
    def n_support(self) -> int:
        """Rows that the functions are made of."""
        return self.n + self.filled

    def open(self, rows: Points, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Put the rows from ``start`` to ``stop`` into the open block, which has capacity for them.

        Returns
        -------
        known : (M, BLOCK, K) array
            The functions' sums over the support, at these rows; at their places in the block.
        values : (S, BLOCK, BLOCK) array
            At each step of the grid up to theirs, kernel values of these rows and those before in the block.
        """
        first, self.filled = self.filled, self.filled + stop - start
        self.block = self.block.joined(first, rows, np.arange(start, stop))
        here = slice(first, self.filled)
        known = np.zeros((self.n_functions, BLOCK, self.n_outputs))
        values = np.zeros((int(self.steps.max(initial=0)) + 1, BLOCK, BLOCK))
        known[:, here] = self._sums(self.coefficients, self.block, first, self.filled)
        block = self.block.packed(self.filled)
        values[:, here, : self.filled] = values_within(self.kernel, len(values), block, first, self.filled)
        return known, values

    def _sums(self, coefficients: np.ndarray, rows: Points, first: int, stop: int) -> np.ndarray:
        """Sums (M, stop - first, K) over the support at some rows."""
        return sums_at(self.kernel, self.steps, self.store, self.n, coefficients, rows, first, stop)

    def close(self) -> None:
        """Close the open block: its rows that have a coefficient join the support."""
        active = np.flatnonzero(self.open_coefficients.any(axis=(0, 1)))
        names, places = self.block.keys(self.filled), self._known_places()
        new: list[int] = []
        of_active: list[int] = []
        for i in active.tolist():
            place = places.setdefault(hash(names[i]), self.n + len(new))
            if place == self.n + len(new):
                new.append(i)
            of_active.append(place)
        self._make_room(self.n + len(new))
        self.store = self.store.joined(self.n, self.block, np.array(new, np.int64))
        self.n += len(new)
        columns: Any = np.s_[:, :, np.array(of_active, np.int64)]
        for totals, terms in ((self.coefficients, self.open_coefficients), (self.lags, self.open_lags)):
            np.add.at(totals, columns, terms[:, :, active])  # a place may come twice
        self.open_coefficients[:] = self.open_lags[:] = 0.0
        self.block, self.filled = Points.empty(), 0

    def _known_places(self) -> dict[int, int]:
        if self._places is None:
            names = self.store.keys(self.n)
            self._places = {hash(name): i for i, name in enumerate(names)}
        return self._places

    def _make_room(self, n: int) -> None:
        if n > self.coefficients.shape[2]:
            room = -(-max(n, 2 * self.coefficients.shape[2]) // ROOM) * ROOM
            shape = (self.n_functions, self.n_outputs, room)
            for name in ("coefficients", "lags"):
                numbers, grown = getattr(self, name), np.zeros(shape)
                grown[:, :, : numbers.shape[2]] = numbers
                setattr(self, name, grown)

    def restart_averages(self, clocks: np.ndarray) -> None:
        """Begin the averages of the functions anew; what was learned before goes into their lags."""
        self.lags[:, :, : self.n] = self.coefficients[:, :, : self.n] * clocks[:, :, None]
        self.open_lags[:] = self.open_coefficients * clocks[:, :, None]

    def averaged(self, clocks: np.ndarray, weights: np.ndarray) -> Coefficients:
        """Coefficients (M, K, n) of the averages of the functions, and those of the open block (M, K, BLOCK).

        Clocks (M, K) and weights (M,) are those of :class:`tunefree.papers.kernel.pistol.KernelPiSTOL`.
        """
        parts = []
        for coefficients, lags in self._both():
            totals = coefficients * clocks[:, :, None] - lags
            parts.append(
                np.divide(totals, weights[:, None, None], out=np.zeros_like(totals), where=weights[:, None, None] > 0)
            )
        return parts[0], parts[1]

    def scaled(self, factors: np.ndarray) -> Coefficients:
        """Coefficients of the functions as they are, with their factors (M, K)."""
        first, second = (coefficients * factors[:, :, None] for coefficients, _ in self._both())
        return first, second

    def _both(self) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        n = self.n
        return (self.coefficients[:, :, :n], self.lags[:, :, :n]), (self.open_coefficients, self.open_lags)

    def values(self, rows: Points, coefficients: Coefficients) -> np.ndarray:
        """Values (M, n, K) of functions at any rows."""
        found = np.zeros((self.n_functions, rows.size, self.n_outputs))
        for start in range(0, rows.size, BLOCK):
            stop = min(start + BLOCK, rows.size)
            found[:, start:stop] = self._sums(coefficients[0], rows, start, stop)
            of_block = self.block, self.filled, coefficients[1]
            found[:, start:stop] += sums_at(self.kernel, self.steps, *of_block, rows, start, stop)
        return found

    def remap_outputs(self, placed: np.ndarray) -> None:
        """Change the outputs: each new one is a combination ``placed`` (K_new, K) of the old ones."""
        for name in ("coefficients", "lags", "open_coefficients", "open_lags"):
            setattr(self, name, np.einsum("lk,mkn->mln", placed, getattr(self, name)))

    def _have_support(self, points: SavedPoints) -> None:
        self.store, self.n = Points(*points), len(points.norms)
        self._make_room(self.n)

    def _have_block(self, points: SavedPoints) -> None:
        self.block, self.filled = Points(*points), len(points.norms)
        if self.filled >= BLOCK:
            raise ModelError("the open block of support points is full")
