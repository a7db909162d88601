"""Columnar files (Parquet, Feather and Arrow IPC) as chunks of a table.

Arrow uses the bytes of a file without checks, and its kernels check neither offsets nor indices into dictionaries. So
every batch is validated before use: a damaged file raises an error instead of ending the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from tunefree.core.errors import DataError
from tunefree.stream.batch import BadRows, Chunk, Position
from tunefree.stream.columns import family
from tunefree.stream.frames import cut, index_columns, without_index
from tunefree.stream.tables import Options, TableReader, rows_of_a_chunk

_EXAMINED_ROWS = 1000  # rows that show which columns repeat their values
Batches = Callable[[int, int], Iterator[Any]]  # (offset in rows, rows of a batch) -> pyarrow.RecordBatch
Opener = Callable[[str], AbstractContextManager[tuple[Any, Batches]]]  # file -> its schema and batches


@contextmanager
def open_parquet(file: str) -> Iterator[tuple[Any, Batches]]:
    """Open a Parquet file; string columns with many repeated values are read dictionary-encoded."""
    with _arrow_errors(file, "Parquet"):
        names = _repetitive(file)
        source = parquet.ParquetFile(file, read_dictionary=names, buffer_size=1 << 16, pre_buffer=False)
        groups = _group_rows(source.metadata)

    def batches(offset: int, size: int) -> Iterator[Any]:
        remaining = list(range(len(groups)))
        while remaining and offset >= groups[remaining[0]]:
            offset -= groups[remaining.pop(0)]
        return cut(source.iter_batches(size, row_groups=remaining, use_threads=False), offset, size)

    with source:
        yield source.schema_arrow, batches


def _repetitive(file: str) -> list[str]:
    """Columns of strings with many repeated values in the first rows."""
    with parquet.ParquetFile(file, buffer_size=1 << 16, pre_buffer=False) as plain:
        names = [field.name for field in plain.schema_arrow if family(field.type) == "string"]
        head = next(plain.iter_batches(_EXAMINED_ROWS, columns=names, use_threads=False), None) if names else None
    if head is None:
        return []
    head.validate(full=True)
    return [
        field.name
        for field, array in zip(head.schema, head.columns, strict=True)
        if field.name in names and 4 * pc.count_distinct(array.cast(pa.string())).as_py() < len(array)
    ]


@contextmanager
def open_ipc(file: str) -> Iterator[tuple[Any, Batches]]:
    """Open a Feather or Arrow IPC file, or a file with an IPC stream."""
    with _arrow_errors(file, "Arrow"), pa.OSFile(file) as handle:
        try:
            reader = pa.ipc.open_file(handle)
            stored = (reader.get_batch(number) for number in range(reader.num_record_batches))
        except pa.ArrowInvalid:
            handle.seek(0)
            reader = stored = pa.ipc.open_stream(handle)
        yield reader.schema, lambda offset, size: cut(stored, offset, size)


def _reader(opener: Opener, title: str) -> TableReader:
    """A table reader for the files that ``opener`` opens."""

    def schema_of(file: str, options: Options) -> Any:
        with opener(file) as (schema, _):
            index = index_columns(schema.names, options.known)
            return pa.schema([field for field in schema if field.name not in index])

    def chunks(file: str, start: Position, schema: Any, options: Options, bad: BadRows) -> Iterator[Chunk]:
        row = start.row
        with opener(file) as (stored, batches), _arrow_errors(file, title):
            for batch in batches(start.offset, options.chunk_rows or rows_of_a_chunk(len(stored))):
                for column in batch.columns:
                    column.validate(full=True)
                row += batch.num_rows
                chunk = Chunk(batch, file, row - batch.num_rows + 1, Position(0, row, row))
                yield without_index(chunk, options.known, bad)

    return TableReader(schema_of, chunks)


@contextmanager
def _arrow_errors(file: str, title: str) -> Iterator[None]:
    """Convert Arrow's errors into DataError."""
    try:
        yield
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        remedy = "get or write the file again, or name its `format`"
        raise DataError(f"this is not a whole {title} file ({reason})", file, remedy=remedy) from None


def _group_rows(metadata: Any) -> list[int]:
    return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]


def parquet_groups(file: str) -> list[int]:
    """The number of rows of each row group of a Parquet file."""
    with _arrow_errors(file, "Parquet"):
        return _group_rows(parquet.read_metadata(file))


PARQUET = _reader(open_parquet, "Parquet")._replace(length=lambda file: sum(parquet_groups(file)))
ARROW = _reader(open_ipc, "Arrow")  # the number of rows is unknown before the end
