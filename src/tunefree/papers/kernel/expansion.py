"""Functions as sums over support points that they share: f_m = factor_m * sum_i c_im k_m(x_i, .).

The rows of the open block stand apart until it is full: their kernel values among themselves are computed at once, and
their coefficients are still being learned. When it is closed, rows with a coefficient join the support. A row that is
in the support already only has its coefficient changed, so a second pass adds no points for rows of the first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.threads import one_for_products
from tunefree.papers.kernel import kernel_sums
from tunefree.papers.kernel.backend import Backend, ExpansionTerms, IncomingRows
from tunefree.papers.kernel.backends import backend_of
from tunefree.papers.kernel.points import BLOCK, TILE, selected, unpacked


class Expansion:
    """Support points, the open block, and the coefficients of M functions with K outputs.

    Parameters
    ----------
    kernel : kernel
        At the least gamma of the grid.
    steps : (M,) int array
        For each function its step on the grid of bandwidths; several may share one.
    n_outputs : int
    like : points
        Of the kind that is to come.
    device : str, optional
        Where sums are computed, see :func:`tunefree.papers.kernel.backends.backend_of`.
    """

    def __init__(self, kernel: Any, steps: np.ndarray, n_outputs: int, like: Any, device: str | None = None) -> None:
        self.backend = backend_of(device)
        self.kernel, self.steps = kernel, np.asarray(steps, np.int64)
        n_functions = len(self.steps)
        self.store, self.n = like.empty(kernel), 0
        self.coefficients = np.zeros((n_functions, n_outputs, 0))  # (M, K, capacity)
        self.lags = np.zeros((n_functions, n_outputs, 0))  # (M, K, capacity): see contract
        self.block, self.filled = selected(like, np.arange(0)), 0
        self.open_coefficients = np.zeros((n_functions, n_outputs, BLOCK))
        self.open_lags = np.zeros((n_functions, n_outputs, BLOCK))
        self.open_values = np.zeros((int(self.steps.max(initial=0)) + 1, BLOCK, BLOCK))  # of the kernel, at each step
        self._places: dict[int, int] | None = {}  # of the support points, by the hash of their keys

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

    def open(self, rows: Any, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Put rows into the open block, which has capacity for them.

        Parameters
        ----------
        rows, which : points, array
            Some points, and which of them, one after another.

        Returns
        -------
        known : (M, BLOCK, K) array
            The functions' sums over the support, at these rows.
        values : (S, BLOCK, BLOCK) array
            At each step of the grid up to theirs, kernel values of these rows and those before in the block.
        """
        first, self.filled = self.filled, self.filled + len(which)
        self.block = self.block.joined(first, rows, which)
        block = self.block.cut(0, BLOCK)
        incoming = IncomingRows(block, (first, self.filled), rows, int(which[0]))
        with one_for_products():  # once for both
            known = self.backend.sums(self.terms(self.coefficients), incoming)
            kernel_sums.write_values_within(self.kernel, block, incoming.rows, self.open_values)
        if not np.isfinite(known).all():
            raise ModelError(kernel_sums.NOT_FINITE)
        return known, self.open_values

    def close(self) -> None:
        """Close the open block: its rows that have a coefficient join the support."""
        active = np.flatnonzero(self.open_coefficients.any(axis=(0, 1)))
        names = self.block.as_kept_by(self.store).keys(self.filled)
        places = self._known_places()
        new: list[int] = []
        of_active: list[int] = []
        for i in active.tolist():
            place = places.get(hash(names[i]))
            if place is None:
                place = places[hash(names[i])] = self.n + len(new)
                new.append(i)
            of_active.append(place)
        self._make_room(self.n + len(new))
        self.store = self.store.joined(self.n, self.block, np.array(new, np.int64))
        self.n += len(new)
        places_of_active = np.array(of_active, np.int64)
        columns: Any = np.s_[:, :, places_of_active]
        for totals, terms in ((self.coefficients, self.open_coefficients), (self.lags, self.open_lags)):
            np.add.at(totals, columns, terms[:, :, active])  # a place may come twice
        self.backend.support_changed(self.block, active, places_of_active, self.open_coefficients)
        self.open_coefficients[:] = self.open_lags[:] = 0.0
        self.block, self.filled = selected(self.block, np.arange(0)), 0

    def _known_places(self) -> dict[int, int]:
        if self._places is None:
            names = self.store.keys(self.n)
            self._places = {hash(name): i for i, name in enumerate(names)}
        return self._places

    def _make_room(self, n: int) -> None:
        if n > self.coefficients.shape[2]:
            room = -(-max(n, 2 * self.coefficients.shape[2]) // TILE) * TILE
            shape = (self.n_functions, self.n_outputs, room)
            for name in ("coefficients", "lags"):
                numbers, grown = getattr(self, name), np.zeros(shape)
                grown[:, :, : numbers.shape[2]] = numbers
                setattr(self, name, grown)

    def restart_averages(self, clocks: np.ndarray) -> None:
        """Begin the averages of the functions anew; what was learned before goes into their lags."""
        self.lags[:, :, : self.n] = self.coefficients[:, :, : self.n] * clocks[:, :, None]
        self.open_lags[:] = self.open_coefficients * clocks[:, :, None]

    def fold(self, m: int, factors: np.ndarray, clocks: np.ndarray) -> None:
        """Multiply the coefficients of a function by factors (K,), which the learner then resets to 1.

        No block may be open. Lags then hold the whole contribution of past rounds to the average, and the clocks (K,)
        begin at 0 again.
        """
        coefficients, lags = self.coefficients[m, :, : self.n], self.lags[m, :, : self.n]
        lags -= coefficients * clocks[:, None]
        coefficients *= factors[:, None]
        self.backend.invalidate()

    def averaged(self, clocks: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (M, K, n) of the averages of the functions, and those of the open block (M, K, BLOCK).

        Clocks (M, K) and shares (M,) are those of :class:`tunefree.papers.kernel.contract.KernelLearner`.
        """
        parts = []
        for coefficients, lags in self._both():
            totals = coefficients * clocks[:, :, None] - lags
            parts.append(
                np.divide(totals, shares[:, None, None], out=np.zeros_like(totals), where=shares[:, None, None] > 0)
            )
        return parts[0], parts[1]

    def scaled(self, factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of the functions as they are, with their factors (M, K)."""
        first, second = (coefficients * factors[:, :, None] for coefficients, _ in self._both())
        return first, second

    def _both(self) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        n = self.n
        return (self.coefficients[:, :, :n], self.lags[:, :, :n]), (self.open_coefficients, self.open_lags)

    def values(self, rows: Any, coefficients: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Values (M, n, K) of functions at any rows."""
        tail = self.store.empty(None).joined(0, self.block, np.arange(self.filled))
        open_terms = ExpansionTerms(self.kernel, self.steps, tail, self.filled, coefficients[1])
        return self.backend.values(self.terms(coefficients[0]), rows) + Backend().values(open_terms, rows)

    def terms(self, coefficients: np.ndarray) -> ExpansionTerms:
        """What a backend computes sums of: the functions over the support, with some coefficients."""
        return ExpansionTerms(self.kernel, self.steps, self.store, self.n, coefficients)

    def keep(self, stays: list[int], kernel: Any, steps: np.ndarray) -> None:
        """Keep some of the functions, and the support points with a coefficient in one of them."""
        self.kernel, self.steps = kernel, np.asarray(steps, np.int64)
        for name in ("coefficients", "lags", "open_coefficients", "open_lags"):
            setattr(self, name, np.ascontiguousarray(getattr(self, name)[stays]))
        self.open_values = np.zeros((int(self.steps.max(initial=0)) + 1, BLOCK, BLOCK))
        self.backend.invalidate()
        self.compact()

    def compact(self) -> None:
        """Drop the support points of which all coefficients are zero."""
        kept = np.flatnonzero((self.coefficients[:, :, : self.n] != 0.0).any(axis=(0, 1)))
        if len(kept) < self.n:
            self.store = selected(self.store, kept, self.kernel)
            coefficients, lags = self.coefficients[:, :, kept], self.lags[:, :, kept]
            self.coefficients, self.lags, self.n, self._places = coefficients, lags, len(kept), None
            self.backend.invalidate()

    def remap_outputs(self, placed: np.ndarray) -> None:
        """Change the outputs: each new one is a combination ``placed`` (K_new, K) of the old ones."""
        for name in ("coefficients", "lags", "open_coefficients", "open_lags"):
            setattr(self, name, np.einsum("lk,mkn->mln", placed, getattr(self, name)))
        self.backend.invalidate()

    def move(self, device: str | None) -> None:
        """Compute on another device from now on."""
        self.backend = backend_of(device)

    def save_state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`restore` makes the same functions."""
        arrays = {f"support.{name}": value for name, value in self.store.packed(self.n).items()}
        arrays |= {f"open.{name}": value for name, value in self.block.packed(self.filled).items()}
        for name in ("coefficients", "lags"):
            arrays[name] = getattr(self, name)[:, :, : self.n]
            arrays[f"open_{name}"] = getattr(self, f"open_{name}")[:, :, : self.filled]
        return arrays

    @classmethod
    def restore(
        cls, kernel: Any, steps: np.ndarray, arrays: dict[str, np.ndarray], device: str | None = None
    ) -> Expansion:
        """The functions that :meth:`save_state` wrote down."""
        store, block = (unpacked(arrays, name) for name in ("support.", "open."))
        restored = cls(kernel, steps, arrays["coefficients"].shape[1], block, device)
        restored._make_room(store.size)
        restored.n, restored.filled, restored._places = store.size, block.size, None
        restored.store = restored.store.joined(0, store, np.arange(restored.n))
        restored.block = restored.block.joined(0, block, np.arange(restored.filled))
        for name in ("coefficients", "lags"):
            getattr(restored, name)[:, :, : restored.n] = arrays[name]
            getattr(restored, f"open_{name}")[:, :, : restored.filled] = arrays[f"open_{name}"]
        return restored
