"""Columnar files, which are Parquet, Feather and Arrow IPC, as chunks of a table.

Arrow takes the bytes of a file as they are, and its kernels check neither offsets nor indices into dictionaries. So
every batch is validated before anything else sees it: a damaged file is refused instead of ending the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from tunefree.core.errors import DataError
from tunefree.stream.batch import BadRows, Chunk, Position
from tunefree.stream.columns import family
from tunefree.stream.frames import index_columns, without_index
from tunefree.stream.tables import Options, TableReader, rows_of_a_chunk


class OpenFile(NamedTuple):
    """An open columnar file."""

    schema: Any  # pyarrow.Schema
    batches: Callable[[int, int], Iterator[Any]]  # (offset in rows, rows of a batch) -> pyarrow.RecordBatch


@contextmanager
def open_parquet(file: str) -> Iterator[OpenFile]:
    """Open a Parquet file; string columns with many repetitions are read dictionary-encoded."""
    with _arrow_errors(file, "Parquet"):
        with parquet.ParquetFile(file, buffer_size=1 << 16, pre_buffer=False) as plain:
            names = _repetitive(plain)
        source = parquet.ParquetFile(file, read_dictionary=names, buffer_size=1 << 16, pre_buffer=False)
        groups = [source.metadata.row_group(group).num_rows for group in range(source.metadata.num_row_groups)]
        schema = source.schema_arrow

    def batches(offset: int, size: int) -> Iterator[Any]:
        left = list(range(len(groups)))
        while left and offset >= groups[left[0]]:
            offset -= groups[left.pop(0)]
        for batch in source.iter_batches(size, row_groups=left, use_threads=False):
            yield batch.slice(min(offset, batch.num_rows))
            offset -= min(offset, batch.num_rows)

    try:
        yield OpenFile(schema, batches)
    finally:
        source.close()


def _repetitive(file: Any) -> list[str]:
    """Top-level string columns whose first row group takes few bytes a value: dictionary encoding is worthwhile."""
    metadata = file.metadata
    if not metadata.num_row_groups or metadata.row_group(0).num_rows == 0:
        return []
    strings = {field.name for field in file.schema_arrow if family(field.type) == "string"}
    places = {file.schema.column(place).path: place for place in range(metadata.num_columns)}
    # What tells the size of a damaged column ends the process; reading a row of the column first raises an error.
    for _ in file.iter_batches(1, row_groups=[0], columns=sorted(strings & places.keys()), use_threads=False):
        break
    chunks = {name: metadata.row_group(0).column(places[name]) for name in strings & places.keys()}
    small = {
        name for name, chunk in chunks.items() if chunk.total_uncompressed_size < 8 * max(chunk.num_values, 1) + 4096
    }
    return [field.name for field in file.schema_arrow if field.name in small]


@contextmanager
def open_ipc(file: str) -> Iterator[OpenFile]:
    """Open a Feather or Arrow IPC file, or a file that holds an IPC stream."""
    with _arrow_errors(file, "Arrow"), pa.OSFile(file) as handle:
        try:
            reader = pa.ipc.open_file(handle)
            stored = (reader.get_batch(place) for place in range(reader.num_record_batches))
        except pa.ArrowInvalid:
            handle.seek(0)
            reader = pa.ipc.open_stream(handle)
            stored = iter(reader)

        def batches(offset: int, size: int) -> Iterator[Any]:
            for batch in stored:
                for start in range(min(offset, batch.num_rows), batch.num_rows, size):
                    yield batch.slice(start, size)
                offset -= min(offset, batch.num_rows)

        yield OpenFile(reader.schema, batches)


def _reader(opener: Callable[[str], AbstractContextManager[OpenFile]], title: str) -> TableReader:
    """The reader of files that a function opens."""

    def next_of(batches: Iterator[Any], file: str) -> Any:
        """The next batch, checked to lie within its buffers; None at the end."""
        with _arrow_errors(file, title):
            batch = next(batches, None)
            for column in [] if batch is None else batch.columns:
                column.validate(full=True)
            return batch

    def schema_of(file: str, options: Options) -> Any:
        with opener(file) as opened:
            index = index_columns(opened.schema.names, options.named)
            return pa.schema([field for field in opened.schema if field.name not in index])

    def chunks(file: str, start: Position, schema: Any, options: Options, bad: BadRows) -> Iterator[Chunk]:
        with opener(file) as opened:
            batches = opened.batches(start.offset, options.chunk_rows or rows_of_a_chunk(len(opened.schema)))
            row = start.row
            while (batch := next_of(batches, file)) is not None:
                row += batch.num_rows
                if batch.num_rows:
                    chunk = Chunk(batch, file, row - batch.num_rows + 1, Position(0, row, row))
                    yield without_index(chunk, options.named, bad, "`numeric={!r}` keeps it" if options.grows else "")

    return TableReader(schema_of, chunks)


@contextmanager
def _arrow_errors(file: str, title: str) -> Iterator[None]:
    """Raise Arrow's errors as DataError."""
    try:
        yield
    except FileNotFoundError:
        raise DataError("there is no such file", file, remedy="check the path") from None
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, MemoryError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        remedy = "get or write the file again, or name its `format`"
        raise DataError(f"this is not a whole {title} file ({reason})", file, remedy=remedy) from None


def _n_rows(file: str) -> int:
    with _arrow_errors(file, "Parquet"):
        return int(parquet.read_metadata(file).num_rows)


PARQUET = _reader(open_parquet, "Parquet")._replace(length=_n_rows)
ARROW = _reader(open_ipc, "Arrow")  # how many rows it has takes reading it all
