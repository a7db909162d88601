"""Rows of a stream in bounded memory, from which it is seen what changed where the loss rises.

Kept are a sample of the rows since the last rise, spread evenly as that of :mod:`tunefree.stream.profile` is, and the
latest rows. Where a rise is sure, the sample, without rows after the beginning of the rise, is what was before; the
rows from there on are what is after, until there are enough of these. Nothing depends on where a stream is cut.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tunefree.core.rows import Block
from tunefree.generations.columns import Columns
from tunefree.stream.profile import GOLDEN, LARGEST
from tunefree.theory.column_changes import MISSING, TARGET, Comparison, compared

SAMPLE = 512  # rows before, and rows after
MOST_COLUMNS = 256  # the first ones that came
ARRAYS = ("keys", "sample", "latest", "before")
_INVERSE = pow(GOLDEN, -1, 2**64)


class ColumnSamples:
    """Samples of the rows of a stream.

    Parameters
    ----------
    is_of_classes : bool, default False
        Whether targets are numbers of classes.

    Attributes
    ----------
    rows : int
        Rows so far.
    began : int
        The row from 0 at which a rise began after which there are not enough rows yet; -1 if there is none.

    Examples
    --------
    >>> from tunefree.core.rows import dense
    >>> rng, samples = np.random.default_rng(0), ColumnSamples()
    >>> X = rng.normal(size=(2000, 2))
    >>> X[1500:, 1] += 2.0
    >>> samples.add(1600, lambda rows: samples.matrix(dense(X[rows]), X[rows, 0]))
    >>> samples.begin(100)
    >>> [(change.key, round(change.distance, 1)) for change in samples.comparison().changes]
    [(2, 0.7)]
    """

    def __init__(self, is_of_classes: bool = False) -> None:
        self.is_of_classes, self.columns = is_of_classes, Columns()
        self.rows, self.began = 0, -1
        self.keys = np.empty(0, np.uint64)  # of the rows in the sample, ascending: their numbers times GOLDEN
        self.sample, self.latest, self.before = (np.empty((0, 1), np.float32) for _ in range(3))

    def matrix(self, X: Block, targets: np.ndarray) -> np.ndarray:
        """Targets and columns (n, 1 + c) of rows; MISSING where nothing is known."""
        values = self.columns.matrix(X, np.ones(len(targets), bool))[:, :MOST_COLUMNS]
        held = np.clip(np.column_stack([targets, values]), -LARGEST, LARGEST)
        return np.where(np.isnan(held), MISSING, held).astype(np.float32)

    @property
    def needed(self) -> int:
        """Rows after which there are enough after a rise; 0 if none are needed."""
        return max(self.began + SAMPLE - self.rows, 0) if self.began >= 0 else 0

    def add(self, n: int, matrix: Callable[[np.ndarray], np.ndarray]) -> None:
        """Add rows.

        Parameters
        ----------
        n : int
        matrix : callable
            From places among the n rows to what :meth:`matrix` makes of the rows there.
        """
        numbers = np.arange(self.rows, self.rows + n)
        keys = numbers.astype(np.uint64) * np.uint64(GOLDEN)
        drawn = np.flatnonzero(keys < self.keys[-1]) if len(self.keys) == SAMPLE else np.arange(n)
        drawn = drawn[np.argsort(keys[drawn])[:SAMPLE]]
        last = np.arange(max(n - SAMPLE, 0), n)
        values = matrix(np.concatenate([drawn, last]))
        self._widen(values.shape[1])
        if len(drawn):
            keys = np.concatenate([self.keys, keys[drawn]])
            order = np.argsort(keys)[:SAMPLE]
            self.keys, self.sample = keys[order], np.concatenate([self.sample, values[: len(drawn)]])[order]
        latest = np.pad(self.latest, ((0, min(self.rows + n, SAMPLE) - len(self.latest)), (0, 0)))
        latest[numbers[last] % SAMPLE] = values[len(drawn) :]
        self.latest, self.rows = latest, self.rows + n

    def begin(self, rows: int) -> None:
        """A rise that began so many rows ago is sure: the sample before it is set aside, and begins anew."""
        numbers = self.keys * np.uint64(_INVERSE)
        self.began = self.rows - rows
        self.before = self.sample[numbers < np.uint64(self.began)]
        self.keys, self.sample = self.keys[:0], self.sample[:0]

    def end(self) -> None:
        """The rise was compared."""
        self.began, self.before = -1, self.before[:0]

    def comparison(self, beyond: int = 0, but: frozenset[int] = frozenset()) -> Comparison | None:
        """What changed at the rise, by the rows so far; None if these are too few, or there is none.

        Parameters
        ----------
        beyond : int, default 0
            The latest rows that are left out, since they belong to the next rise.
        but : set of int
            Keys of columns that are not compared.
        """
        before, latest, began, rows = self.before, self.latest, self.began, self.rows
        if began < 0:
            return None
        after = latest[np.arange(max(began, rows - len(latest)), rows - beyond) % SAMPLE]
        keys = [TARGET, *self.columns.keys[:MOST_COLUMNS]][: min(before.shape[1], after.shape[1])]
        is_category = [self.is_of_classes, *(key < 0 for key in keys[1:])]
        places = [c for c, key in enumerate(keys) if key not in but]
        of_places = [keys[c] for c in places], [is_category[c] for c in places]
        return compared(before[:, places], after[:, places], *of_places)

    def _widen(self, width: int) -> None:
        """Have columns that came later, of which rows before have the fill."""
        if width == self.sample.shape[1]:
            return
        fills = np.array([0.0, *self.columns.fills[:MOST_COLUMNS]])
        fills = np.where(np.isnan(fills), MISSING, fills).astype(np.float32)
        for name in ("sample", "latest", "before"):
            narrow = getattr(self, name)
            wide = np.tile(fills[:width], (len(narrow), 1))
            wide[:, : narrow.shape[1]] = narrow
            setattr(self, name, wide)

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same samples."""
        header = {
            "columns": self.columns.keys,
            "fills": [None if fill != fill else fill for fill in self.columns.fills],
        }
        header |= {"is_of_classes": self.is_of_classes, "rows": self.rows, "began": self.began}
        return {name: getattr(self, name).copy() for name in ARRAYS}, header

    @classmethod
    def restore(cls, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> ColumnSamples:
        """The samples that :meth:`save_state` wrote down."""
        samples = cls(header["is_of_classes"])
        samples.columns = Columns(header["columns"], [np.nan if fill is None else fill for fill in header["fills"]])
        samples.rows, samples.began = header["rows"], header["began"]
        for name in ARRAYS:
            setattr(samples, name, np.array(arrays[name]))
        return samples
