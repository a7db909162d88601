"""Chunks of columns, which sources yield; batches of rows, which encoders make of them; and bad rows.

Of rows that could not be used, and rows that were used but are odd, a tally keeps how many there are, why, and where
each reason was met first, in bounded memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from tunefree.core import schema
from tunefree.core.errors import DataError, ModelError
from tunefree.core.part import restored as restored_block
from tunefree.core.rows import Block, part, rows_at, saved, together

MOST_MESSAGES = 5  # that are kept whole
MOST_REASONS = 20  # that are distinguished; rows of further ones are counted together
MOST_LETTERS = 200  # of a reason, and of a name in it
OTHER = "other reasons"
# What differs from row to row in a message: texts in quotation marks, also where they are cut; lists, objects, numbers.
_VALUES = re.compile(
    r"""b?'(?:[^'\\]|\\.)*' | b?"(?:[^"\\]|\\.)*" | ['"\[{].*?\.\.\. | \[.*?\] | \{.*?\} | [-+]?\b\d[\w.+-]*""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Reason:
    """A reason why rows could not be used, or an oddity of rows that were used."""

    problem: str  # without what differs from row to row
    column: str  # empty where no column is to blame
    rows: int  # how many; 0 of what is odd about a file or a column as a whole
    file: str  # where the first of them is
    row: int  # its number in the file, counted from 1; 0 of lines that are no rows
    remedy: str = ""  # what decides it otherwise, such as an option

    @property
    def place(self) -> str:
        """The file, row and column of the first row, as text."""
        column = f", column {self.column!r}" if self.column else ""
        return f"{self.file}, row {self.row}{column}"

    @property
    def counted(self) -> str:
        """The problem, with how many rows there are and where the first is."""
        unit = ("row" if self.row else "line") + ("" if self.rows == 1 else "s")
        first = f", the first: {self.file}, row {self.row}" if self.row else f" of {self.file}"
        return self.problem + (f" ({self.rows:,} {unit}{first})" if self.rows else "")

    def __str__(self) -> str:
        where = f"column {self.column!r}: " if self.column else ""
        return where + self.counted + (f"; {self.remedy}" if self.remedy else "")


def reason_of(error: DataError) -> Reason:
    """The common reason of errors about different values."""
    problem, column = _VALUES.sub("…", error.problem)[:MOST_LETTERS], (error.column or "")[:MOST_LETTERS]
    return Reason(problem, column, 1, str(error.file), int(error.row or 0))


Reasons = Annotated[list[Reason], schema.Sequence(schema.Record(Reason), MOST_REASONS + 1)]


@dataclass
class Tally:
    """Rows that could not be used, and rows that were used but are odd, in the order in which they were met.

    The messages of the ``first`` five are kept, too; files do not have them.
    """

    count: int = 0
    unlabelled: int = 0  # rows that lacked a label and were left out for it; these are counted here only
    reasons: Reasons = field(default_factory=list)  # why rows could not be used, the first met first
    oddities: Reasons = field(default_factory=list)  # of rows that were used, in the order of their first rows

    def __post_init__(self) -> None:
        self.first: list[str] = []

    def note(self, oddity: Reason) -> None:
        """Count rows that are used although something about them is odd."""
        _merge(self.oddities, oddity)

    def is_new(self, error: DataError) -> bool:
        """Whether a row with this problem is reported with its row number."""
        reason, known = reason_of(error), ((one.problem, one.column) for one in self.reasons)
        return len(self.first) < MOST_MESSAGES or (reason.problem, reason.column) not in known

    def add(self, error: DataError) -> None:
        """Count a row."""
        self.count += 1
        if len(self.first) < MOST_MESSAGES:
            self.first.append(str(error))
        _merge(self.reasons, reason_of(error))

    def add_all(self, other: Tally) -> None:
        """Count the rows of another tally, which come after these."""
        self.count, self.unlabelled = self.count + other.count, self.unlabelled + other.unlabelled
        self.first += other.first[: MOST_MESSAGES - len(self.first)]
        for reason in other.reasons:
            _merge(self.reasons, reason)
        for oddity in other.oddities:
            _merge(self.oddities, oddity)

    def with_columns(self, earlier: Tally) -> Tally:
        """This tally with the oddities of whole columns in an earlier pass over the same rows."""
        known = {(oddity.problem, oddity.column) for oddity in self.oddities}
        for oddity in earlier.oddities:
            if not oddity.rows and (oddity.problem, oddity.column) not in known:
                self.note(oddity)
        return self

    def copy(self) -> Tally:
        """A tally that goes on by itself."""
        other = replace(self, reasons=[*self.reasons], oddities=[*self.oddities])
        other.first = [*self.first]
        return other


def _merge(known: list[Reason], reason: Reason) -> None:
    """Add the rows of a reason to earlier rows of the same reason."""
    reason = replace(reason, column=reason.column[:MOST_LETTERS])
    places = {(one.problem, one.column): place for place, one in enumerate(known)}
    if (reason.problem, reason.column) not in places and len(known) >= MOST_REASONS:
        reason = replace(reason, problem=OTHER, column="")
    if (place := places.get((reason.problem, reason.column))) is None:
        known.append(reason)
    else:
        known[place] = replace(known[place], rows=known[place].rows + reason.rows)


