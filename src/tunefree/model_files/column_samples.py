"""Samples of the rows of a stream, in bounded memory, for finding the columns that changed at a rise of the loss.

Rows are identified by row number. For each rise, the sample *before* is spread evenly over the rows between the
previous rise and the start of this one, as in :mod:`tunefree.stream.profile`. The sample *after* are the rows from its
start, up to the next rise; of too many, the latest. Row numbers are chosen first. Values are held for the current
sample, for a rise that may have started, and for the latest rise until it is compared. Batch boundaries have no effect.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import FIXED, LEARNED, Part, array, child, number
from tunefree.core.rows import Block
from tunefree.core.schema import COUNT, Flag
from tunefree.generations.columns import Columns
from tunefree.generations.reservoir import GOLDEN
from tunefree.theory.column_changes import MISSING, TARGET, Comparison, compared

SAMPLE = 512  # largest number of rows before, and of rows after
NO_ROWS = np.empty(0, np.int64)
MOST_COLUMNS = 256  # only the first columns of a stream are sampled
LARGEST = 3e38  # bound of values, in single precision


class ColumnSamples(Part):
    """Samples of the rows of a stream; ``is_of_classes`` is whether targets are class codes.

    ``numbers`` (h,) and ``values`` (h, 1 + c) are the row numbers, ascending, and the values of the held rows, among
    ``rows`` rows so far. ``sample`` are row numbers since the last rise. While a rise waits for comparison, ``row`` is
    the row of the stream where it started, from 1, ``before`` are row numbers before it, and the rows after it have the
    numbers ``start`` to ``stop``, which may be in the future.

    >>> from tunefree.core.rows import dense
    >>> rng, samples = np.random.default_rng(0), ColumnSamples()
    >>> X = rng.normal(size=(2000, 2))
    >>> X[1500:, 1] += 2.0
    >>> samples.add(1600, 100, lambda rows: samples.matrix(dense(X[rows]), X[rows, 0]))
    >>> samples.note_rise(100, row=1501)
    >>> samples.add(400, 0, lambda rows: samples.matrix(dense(X[1600:][rows]), X[1600:][rows, 0]))
    >>> [(change.key, round(change.distance, 1)) for change in samples.comparison().changes]
    [(2, 0.7)]
    """

    is_of_classes = number(FIXED, Flag())
    rows = number(LEARNED, COUNT)
    columns = child(Columns, LEARNED, read=lambda samples: samples._known()[0])
    numbers = array("int64", ("h",), LEARNED, low=0)
    values = array("float32", ("h", None), LEARNED, may_be_infinite=True, read=lambda samples: samples._known()[1])
    sample = array("int64", (None,), LEARNED, low=0)
    before = array("int64", (None,), LEARNED, low=0)
    row, start, stop = (number(LEARNED, COUNT) for _ in range(3))

    def __init__(self, is_of_classes: bool = False) -> None:
        self.is_of_classes, self.columns, self.rows = is_of_classes, Columns(last=MOST_COLUMNS), 0
        self.numbers, self.values = NO_ROWS, np.empty((0, 1), np.float32)
        self.sample, self.before, self.row, self.start, self.stop = NO_ROWS, NO_ROWS, 0, 0, 0

    def matrix(self, X: Block, targets: np.ndarray) -> np.ndarray:
        """Targets and columns (n, 1 + c) of rows; MISSING for missing values."""
        values = self.columns.matrix(X, np.ones(len(targets), bool))[:, :MOST_COLUMNS]
        clipped = np.clip(np.column_stack([targets, values]), -LARGEST, LARGEST)
        return np.where(np.isnan(clipped), MISSING, clipped).astype(np.float32)

    def add(self, n: int, n_latest: int, matrix: Callable[[np.ndarray], np.ndarray]) -> None:
        """Add n rows.

        ``n_latest``: the number of latest rows that may belong to the next rise. ``matrix``: a function from ascending
        indices into the n rows to their :meth:`matrix`.
        """
        first, self.rows = self.rows, self.rows + n
        self.sample = _sampled(self.sample, first, self.rows)
        latest = np.arange(self.rows - min(n_latest, SAMPLE), self.rows)
        needed = np.unique(np.concatenate([self.sample, self.before, self._after(), latest]))
        values = matrix(needed[np.searchsorted(needed, first) :] - first)
        self._widen(values.shape[1])
        is_kept = np.isin(self.numbers, needed, assume_unique=True)
        self.numbers, self.values = needed, np.concatenate([self.values[is_kept], values])

    def _after(self) -> np.ndarray:
        """Row numbers after the rise that waits for comparison, up to the latest row."""
        return np.arange(self.start, min(self.stop, self.rows))

    def note_rise(self, length: int, row: int) -> None:
        """Note a rise of the latest ``length`` rows, which started at ``row``; 0 if it is not to be compared."""
        start = self.rows - length
        before, self.sample = self.sample[self.sample < start], NO_ROWS
        if row:
            self.row, self.before, self.start = row, before, max(start, self.rows - SAMPLE)
            self.stop = self.start + SAMPLE

    def end_comparison(self) -> None:
        """Reset the state after the comparison of a rise."""
        self.row, self.before, self.start, self.stop = 0, NO_ROWS, 0, 0

    def comparison(self, but: frozenset[int] = frozenset(), n_others: int = 0) -> Comparison:
        """The changes of columns, except keys ``but``, at a rise, from all rows but the latest ``n_others``.

        Columns without known values in these rows are left out.
        """
        start, stop = np.searchsorted(self.numbers, [self.start, min(self.stop, self.rows - n_others)])
        before, after = self.values[np.isin(self.numbers, self.before)], self.values[start:stop]
        keys, fills = [TARGET, *self.columns.keys[:MOST_COLUMNS]], self._fills()
        is_known = (before != fills).any(axis=0) | (after != fills).any(axis=0)
        kept = [c for c in range(1, len(fills)) if is_known[c] and keys[c] not in but]
        indices = [0, *sorted(kept, key=lambda c: keys[c])]  # sorted, as the order of arrival depends on batches
        is_category = [self.is_of_classes if c == 0 else keys[c] < 0 for c in indices]
        return compared(before[:, indices], after[:, indices], [keys[c] for c in indices], is_category)

    def _fills(self) -> np.ndarray:
        """The values of columns that a row does not have: MISSING, or 0 for words."""
        fills = np.array([np.nan, *self.columns.fills[:MOST_COLUMNS]], np.float32)[: self.values.shape[1]]
        return np.where(np.isnan(fills), np.float32(MISSING), fills)

    def _widen(self, width: int) -> None:
        """Add new columns; earlier rows get their fill values."""
        old_values = self.values
        if width > old_values.shape[1]:
            self.values = np.empty((len(old_values), width), np.float32)
            self.values[:] = self._fills()
            self.values[:, : old_values.shape[1]] = old_values

    def _known(self) -> tuple[Columns, np.ndarray]:
        """The columns with known values in the sampled rows, in the order of their keys, and the values.

        Other columns are added again when they reappear.
        """
        keys, fills = self.columns.keys, self._fills()
        is_known = (self.values != fills)[:, 1:].any(axis=0)
        indices = sorted(np.flatnonzero(is_known).tolist(), key=lambda c: keys[c])
        fill_values = [np.nan if fills[1 + c] == MISSING else 0.0 for c in indices]
        columns = Columns([keys[c] for c in indices], fill_values, last=MOST_COLUMNS)
        return columns, self.values[:, [0, *(1 + c for c in indices)]]

    def check(self) -> None:
        """Raise a ModelError unless the held rows are the needed ones, with the declared columns."""
        needed = np.concatenate([self.sample, self.before, self._after()])
        for condition, problem in (
            ((np.diff(self.numbers) > 0).all(), "rows that are held are not in their order"),
            (self.numbers.max(initial=-1) < self.rows, "a row is held that did not come yet"),
            (len(self.columns.keys) <= MOST_COLUMNS, "samples have more columns than are compared"),
            (self.values.shape[1] == 1 + len(self.columns.keys), "samples have columns that are not named"),
            (self.start <= self.stop <= self.start + SAMPLE, "rows after a rise are not in their order, or too many"),
            (np.isin(needed, self.numbers).all(), "a row of a sample is not held"),
        ):
            if not condition:
                raise ModelError(problem)


def _sampled(sample: np.ndarray, start: int, stop: int) -> np.ndarray:
    """The SAMPLE row numbers with the smallest keys, among a sample and rows ``start`` to ``stop``, ascending."""
    numbers = np.arange(start, stop)
    keys, sample_keys = (rows.astype(np.uint64) * GOLDEN for rows in (numbers, sample))
    if len(sample) == SAMPLE:
        numbers = numbers[keys < sample_keys.max()]
    numbers = np.concatenate([sample, numbers])
    if len(numbers) <= SAMPLE:
        return numbers
    keys = numbers.astype(np.uint64) * GOLDEN
    return np.sort(numbers[np.argpartition(keys, SAMPLE)[:SAMPLE]])
