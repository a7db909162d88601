"""Files of tables in any format as chunks, and the functions that a format of tables provides.

Names of folders may be values of columns, as Hive and Spark write them: ``year=2024/job=cook/part-0.parquet``. A value
that is the same in all files becomes a column only if a model or an option names it. Columns of the file have priority.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.core.registry import load
from tunefree.stream import formats
from tunefree.stream.arrays import flattened, string_array
from tunefree.stream.batch import START, BadRows, Chunk, Position, no_rows
from tunefree.stream.columns import family
from tunefree.stream.files import Partition, display_name
from tunefree.stream.text import BLOCK_SIZE

CHUNK_ROWS = 32768
_CHUNK_CELLS = 1 << 21  # of a chunk at most, 16 MiB of float64: wide tables have fewer rows per chunk


class Options(NamedTuple):
    """Options of reading a table."""

    delimiter: str | None = None  # between the fields of a line; guessed from the header if None
    types: dict[str, Any] = {}  # noqa: RUF012 - Arrow types of the columns of a model
    chunk_rows: int | None = None  # rows of a chunk of a columnar file; chosen by the number of columns if None
    block_size: int = BLOCK_SIZE  # bytes of a chunk of text
    na_values: Sequence[str] = ()  # further texts in JSON that mean a missing number
    named: Collection[str | None] = ()  # columns that a user names
    strings: Collection[str] = ()  # columns that are strings if they are names of folders

    @property
    def known(self) -> set[str | None]:
        """Columns of a model, and columns that a user names."""
        return {*self.types, *self.named}


class TableReader(NamedTuple):
    """The functions that read one format of tables; each reads one file."""

    # (file, options) -> pyarrow.Schema: the names and types of the columns
    schema: Callable[[str, Options], Any]
    # (file, start, schema, options, bad): chunks of the rows after a position, with the columns of the schema and maybe
    # further ones. The position of a chunk is the start of the next one, in file 0. Rows that cannot be used are
    # reported and left out; the batch then has :func:`tunefree.stream.batch.with_row_numbers`.
    chunks: Callable[[str, Position, Any, Options, BadRows], Iterator[Chunk]]
    length: Callable[[str], int] = lambda file: 0  # in the unit of ``Position.offset``; 0 if unknown, and for text
    # (file, options) -> pyarrow.RecordBatch: rows that represent the file better than the first chunk, or None
    sample: Callable[[str, Options], Any] = lambda file, options: None
    optional: bool = False  # whether a row or a further file may lack some columns


def read_tables(
    files: Sequence[str], format: str, start: Position = START, bad: BadRows | None = None, **options: Any
) -> Iterator[Chunk]:
    """Read tables as chunks; ``options`` are the fields of :class:`Options`.

    Reading from the ``position`` of a chunk yields exactly the rows after it. Rows that cannot be read are errors if
    ``bad`` is None. Chunks of columnar files have 32768 rows by default, fewer for wide tables.
    """
    reader = reader_of(files, format)
    settings = Options(**options)
    schema = first_schema = reader.schema(files[0], settings)
    rows, bad = 0, bad or BadRows()
    for number in range(start.file, len(files)):
        file = files[number]
        if number:
            known = settings._replace(types=dict(zip(schema.names, schema.types, strict=True)) | settings.types)
            file_schema = reader.schema(file, known)
            _check_columns(first_schema, file_schema, reader.optional, file, files[0])
            schema = _with_further(schema, file_schema)
        begin = start._replace(file=0) if number == start.file else Position()
        for chunk in reader.chunks(file, begin, schema, settings, bad):
            rows += chunk.data.num_rows
            schema = _with_further(schema, chunk.data.schema)
            chunk = with_partitions(chunk._replace(data=flattened(chunk.data)), file, settings, bad)
            yield chunk._replace(position=chunk.position._replace(file=number))
    if not rows and start == START and not bad.tally.count:
        raise no_rows(display_name(files[0]), bad.tally)


def rows_of_a_chunk(n_columns: int) -> int:
    """The number of rows of a chunk, so that its memory is bounded."""
    return max(256, min(CHUNK_ROWS, _CHUNK_CELLS // max(n_columns, 1)))


def reader_of(files: Sequence[str], format: str) -> TableReader:
    """The table reader of a format."""
    if "-" in files and not formats.named(format).text:
        raise DataError(f"{format} cannot be read from standard input", remedy="save it to a file")
    reader: TableReader = load(formats.named(format).reader)
    return reader


def _check_columns(schema: Any, file_schema: Any, optional: bool, file: str, first: str) -> None:
    """Raise a DataError unless a file has the columns of the first file, or some if ``optional``, with equal types."""
    columns = dict(zip(file_schema.names, file_schema.types, strict=True))
    optional = optional and not columns.keys().isdisjoint(schema.names)
    file, remedy = display_name(file), "give files with its columns; they may have more"
    for name in schema.names:
        if name not in columns:
            if optional:
                continue
            raise DataError(f"the column is missing here, but {first} has it", file, column=name, remedy=remedy)
        kinds = [family(kind) for kind in (schema.field(name).type, columns[name])]
        expected, actual = ("string" if kind == "category" else kind for kind in kinds)
        if "null" not in {expected, actual} and expected != actual:
            problem = f"{columns[name]} here, but {schema.field(name).type} in {first}"
            raise DataError(problem, file, column=name, remedy="give the column one type in all files")


def _with_further(schema: Any, other: Any) -> Any:
    """A schema with further columns, except for columns of type null, whose type is not known yet."""
    known = {*schema.names}
    further = [field for field in other if field.name not in known and not pa.types.is_null(field.type)]
    return pa.schema([*schema, *further]) if further else schema


def with_partitions(chunk: Chunk, file: str, options: Options, bad: BadRows) -> Chunk:
    """A chunk with columns for the partitions of its file that are used; ``bad`` gets a note of each."""
    for partition in getattr(file, "partitions", ()):
        name = partition.name
        if name in chunk.data.schema.names or not (partition.varies or name in options.known):
            continue
        values = pa.repeat(_value(partition, options)[0], chunk.data.num_rows)
        chunk = chunk._replace(data=chunk.data.append_column(name, values))
        if "categorical" in bad.options and name not in options.named:
            remedy = f"`ignore={name!r}` leaves it out"
            bad.note("from the names of folders", chunk.file, chunk.row, name, len(values), remedy)
    return chunk


def _value(partition: Partition, options: Options) -> Any:
    """The value of a partition as an Arrow array: a number if all values are, and the column has no other type."""
    known = options.types.get(partition.name, pa.string() if partition.name in options.strings else pa.float64())
    arrow_type = pa.float64() if partition.is_number and pa.types.is_floating(known) else pa.string()
    return pa.nulls(1, arrow_type) if partition.text is None else string_array([partition.text]).cast(arrow_type)