UNLABELLED = "the target is missing"
# What rows of groups that wait have beside what is learned of them, and a target.
WAITING = {"weight": "float64", "numbers": "int64", "groups": "string", "exposure": "float64"}


class Position(NamedTuple):
    """A place in a source, from which reading can go on."""

    file: int = 0  # number of the file in the source's list
    offset: int = 0  # bytes of the decompressed text, or rows of a columnar file, that come before
    row: int = 0  # rows of this file that come before (a header is not a row)


class Chunk(NamedTuple):
    """Rows of a file that follow each other: whole lines of text, or a table."""

    # (bytes,) uint8, read-only, of which only the last line of a file may lack its line end; or pyarrow.RecordBatch
    data: Any
    file: str  # name of the file, for messages
    row: int  # number of the first row, counted from 1
    position: Position  # where the next chunk starts
    optional: bool = False  # whether a column that is absent is missing in all rows, as a key of JSON


class Converted(NamedTuple):
    """The usable rows of a chunk: converted values of the columns, and target, weight, exposure and groups."""

    chunk: Chunk
    n_rows: int  # with those that cannot be used
    values: list[Any]
    target: Any
    weight: np.ndarray
    exposure: np.ndarray | None
    groups: np.ndarray | None


class Batch(NamedTuple):
    """Rows ready to be learned or predicted: of a source, which have all fields, or in memory."""

    rows: Block
    target: Any  # (n,): a pyarrow.Array as it was read, without nulls where rows must be labelled; Labels or numbers
    weight: np.ndarray  # (n,) float64: sample weights, or those with which rows are learned
    numbers: Any = None  # (n,) int64: number of each row in its file, counted from 1
    tags: list[str] | None = None  # Vowpal Wabbit's tags, or None
    file: str = ""  # name of the file, for messages
    position: Position = Position()  # where the next batch starts
    columns: Any = None  # pyarrow.RecordBatch (n rows): columns of the table that are kept as they were read, or None
    groups: Any = None  # (n,) groups of the rows: names (str) as they were read, else digests (uint64); or None
    exposure: np.ndarray | None = None  # (n,) float64 above 0: what rows were exposed to
    forgotten: Sequence[tuple[int, np.ndarray]] = ()  # rows before which features were forgotten, and which
    counts: np.ndarray | None = None  # (n,) weights with which the losses of rows count, where these are others
    mass: np.ndarray | None = None  # (n,) total weights of rows and their copies, where they are known
    n_features: int = 0  # known to the encoder after these rows
    tally: Tally | None = None  # rows that could not be used so far, where that is followed
    checkpoint: Any = None  # the state of the encoder after these rows, where a checkpoint is due after them
    is_last: bool = True  # of the parts of a batch, after which what was learned can be saved

    def part(self, start: int, stop: int) -> Batch:
        """The rows from ``start`` up to ``stop``."""
        names = (*_OF_ROWS, "target", "tags", "columns")
        cut = {name: value[start:stop] for name in names if (value := getattr(self, name)) is not None}
        forgotten = [(row - start, features) for row, features in self.forgotten if start <= row < stop]
        return self._replace(rows=part(self.rows, start, stop), forgotten=forgotten, **cut)

    def at(self, places: np.ndarray) -> Batch:
        """Some of the rows, in their order."""
        picked = {name: array[places] for name in _OF_ROWS if (array := getattr(self, name)) is not None}
        taken = {"target": self.target, "columns": self.columns}
        picked |= {name: values.take(places) for name, values in taken.items() if values is not None}
        tags = None if self.tags is None else [self.tags[i] for i in places.tolist()]
        forgotten = [(int((places < row).sum()), features) for row, features in self.forgotten]
        return self._replace(rows=rows_at(self.rows, places), tags=tags, forgotten=forgotten, **picked)


_OF_ROWS = ("weight", "numbers", "groups", "exposure", "counts", "mass")  # arrays of a batch


def followed(batches: list[Batch]) -> Batch:
    """Rows of a file, one batch after the other, as one batch."""
    last, starts = batches[-1], np.cumsum([0, *(len(batch.weight) for batch in batches)]).tolist()
    names = [name for name in _OF_ROWS if getattr(last, name) is not None]
    joined: dict[str, Any] = {name: np.concatenate([getattr(batch, name) for batch in batches]) for name in names}
    joined |= {name: _below([getattr(batch, name) for batch in batches]) for name in ("target", "columns")}
    forgotten = [(n + row, of) for n, batch in zip(starts, batches, strict=False) for row, of in batch.forgotten]
    return last._replace(rows=together([batch.rows for batch in batches]), forgotten=forgotten, **joined)


