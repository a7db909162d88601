"""What a file format of tables provides. One of text whose lines are rows has an encoder instead
(:class:`tunefree.stream.tokens.LineEncoder`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tunefree.stream.batch import BadRows, Columns, Position
from tunefree.stream.lines import BLOCK_SIZE
from tunefree.stream.notation import ColumnTypes


class Options(NamedTuple):
    """How to read a table."""

    delimiter: str | None = None  # between the fields of a line; guessed from the header if None
    types: dict[str, Any] = {}  # noqa: RUF012 - Arrow types of columns that a model knows, for names of folders
    chunk_rows: int | None = None  # rows of a chunk of a columnar file; chosen by the number of columns if None
    block_size: int = BLOCK_SIZE  # bytes of a chunk of text
    as_written: tuple[str, ...] = ()  # columns that are strings where they are names of folders
    column_types: ColumnTypes | None = None  # what is said of columns instead of being guessed
    target: str | None = None  # a column that is asked for
    na_values: tuple[str, ...] = ()  # texts among numbers of JSON that stand for a missing one, beside the usual ones
    grows: bool = True  # whether columns that ``types`` lacks are of use

    @property
    def named(self) -> set[str]:
        """Columns that a model knows, or that a user names."""
        of_user = () if self.column_types is None else (*self.column_types.numeric, *self.column_types.as_written(()))
        return {*self.types, *self.as_written, *of_user, *([] if self.target is None else [self.target])}


class TableReader(NamedTuple):
    """The functions that read one format of tables; each reads one file.

    ``schema`` returns the names and types (pyarrow.Schema) of the columns of a file.

    ``chunks`` yields the rows that follow a position of the file, as record batches of the schema, or with further
    columns. The position of a chunk is where the next one starts, and its ``file`` stays 0. Rows that cannot be used
    are reported to ``BadRows`` and left out; the batch then carries the numbers of its rows
    (:func:`tunefree.stream.columns.with_row_numbers`).

    ``length`` returns the length of a file in the unit of ``Position.offset``, or 0 where that is unknown. It is not
    needed for text, whose length is its size in bytes.

    ``sample`` returns rows of a file, as a record batch of the schema, that tell more of its columns than its first
    chunk does; None where its first chunk tells as much.

    ``optional`` says that a row may lack columns, and a further file too, but not all of them.
    """

    schema: Callable[[str, Options], Any]  # (file, options) -> pyarrow.Schema
    chunks: Callable[[str, Position, Any, Options, BadRows], Iterator[Columns]]  # (file, start, schema, options, bad)
    length: Callable[[str], int] = lambda file: 0  # (file) -> rows
    sample: Callable[[str, Options], Any] = lambda file, options: None  # (file, options) -> pyarrow.RecordBatch
    optional: bool = False
