"""What sources yield, which is chunks, and what encoders make of them, which is batches of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tunefree.core.errors import DataError
from tunefree.core.rows import Block, rows_at
from tunefree.stream.tally import Reason, Tally


class Position(NamedTuple):
    """A place in a source, from which reading can go on."""

    file: int = 0  # number of the file in the source's list
    offset: int = 0  # bytes of the decompressed text, or rows of a columnar file, that come before
    row: int = 0  # rows of this file that come before (a header is not a row)


class Lines(NamedTuple):
    """A chunk of text: whole lines."""

    data: np.ndarray  # (bytes,) uint8, read-only; only the last line of a file may lack its line end
    file: str  # name of the file, for messages
    row: int  # number of the first row, counted from 1
    position: Position  # where the next chunk starts


class Columns(NamedTuple):
    """A chunk of a table."""

    table: Any  # pyarrow.RecordBatch
    file: str  # name of the file, for messages
    row: int  # number of the first row, counted from 1
    position: Position  # where the next chunk starts
    held: Any = None  # Columns: rows before the position that are yet to come, or None
    optional: bool = False  # whether a column that is absent is missing in all rows, as a key of JSON


class Converted(NamedTuple):
    """Rows of a chunk that can be used: what columns make of their cells, and what is no feature."""

    chunk: Columns
    n_rows: int  # with those that cannot be used
    values: list[Any]
    target: Any
    weight: np.ndarray
    exposure: np.ndarray | None
    groups: np.ndarray | None


class Batch(NamedTuple):
    """Rows ready to be learned or predicted."""

    rows: Block
    target: Any  # pyarrow.Array (n,) of any type, or None; no nulls where rows must be labelled
    weight: np.ndarray  # (n,) float64: sample weights
    numbers: np.ndarray  # (n,) int64: number of each row in its file, counted from 1
    tags: list[str] | None  # Vowpal Wabbit's tags, or None
    file: str  # name of the file, for messages
    position: Position  # where the next batch starts
    columns: Any = None  # pyarrow.RecordBatch (n rows): columns of the table that are kept as they were read, or None
    groups: np.ndarray | None = None  # (n,) str: names of the groups of the rows
    held: Any = None  # Columns: rows before the position that are yet to come, or None
    exposure: np.ndarray | None = None  # (n,) float64 above 0: what rows were exposed to
    forgotten: Sequence[tuple[int, np.ndarray]] = ()  # rows before which features were forgotten, and which

    def at(self, places: np.ndarray) -> Batch:
        """Some of the rows, in their order."""
        of_rows = {"weight": self.weight, "numbers": self.numbers, "groups": self.groups, "exposure": self.exposure}
        picked = {name: array[places] for name, array in of_rows.items() if array is not None}
        taken = {"target": self.target, "columns": self.columns}
        picked |= {name: values.take(places) for name, values in taken.items() if values is not None}
        tags = None if self.tags is None else [self.tags[i] for i in places.tolist()]
        forgotten = [(int((places < row).sum()), features) for row, features in self.forgotten]
        return self._replace(rows=rows_at(self.rows, places), tags=tags, forgotten=forgotten, **picked)


def as_named(file: str, row: int) -> tuple[str, int]:
    """The place of a row that was not moved."""
    return file, row


Origin = Callable[[str, int], tuple[str, int]]  # from the file and number of a row to those that the user knows


@dataclass
class BadRows:
    """What happens to rows that cannot be used, and how many there were.

    Parameters
    ----------
    skip : bool, default=False
        Count such rows and leave them out; otherwise the first one raises a DataError.
    skip_unlabelled : bool or None, default=False
        Count rows without a label apart and leave them out; otherwise they are bad rows. None if that cannot be chosen.
    tally : Tally
        Those that were left out.
    origin : callable, optional
        From a file and the number of a row in it to those that the user knows, where rows were moved.
    classes : tuple of str
        Labels, as texts, that a row that can be used has one of; none if all labels can be used.
    target : str, optional
        The column of the labels.
    loss : str, optional
        Whose distribution the target of a row that can be used has.
    names_columns : bool, default=False
        Whether there are parameters that say what a column is, such as ``categorical``.
    comparison : Comparison, optional
        Of rows that are predicted with those that were learned; begun by their encoder.
    """

    has_options: ClassVar[bool] = True  # whether errors may name parameters that decide it otherwise

    skip: bool = False
    skip_unlabelled: bool | None = False
    tally: Tally = field(default_factory=Tally)
    origin: Origin = as_named
    classes: tuple[str, ...] = ()
    target: str | None = None
    loss: str | None = None
    names_columns: bool = False
    comparison: Any = None

    def compare(self) -> None:
        """All rows are known: note how those that were predicted differ from those that were learned."""
        if self.comparison is not None:
            self.comparison.note(self)

    @property
    def count(self) -> int:
        """How many rows were left out."""
        return self.tally.count

    @property
    def unlabelled(self) -> int:
        """How many rows without a label were left out, where these are counted apart."""
        return self.tally.unlabelled

    @property
    def first(self) -> list[str]:
        """The messages of the first five."""
        return self.tally.first

    def report(
        self, problem: str, file: str, row: int, column: str | None = None, remedy: str = "correct the row"
    ) -> None:
        """Raise a DataError, or count the row when bad rows are skipped."""
        remedy += ", or pass `on_bad_row='skip'`" if self.has_options else ""
        error = DataError(problem, file, row, column, remedy)
        if not self.skip:
            raise error
        if self.tally.is_new(error):
            error = DataError(problem, *self.origin(file, row), column, remedy)
        self.tally.add(error)

    def report_unlabelled(
        self, problem: str, file: str, row: int, column: str | None = None, remedy: str = "give it one"
    ) -> None:
        """A row has no label, where it must have one: count it, if such rows are skipped, else treat it as bad."""
        if self.skip_unlabelled:
            self.tally.unlabelled += 1
        else:
            can_skip = self.has_options and self.skip_unlabelled is not None
            self.report(problem, file, row, column, remedy + (", pass `unlabelled='skip'`" if can_skip else ""))

    def note(
        self, problem: str, file: str, row: int, column: str | None = None, rows: int = 1, remedy: str = ""
    ) -> None:
        """Count rows that are used although something about them is odd.

        Parameters
        ----------
        problem : str
            What is odd; the same for all rows that are counted together.
        file, row : str, int
            The first of the rows, and its number in the file from 1; 0 of a column as a whole.
        column : str, optional
        rows : int, default 1
            How many there are; 0 of a column as a whole.
        remedy : str, optional
            The parameter that decides it otherwise; left out where there is none.
        """
        oddity = Reason(problem, column or "", rows, *self.origin(file, row), remedy if self.has_options else "")
        self.tally.note(oddity)


class Refused(BadRows):
    """A row that cannot be used is an error, and no parameter changes that.

    Examples
    --------
    >>> Refused().report("the number is infinite", "the request", 2)
    Traceback (most recent call last):
    tunefree.core.errors.DataError: the request, row 2: the number is infinite; correct the row
    """

    has_options: ClassVar[bool] = False