def _below(parts: list[Any]) -> Any:
    """Arrow arrays, or record batches, as one, of a type that has the values of all; None of several None."""
    if parts[0] is None:
        return None
    import pyarrow as pa  # which predictions do without (tunefree.prediction)

    is_array = isinstance(parts[0], pa.Array)
    tables = [pa.table({"": part}) if is_array else pa.Table.from_batches([part]) for part in parts]
    table = pa.concat_tables([table.replace_schema_metadata(None) for table in tables], promote_options="permissive")
    (both,) = table.unify_dictionaries().combine_chunks().to_batches()
    return both.column(0) if is_array else both


def save_state(batch: Batch) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Rows of groups that wait to be learned, as arrays and a header."""
    import pyarrow as pa

    columns = {name: getattr(batch, name) for name in ("target", *WAITING) if getattr(batch, name) is not None}
    sink, table = pa.BufferOutputStream(), pa.record_batch(columns)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_batch(table)
    forgotten = [np.zeros(0, np.int64), *(features for _, features in batch.forgotten)]  # before the first row
    arrays = {"rows": np.frombuffer(sink.getvalue(), np.uint8), "forgotten": np.concatenate(forgotten)}
    header = {"file": batch.file, "position": list(batch.position)}
    return arrays | {f"X.{name}": array for name, array in saved(batch.rows).items()}, header


def restored(arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Batch:
    """The rows that :func:`save_state` wrote down."""
    import pyarrow as pa

    with pa.ipc.open_stream(pa.py_buffer(arrays["rows"].tobytes())) as reader:
        table = reader.read_next_batch()
    table.validate(full=True)
    X = restored_block(Block, "X", arrays, {})
    names = table.schema.names
    named = {name: table.column(name).cast(kind).to_numpy(False) for name, kind in WAITING.items() if name in names}
    if not 0 < table.num_rows == len(X.numbers) or any(table.column(name).null_count for name in names):
        raise ModelError("rows that wait for others of their group lack parts")
    target, forgotten = table.column("target"), [(0, arrays["forgotten"])] if len(arrays["forgotten"]) else []
    position = Position(*header["position"])
    return Batch(X, target, file=header["file"], position=position, forgotten=forgotten, **named)


def as_named(file: str, row: int) -> tuple[str, int]:
    """The place of a row that was not moved."""
    return file, row


Origin = Callable[[str, int], tuple[str, int]]  # from the file and number of a row to those that the user knows


@dataclass
class BadRows:
    """The handling of rows that cannot be used, and their tally."""

    has_options: ClassVar[bool] = True  # whether errors may name parameters that decide it otherwise

    skip: bool = False  # count such rows and leave them out; otherwise the first one raises a DataError
    # Count rows without a label apart and leave them out; otherwise they are bad rows. None if it cannot be chosen.
    skip_unlabelled: bool | None = False
    tally: Tally = field(default_factory=Tally)  # those that were left out
    origin: Origin = as_named  # to the file and number that the user knows of a row, where rows were moved
    classes: tuple[str, ...] = ()  # labels of rows that can be used, as texts; none if all can be used
    target: str | None = None  # the column of the labels
    loss: str | None = None  # whose distribution the target of a row that can be used has
    names_columns: bool = False  # whether there are parameters that say what a column is, such as ``categorical``
    comparison: Any = None  # of rows that are predicted with those that were learned; begun by their encoder

    def compare(self) -> None:
        """Note, after the last row, how predicted rows differ from learned rows."""
        if self.comparison is not None:
            self.comparison.note(self)

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
            if problem != UNLABELLED:
                self.note(problem, file, row, column)
        else:
            can_skip = self.has_options and self.skip_unlabelled is not None
            self.report(problem, file, row, column, remedy + (", pass `unlabelled='skip'`" if can_skip else ""))

    def note(
        self, problem: str, file: str, row: int, column: str | None = None, rows: int = 1, remedy: str = ""
    ) -> None:
        """Count odd rows that are used: the problem, the first of them, how many, and the parameter that decides."""
        oddity = Reason(problem, column or "", rows, *self.origin(file, row), remedy if self.has_options else "")
        self.tally.note(oddity)


class Refused(BadRows):
    """A row that cannot be used is an error, and no parameter changes that."""

    has_options: ClassVar[bool] = False


_ROWS = b"tunefree.row_numbers"
SEMICOLONS = b"tunefree.semicolons"  # of a sample whose fields they divide


def row_numbers(chunk: Any) -> np.ndarray:
    """Numbers of the rows of a chunk in its file; a chunk whose bad rows were left out carries them."""
    carried = (chunk.data.schema.metadata or {}).get(_ROWS)
    if carried is not None:
        return np.frombuffer(carried, np.int64)
    return np.arange(chunk.row, chunk.row + chunk.data.num_rows, dtype=np.int64)


def with_row_numbers(table: Any, numbers: np.ndarray) -> Any:
    """The record batch, carrying the numbers of its rows."""
    return table.replace_schema_metadata({_ROWS: numbers.astype(np.int64).tobytes()})


def unique_names(chunk: Chunk) -> list[str]:
    """Names of the columns of a chunk; a DataError if two are the same."""
    names = chunk.data.schema.names
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise DataError("two columns have this name", chunk.file, column=twice, remedy="rename one of them")
    return names
