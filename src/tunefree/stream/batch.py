"""Chunks, which sources yield; batches of encoded rows, which encoders make from chunks; and bad rows.

A tally counts rows that could not be used, and rows that were used but are odd. For each reason it keeps the number of
rows and the place of the first, in bounded memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core import schema
from tunefree.core.errors import DataError, ModelError
from tunefree.core.part import restored as restored_block
from tunefree.core.rows import Block, part, rows_at, saved, together

MOST_MESSAGES = 5  # complete messages that a tally keeps
MOST_REASONS = 20  # distinct reasons; rows with further reasons are counted together
MOST_LETTERS = 200  # maximum length of a reason, and of a column name in it
OTHER = "other reasons"
# The parts of a message that differ between rows: quoted texts, also truncated ones; lists, objects and numbers.
# Parameters in backticks are kept (group 1).
_VALUES = re.compile(
    r"""(`[^`]*`) |
    b?'(?:[^'\\]|\\.)*' | b?"(?:[^"\\]|\\.)*" | ['"\[{].*?\.\.\. | \[.*?\] | \{.*?\} | [-+]?\b\d[\w.+-]*""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Reason:
    """A reason why rows could not be used, or an oddity of rows that were used."""

    problem: str  # without the values of the row
    column: str  # empty if it is not about a column
    rows: int  # number of rows; 0 for an oddity of a whole file or column
    file: str  # file of the first row
    row: int  # number of the first row in the file, counted from 1; 0 for lines that are not rows
    remedy: str = ""  # how to change the outcome, such as an option

    @property
    def place(self) -> str:
        """The file, row number and column of the first row, as text."""
        column = f", column {self.column!r}" if self.column else ""
        return f"{self.file}, row {self.row}{column}"

    @property
    def counted(self) -> str:
        """The problem, with the number of rows and the place of the first."""
        unit = ("row" if self.row else "line") + ("" if self.rows == 1 else "s")
        first = f", the first: {self.file}, row {self.row}" if self.row else f" of {self.file}"
        return self.problem + (f" ({self.rows:,} {unit}{first})" if self.rows else "")

    def __str__(self) -> str:
        where = f"column {self.column!r}: " if self.column else ""
        return where + self.counted + (f"; {self.remedy}" if self.remedy else "")


def reason_of(error: DataError) -> Reason:
    """Return the reason of an error, which errors about other values have in common."""
    problem = _VALUES.sub(lambda match: match[1] or "…", error.problem)
    return Reason(problem[:MOST_LETTERS], (error.column or "")[:MOST_LETTERS], 1, str(error.file), int(error.row or 0))


Reasons = Annotated[list[Reason], schema.Sequence(schema.Record(Reason), MOST_REASONS + 1)]


@dataclass
class Tally:
    """Counts of rows that could not be used, and of rows that were used but are odd, by reason.

    The messages of the ``first`` five unusable rows are kept, too, but not saved in files.
    """

    count: int = 0  # rows that could not be used
    unlabelled: int = 0  # rows that were left out because they have no label; not part of ``count``
    reasons: Reasons = field(default_factory=list)  # of rows that could not be used, ordered by their first rows
    oddities: Reasons = field(default_factory=list)  # of rows that were used, ordered by their first rows

    def __post_init__(self) -> None:
        self.first: list[str] = []

    def note(self, oddity: Reason) -> None:
        """Count odd rows that are used."""
        _merge(self.oddities, oddity)

    def add(self, error: DataError) -> None:
        """Count a row that could not be used."""
        self.count += 1
        if len(self.first) < MOST_MESSAGES:
            self.first.append(str(error))
        _merge(self.reasons, reason_of(error))

    def add_all(self, other: Tally) -> None:
        """Add the counts of another tally, whose rows follow the rows of this one."""
        self.count, self.unlabelled = self.count + other.count, self.unlabelled + other.unlabelled
        self.first += other.first[: MOST_MESSAGES - len(self.first)]
        for reason in other.reasons:
            _merge(self.reasons, reason)
        for oddity in other.oddities:
            _merge(self.oddities, oddity)

    def with_columns(self, earlier: Tally) -> Tally:
        """Add the oddities of whole columns that an earlier pass over the same rows noted; return this tally."""
        known = {(oddity.problem, oddity.column) for oddity in self.oddities}
        for oddity in earlier.oddities:
            if not oddity.rows and (oddity.problem, oddity.column) not in known:
                self.note(oddity)
        return self

    def copy(self) -> Tally:
        """Return an independent copy."""
        duplicate = replace(self, reasons=[*self.reasons], oddities=[*self.oddities])
        duplicate.first = [*self.first]
        return duplicate


def _merge(reasons: list[Reason], reason: Reason) -> None:
    """Add a reason to a list, or its rows to the same reason in the list."""
    reason = replace(reason, column=reason.column[:MOST_LETTERS])
    indices = {(earlier.problem, earlier.column): index for index, earlier in enumerate(reasons)}
    if (reason.problem, reason.column) not in indices and len(reasons) >= MOST_REASONS:
        reason = replace(reason, problem=OTHER, column="")
    if (index := indices.get((reason.problem, reason.column))) is None:
        reasons.append(reason)
    else:
        reasons[index] = replace(reasons[index], rows=reasons[index].rows + reason.rows)


UNLABELLED = "the target is missing"
# Fields of a batch that are saved for groups with rows yet to come, beside the encoded rows and the target.
WAITING = {"weight": "float64", "numbers": "int64", "groups": "string", "exposure": "float64"}


class Position(NamedTuple):
    """A position in a source, at which reading can start or resume."""

    file: int = 0  # index of the file in the source's list
    offset: int = 0  # bytes of decompressed text, or rows of a columnar file, before the position
    row: int = 0  # rows of this file before the position (a header is not a row)


START = Position()


class Chunk(NamedTuple):
    """Consecutive rows of a file: whole lines of text, or a table."""

    # pyarrow.RecordBatch; or (bytes,) uint8, read-only: whole lines, though the last line of a file may lack its end
    data: Any
    file: str  # name of the file, for messages
    row: int  # number of the first row, counted from 1
    position: Position  # start of the next chunk
    optional: bool = False  # whether an absent column is treated as missing values, as an absent key of JSON


class Batch(NamedTuple):
    """Encoded rows, ready for learning or prediction. Rows in memory lack some fields."""

    rows: Block
    target: Any  # (n,): pyarrow.Array as read, without nulls if rows must be labelled; or Labels; or numbers
    weight: np.ndarray  # (n,) float64: sample weights, or after weighting by class the weights for learning
    numbers: Any = None  # (n,) int64: number of each row in its file, counted from 1
    tags: list[str] | None = None  # Vowpal Wabbit's tags, or None
    file: str = ""  # name of the file, for messages
    position: Position = START  # of the next batch
    columns: Any = None  # pyarrow.RecordBatch (n rows): columns kept in their original form, or None
    groups: Any = None  # (n,) groups of the rows: original names (str), or digests (uint64); or None
    exposure: np.ndarray | None = None  # (n,) float64 above 0: exposure of each row, for rates
    forgotten: Sequence[tuple[int, np.ndarray]] = ()  # (row, ids of the features that were forgotten before it)
    counts: np.ndarray | None = None  # (n,) weights of the rows in metrics, if they differ from ``weight``
    mass: np.ndarray | None = None  # (n,) total weight of each row and its copies, if known
    n_features: int = 0  # features known to the encoder after these rows
    tally: Tally | None = None  # rows that could not be used so far, if tracked
    checkpoint: Any = None  # state of the encoder after these rows, if a checkpoint is due
    is_last: bool = True  # whether it is the last part of a batch, after which the model can be saved

    def part(self, start: int, stop: int) -> Batch:
        """Return the rows from ``start`` up to ``stop``."""
        names = (*_ROW_FIELDS, "target", "tags", "columns")
        fields = {name: value[start:stop] for name in names if (value := getattr(self, name)) is not None}
        forgotten = [(row - start, features) for row, features in self.forgotten if start <= row < stop]
        return self._replace(rows=part(self.rows, start, stop), forgotten=forgotten, **fields)

    def at(self, indices: np.ndarray) -> Batch:
        """Return the rows at ascending indices."""
        names = (*_ROW_FIELDS, "target", "columns")
        fields = {name: values.take(indices) for name in names if (values := getattr(self, name)) is not None}
        tags = None if self.tags is None else [self.tags[i] for i in indices.tolist()]
        forgotten = [(int((indices < row).sum()), features) for row, features in self.forgotten]
        return self._replace(rows=rows_at(self.rows, indices), tags=tags, forgotten=forgotten, **fields)


class Converted(NamedTuple):
    """The usable rows of a chunk before their features are known."""

    chunk: Chunk
    n_rows: int  # number of rows in the chunk, including unusable ones
    values: list[Any]  # of each column, converted
    batch: Batch  # target, weight, exposure and groups


_ROW_FIELDS = ("weight", "numbers", "groups", "exposure", "counts", "mass")  # arrays with a value for each row


def followed(batches: list[Batch]) -> Batch:
    """Concatenate consecutive batches of a file."""
    last, starts = batches[-1], np.cumsum([0, *(len(batch.weight) for batch in batches)]).tolist()
    names = [name for name in _ROW_FIELDS if getattr(last, name) is not None]
    joined: dict[str, Any] = {name: np.concatenate([getattr(batch, name) for batch in batches]) for name in names}
    joined |= {name: _concatenated([getattr(batch, name) for batch in batches]) for name in ("target", "columns")}
    forgotten = [(n + row, ids) for n, batch in zip(starts, batches, strict=False) for row, ids in batch.forgotten]
    return last._replace(rows=together([batch.rows for batch in batches]), forgotten=forgotten, **joined)


def _concatenated(parts: list[Any]) -> Any:
    """Concatenate Arrow arrays or record batches, promoted to a common type; None if the parts are None."""
    if parts[0] is None:
        return None
    import pyarrow as pa  # imported late: predictions do not need it (tunefree.prediction)

    is_array = isinstance(parts[0], pa.Array)
    tables = [pa.table({"": part}) if is_array else pa.Table.from_batches([part]) for part in parts]
    table = pa.concat_tables([table.replace_schema_metadata(None) for table in tables], promote_options="permissive")
    (joined,) = table.unify_dictionaries().combine_chunks().to_batches()
    return joined.column(0) if is_array else joined


def save_state(batch: Batch) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Save rows of groups that are not learned yet, as arrays and a header."""
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
    """Restore the rows that :func:`save_state` saved."""
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
    """The origin of a row that was not moved: its file and row number themselves."""
    return file, row


Origin = Callable[[str, int], tuple[str, int]]  # maps a file and row number to places in the user's data


@dataclass
class BadRows:
    """The handling of rows that cannot be used, and their tally."""

    skip: bool = False  # whether such rows are counted and left out; otherwise the first one raises a DataError
    skip_unlabelled: bool = False  # whether rows without a label are counted separately and left out
    tally: Tally = field(default_factory=Tally)  # counts of the rows that were left out
    origin: Origin = as_named  # maps moved rows to their file and row number in the user's data
    classes: tuple[str, ...] = ()  # allowed labels, as texts; empty if all labels are allowed
    target: str | None = None  # the column of the labels
    loss: str | None = None  # the loss, which restricts the values of the target
    options: Collection[str] = ("on_bad_row", "unlabelled")  # parameters of the user that messages may suggest
    comparison: Any = None  # comparison of predicted with learned rows; created by the encoder

    def compare(self) -> None:
        """After the last row, note differences between predicted and learned rows."""
        if self.comparison is not None:
            self.comparison.note(self)

    def report(
        self,
        problem: str,
        file: str,
        row: int,
        column: str | None = None,
        remedy: str = "correct the row",
        is_unlabelled: bool = False,
    ) -> None:
        """Raise a DataError, or count the row if bad rows, or rows that lack the required label, are skipped."""
        if is_unlabelled and self.skip_unlabelled:
            self.tally.unlabelled += 1
            if problem != UNLABELLED:
                self.note(problem, file, row, column)
            return
        remedy += ", pass `unlabelled='skip'`" if is_unlabelled and "unlabelled" in self.options else ""
        remedy += ", or pass `on_bad_row='skip'`" if "on_bad_row" in self.options else ""
        error = DataError(problem, *self.origin(file, row), column, remedy)
        if not self.skip:
            raise error
        self.tally.add(error)

    def note(
        self, problem: str, file: str, row: int, column: str | None = None, rows: int = 1, remedy: str = ""
    ) -> None:
        """Count odd rows that are used; ``file`` and ``row`` locate the first of them."""
        oddity = Reason(problem, column or "", rows, *self.origin(file, row), remedy if self.options else "")
        self.tally.note(oddity)


def no_rows(name: str, tally: Tally) -> DataError:
    """The error for a source without rows that can be used; it has the first reason if rows were left out."""
    if tally.count:
        return DataError(f"no row could be used: {tally.reasons[0]}", name, remedy="correct the rows")
    if tally.unlabelled:
        return DataError("no row has a label", name, remedy="give rows that have one")
    return DataError("there are no rows", name, remedy="check that it is the file you mean")


_ROW_NUMBERS = b"tunefree.row_numbers"
SEMICOLONS = b"tunefree.semicolons"  # metadata of a sample whose delimiter is a semicolon


def row_numbers(chunk: Any) -> np.ndarray:
    """Return the row numbers of a chunk in its file; if bad rows were left out, they are in the metadata."""
    stored = (chunk.data.schema.metadata or {}).get(_ROW_NUMBERS)
    if stored is not None:
        return np.frombuffer(stored, np.int64)
    return np.arange(chunk.row, chunk.row + chunk.data.num_rows, dtype=np.int64)


def with_row_numbers(table: Any, numbers: np.ndarray) -> Any:
    """Add the row numbers to the metadata of a record batch."""
    return table.replace_schema_metadata({_ROW_NUMBERS: numbers.astype(np.int64).tobytes()})


def unique_names(chunk: Chunk) -> list[str]:
    """Return the column names of a chunk; raise a DataError if two are the same."""
    names = chunk.data.schema.names
    duplicate = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if duplicate is not None:
        raise DataError("two columns have this name", chunk.file, column=duplicate, remedy="rename one of them")
    return names
