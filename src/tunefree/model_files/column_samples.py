"""Samples of the rows of a stream, in bounded memory, that show which columns changed where the loss rises.

A row is known by its number. Of each rise, before is a sample of the rows since the rise before, spread evenly as that
of :mod:`tunefree.stream.profile` is, without rows after the beginning; after are the rows from the beginning on, the
latest ones where there are too many. Numbers of rows are chosen first, and then values are taken of the rows that are
held, all at once. Rows are held for the sample that goes on, for a rise that may have begun, and for rises that will
be compared. Nothing depends on where a stream is cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import FIXED, LEARNED, Part, array, child, children, number
from tunefree.core.rows import Block
from tunefree.core.schema import COUNT, Flag
from tunefree.generations.columns import Columns
from tunefree.generations.reservoir import GOLDEN
from tunefree.theory.column_changes import MISSING, TARGET, Comparison, compared
from tunefree.theory.rises import LATEST, Rise

SAMPLE = 512  # rows before, and rows after
NO_ROWS = np.empty(0, np.int64)
MOST_COLUMNS = 256  # the first ones that came
LARGEST = 3e38  # number of single precision


class Compared(Part):
    """The rows by which a rise that began at row ``row`` of the stream, from 1, will be compared.

    ``before`` are numbers of rows; ``start`` is that of the first row after, and ``stop`` one more than that of the
    last, which may be still to come.
    """

    row, start, stop = (number(LEARNED, COUNT) for _ in range(3))
    before = array("int64", (None,), LEARNED, low=0)

    def __init__(self, row: int = 0, before: np.ndarray = NO_ROWS, start: int = 0, stop: int = 0) -> None:
        self.row, self.before, self.start, self.stop = row, before, start, stop

    def check(self) -> None:
        """Raise a ModelError unless the rows after are in their order, and few."""
        if not self.start <= self.stop <= self.start + SAMPLE:
            raise ModelError("rows after a rise are not in their order, or too many")


class ColumnSamples(Part):
    """Samples of the rows of a stream; ``is_of_classes``: whether targets are numbers of classes.

    ``numbers`` (h,) and ``values`` (h, 1 + c) are the rows that are held, in their order, of ``rows`` so far;
    ``sample`` has numbers of rows since the last rise, and ``waiting`` the rises that are not compared yet.

    >>> from tunefree.core.rows import dense
    >>> rng, samples = np.random.default_rng(0), ColumnSamples()
    >>> X = rng.normal(size=(2000, 2))
    >>> X[1500:, 1] += 2.0
    >>> rise = Rise(1501, "a.csv", 1501, None, 100, 2.0, 1500, 1.0)
    >>> samples.add(2000, [(1600, 100, rise)], 0, {1501}, lambda rows: samples.matrix(dense(X[rows]), X[rows, 0]))
    >>> [(change.key, round(change.distance, 1)) for change in samples.comparison(samples.waiting[0]).changes]
    [(2, 0.7)]
    """

    is_of_classes = number(FIXED, Flag())
    rows = number(LEARNED, COUNT)
    columns = child(Columns, LEARNED, read=lambda samples: samples._known()[0])
    numbers = array("int64", ("h",), LEARNED, low=0)
    values = array("float32", ("h", None), LEARNED, may_be_infinite=True, read=lambda samples: samples._known()[1])
    sample = array("int64", (None,), LEARNED, low=0)
    waiting = children(Compared, LEARNED)

    def __init__(self, is_of_classes: bool = False) -> None:
        self.is_of_classes, self.columns, self.rows = is_of_classes, Columns(last=MOST_COLUMNS), 0
        self.numbers, self.values = NO_ROWS, np.empty((0, 1), np.float32)
        self.sample, self.waiting = NO_ROWS, []

    def matrix(self, X: Block, targets: np.ndarray) -> np.ndarray:
        """Targets and columns (n, 1 + c) of rows; MISSING where nothing is known."""
        values = self.columns.matrix(X, np.ones(len(targets), bool))[:, :MOST_COLUMNS]
        clipped = np.clip(np.column_stack([targets, values]), -LARGEST, LARGEST)
        return np.where(np.isnan(clipped), MISSING, clipped).astype(np.float32)

    def add(
        self,
        n: int,
        rises: Sequence[tuple[int, int, Rise | None]],
        rows_since: int,
        chosen: set[int],
        matrix: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        """Add n rows.

        ``rises``: as :class:`tunefree.theory.rises.Outcome` has them.
        ``rows_since``: how many of the latest rows the next rise may have begun with.
        ``chosen``: the rows of the stream at which the rises began, of all so far, that are to be compared.
        ``matrix``: a function from places among the n rows, ascending, to the :meth:`matrix` of the rows there.
        """
        first, start, sample = self.rows, self.rows, self.sample
        for place, length, rise in rises:
            sure = first + place
            began = sure - length
            for other in self.waiting:
                if other.stop > sure:  # rows of the next rise are not those of the one before
                    other.stop = max(min(other.stop, began), other.start)
            if rise is not None and rise.row in chosen:
                sample = _drawn(sample, start, sure)
                after = max(began, sure - SAMPLE)
                self.waiting.append(Compared(rise.row, sample[sample < began], after, after + SAMPLE))
            start, sample = sure, sample[:0]
        self.rows, self.sample = first + n, _drawn(sample, start, first + n)
        self.waiting = [one for one in self.waiting if one.row in chosen]
        needed = self._needed(rows_since)
        fresh = needed[np.searchsorted(needed, first) :]
        values = matrix(fresh - first)
        self._widen(values.shape[1])
        kept = np.isin(self.numbers, needed, assume_unique=True)
        self.numbers, self.values = needed, np.concatenate([self.values[kept], values])

    def _needed(self, rows_since: int) -> np.ndarray:
        """Numbers of the rows that have to be held, ascending."""
        ranges = [(self.rows - min(rows_since, SAMPLE), self.rows), *((one.start, one.stop) for one in self.waiting)]
        numbers = [np.arange(start, min(stop, self.rows)) for start, stop in ranges]
        return np.unique(np.concatenate([self.sample, *(one.before for one in self.waiting), *numbers]))

    def settle(self, compared_rows: set[int], rows_since: int) -> None:
        """Rises were compared, which began at these rows of the stream; ``rows_since`` as in :meth:`add`."""
        self.waiting = [one for one in self.waiting if one.row not in compared_rows]
        needed = self._needed(rows_since)
        self.values = self.values[np.isin(self.numbers, needed, assume_unique=True)]
        self.numbers = needed

    def comparison(self, one: Compared, but: frozenset[int] = frozenset()) -> Comparison:
        """The changes of columns at a rise, by the rows so far, except for some keys.

        Columns of which nothing is known in these rows are left out.
        """
        start, stop = np.searchsorted(self.numbers, [one.start, one.stop])
        before, after = self.values[np.isin(self.numbers, one.before)], self.values[start:stop]
        keys, fills = [TARGET, *self.columns.keys[:MOST_COLUMNS]], self._fills()
        is_known = (before != fills).any(axis=0) | (after != fills).any(axis=0)
        kept = [c for c in range(1, len(fills)) if is_known[c] and keys[c] not in but]
        places = [0, *sorted(kept, key=lambda c: keys[c])]  # the order in which columns came depends on batches
        is_category = [self.is_of_classes if c == 0 else keys[c] < 0 for c in places]
        return compared(before[:, places], after[:, places], [keys[c] for c in places], is_category)

    def _fills(self) -> np.ndarray:
        """Values of the sampled rows in columns that they do not have: MISSING, or 0 for words."""
        fills = np.array([np.nan, *self.columns.fills[:MOST_COLUMNS]], np.float32)[: self.values.shape[1]]
        return np.where(np.isnan(fills), np.float32(MISSING), fills)

    def _widen(self, width: int) -> None:
        """Add columns that came later; earlier rows have their fill."""
        narrow = self.values
        if width > narrow.shape[1]:
            self.values = np.empty((len(narrow), width), np.float32)
            self.values[:] = self._fills()
            self.values[:, : narrow.shape[1]] = narrow

    def _known(self) -> tuple[Columns, np.ndarray]:
        """The columns with values in the sampled rows, in the order of their keys, and these values.

        The order in which columns came depends on batches. The others come again when they are named.
        """
        keys, fills = self.columns.keys, self._fills()
        is_known = (self.values != fills)[:, 1:].any(axis=0)
        places = sorted(np.flatnonzero(is_known).tolist(), key=lambda c: keys[c])
        kept = [np.nan if fills[1 + c] == MISSING else 0.0 for c in places]
        columns = Columns([keys[c] for c in places], kept, last=MOST_COLUMNS)
        return columns, self.values[:, [0, *(1 + c for c in places)]]

    def check(self) -> None:
        """Raise a ModelError unless rows that are held are those that are needed, with the columns that are named."""
        sample_rows = np.concatenate([self.sample, *(one.before for one in self.waiting)])
        after = np.concatenate([NO_ROWS, *(np.arange(one.start, min(one.stop, self.rows)) for one in self.waiting)])
        for holds, problem in (
            ((np.diff(self.numbers) > 0).all(), "rows that are held are not in their order"),
            (self.numbers.max(initial=-1) < self.rows, "a row is held that did not come yet"),
            (len(self.columns.keys) <= MOST_COLUMNS, "samples have more columns than are compared"),
            (self.values.shape[1] == 1 + len(self.columns.keys), "samples have columns that are not named"),
            (len(self.waiting) <= LATEST + 1, "more rises wait than are compared"),
            (np.isin(sample_rows, self.numbers).all(), "a row of a sample is not held"),
            (np.isin(after, self.numbers).all(), "a row after a rise is not held"),
        ):
            if not holds:
                raise ModelError(problem)


def _drawn(sample: np.ndarray, start: int, stop: int) -> np.ndarray:
    """The SAMPLE row numbers with the least keys, among a sample and the rows from start up to stop, ascending."""
    numbers = np.arange(start, stop)
    keys, sample_keys = (rows.astype(np.uint64) * GOLDEN for rows in (numbers, sample))
    if len(sample) == SAMPLE:
        numbers = numbers[keys < sample_keys.max()]
    numbers = np.concatenate([sample, numbers])
    if len(numbers) <= SAMPLE:
        return numbers
    keys = numbers.astype(np.uint64) * GOLDEN
    return np.sort(numbers[np.argpartition(keys, SAMPLE)[:SAMPLE]])
