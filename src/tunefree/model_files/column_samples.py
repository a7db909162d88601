"""Samples of the rows of a stream, in bounded memory, that show which columns changed when the loss rises.

Rows are identified by their numbers. Two samples are compared for each rise of the loss. The rows before it are an even
sample, as in :mod:`tunefree.stream.profile`, of the rows between the previous rise and the start of this one. The rows
after it are those from its start up to the next rise, only the latest ones if they are too many. The stored rows are
the current sample, the latest rows, with which a rise may have started, and the samples of the latest rise until it is
compared. Nothing depends on how the stream is cut into chunks.
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

SAMPLE = 512  # rows before, and rows after
NO_ROWS = np.empty(0, np.int64)
MOST_COLUMNS = 256  # columns beyond the first ones are left out
LARGEST = 3e38  # the largest finite number, approximately, in single precision


class ColumnSamples(Part):
    """Samples of the rows of a stream; ``is_of_classes``: whether targets are class indices.

    ``numbers`` (h,) and ``values`` (h, 1 + c) are the row numbers and values of the stored rows, among ``rows`` so far.
    ``sample`` has the rows since the last rise. If a rise is not compared yet, ``row`` is its first row of the stream
    from 1, ``before`` has row numbers before it, and the rows after it are ``start`` up to ``stop``, which may not have
    been read yet.

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
    columns = child(Columns, LEARNED, read=lambda samples: samples._stored()[0])
    numbers = array("int64", ("h",), LEARNED, low=0)
    values = array("float32", ("h", None), LEARNED, may_be_infinite=True, read=lambda samples: samples._stored()[1])
    sample = array("int64", (None,), LEARNED, low=0)
    before = array("int64", (None,), LEARNED, low=0)
    row, start, stop = (number(LEARNED, COUNT) for _ in range(3))

    def __init__(self, is_of_classes: bool = False) -> None:
        self.is_of_classes, self.columns, self.rows = is_of_classes, Columns(last=MOST_COLUMNS), 0
        self.numbers, self.values = NO_ROWS, np.empty((0, 1), np.float32)
        self.sample, self.before, self.row, self.start, self.stop = NO_ROWS, NO_ROWS, 0, 0, 0

    def matrix(self, X: Block, targets: np.ndarray) -> np.ndarray:
        """Targets and columns (n, 1 + c) of rows; MISSING where a value is unknown."""
        values = self.columns.matrix(X, np.ones(len(targets), bool))[:, :MOST_COLUMNS]
        clipped = np.clip(np.column_stack([targets, values]), -LARGEST, LARGEST)
        return np.where(np.isnan(clipped), MISSING, clipped).astype(np.float32)

    def add(self, n: int, n_latest: int, matrix: Callable[[np.ndarray], np.ndarray]) -> None:
        """Add n rows.

        ``n_latest``: the number of latest rows where the next rise may have started.
        ``matrix``: a function from ascending indices of the n rows to the :meth:`matrix` of these rows.
        """
        first, self.rows = self.rows, self.rows + n
        self.sample = _drawn(self.sample, first, self.rows)
        latest = np.arange(self.rows - min(n_latest, SAMPLE), self.rows)
        needed = np.unique(np.concatenate([self.sample, self.before, self._rows_after(), latest]))
        values = matrix(needed[np.searchsorted(needed, first) :] - first)
        self._widen(values.shape[1])
        kept = np.isin(self.numbers, needed, assume_unique=True)
        self.numbers, self.values = needed, np.concatenate([self.values[kept], values])

    def _rows_after(self) -> np.ndarray:
        """Numbers of the rows so far after the rise that is not compared yet."""
        return np.arange(self.start, min(self.stop, self.rows))

    def note_rise(self, length: int, row: int) -> None:
        """Note a rise in the latest ``length`` rows; ``row`` is its first row in the stream, 0 if not compared."""
        start = self.rows - length
        earlier, self.sample = self.sample[self.sample < start], NO_ROWS
        if row:
            self.row, self.before, self.start = row, earlier, max(start, self.rows - SAMPLE)
            self.stop = self.start + SAMPLE

    def end_comparison(self) -> None:
        """Forget the rise, which has been compared."""
        self.row, self.before, self.start, self.stop = 0, NO_ROWS, 0, 0

    def comparison(self, but: frozenset[int] = frozenset(), n_others: int = 0) -> Comparison:
        """The changes of columns at the rise, without the latest ``n_others`` rows and the column keys ``but``.

        Columns without a known value in these rows are left out.
        """
        start, stop = np.searchsorted(self.numbers, [self.start, min(self.stop, self.rows - n_others)])
        before, after = self.values[np.isin(self.numbers, self.before)], self.values[start:stop]
        keys, fills = [TARGET, *self.columns.keys[:MOST_COLUMNS]], self._fills()
        is_known = (before != fills).any(axis=0) | (after != fills).any(axis=0)
        kept = [c for c in range(1, len(fills)) if is_known[c] and keys[c] not in but]
        columns = [0, *sorted(kept, key=lambda c: keys[c])]  # the order of ``columns`` depends on batches
        is_category = [self.is_of_classes if c == 0 else keys[c] < 0 for c in columns]
        return compared(before[:, columns], after[:, columns], [keys[c] for c in columns], is_category)

    def _fills(self) -> np.ndarray:
        """Values of absent columns: MISSING, or 0 for words."""
        fills = np.array([np.nan, *self.columns.fills[:MOST_COLUMNS]], np.float32)[: self.values.shape[1]]
        return np.where(np.isnan(fills), np.float32(MISSING), fills)

    def _widen(self, width: int) -> None:
        """Append new columns; earlier rows get the fill value of the column."""
        earlier = self.values
        if width > earlier.shape[1]:
            self.values = np.empty((len(earlier), width), np.float32)
            self.values[:] = self._fills()
            self.values[:, : earlier.shape[1]] = earlier

    def _stored(self) -> tuple[Columns, np.ndarray]:
        """The columns with values in the sampled rows, sorted by key, and these values.

        The original order depends on batches. Columns without values are added again when they occur.
        """
        keys, fills = self.columns.keys, self._fills()
        is_known = (self.values != fills)[:, 1:].any(axis=0)
        indices = sorted(np.flatnonzero(is_known).tolist(), key=lambda c: keys[c])
        fill_values = [np.nan if fills[1 + c] == MISSING else 0.0 for c in indices]
        columns = Columns([keys[c] for c in indices], fill_values, last=MOST_COLUMNS)
        return columns, self.values[:, [0, *(1 + c for c in indices)]]

    def check(self) -> None:
        """Raise a ModelError unless the stored rows include the needed ones, with the declared columns."""
        needed = np.concatenate([self.sample, self.before, self._rows_after()])
        for holds, problem in (
            ((np.diff(self.numbers) > 0).all(), "rows that are held are not in their order"),
            (self.numbers.max(initial=-1) < self.rows, "a row is held that did not come yet"),
            (len(self.columns.keys) <= MOST_COLUMNS, "samples have more columns than are compared"),
            (self.values.shape[1] == 1 + len(self.columns.keys), "samples have columns that are not named"),
            (self.start <= self.stop <= self.start + SAMPLE, "rows after a rise are not in their order, or too many"),
            (np.isin(needed, self.numbers).all(), "a row of a sample is not held"),
        ):
            if not holds:
                raise ModelError(problem)


def _drawn(sample: np.ndarray, start: int, stop: int) -> np.ndarray:
    """The SAMPLE row numbers with the smallest keys, of a sample and of the rows from start to stop, ascending."""
    numbers = np.arange(start, stop)
    keys, sample_keys = (rows.astype(np.uint64) * GOLDEN for rows in (numbers, sample))
    if len(sample) == SAMPLE:
        numbers = numbers[keys < sample_keys.max()]
    numbers = np.concatenate([sample, numbers])
    if len(numbers) <= SAMPLE:
        return numbers
    keys = numbers.astype(np.uint64) * GOLDEN
    return np.sort(numbers[np.argpartition(keys, SAMPLE)[:SAMPLE]])
