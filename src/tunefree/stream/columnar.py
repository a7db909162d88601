"""Columnar files, which are Parquet, Feather and Arrow IPC, as chunks of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from tunefree.core.errors import DataError
from tunefree.stream.batch import BadRows, Columns, Position
from tunefree.stream.columns import family
from tunefree.stream.contract import Options, TableReader
from tunefree.stream.tables import rows_of_a_chunk


class OpenFile(NamedTuple):
    """An open columnar file."""

    schema: Any  # pyarrow.Schema
    batches: Callable[[int, int], Iterator[Any]]  # (offset in rows, rows of a batch) -> pyarrow.RecordBatch


@contextmanager
def open_parquet(file: str) -> Iterator[OpenFile]:
    """Open a Parquet file; string columns with many repetitions are read dictionary-encoded."""
    with _arrow_errors(file, "Parquet"):
        plain = parquet.ParquetFile(file)
        names = _repetitive(plain.metadata, plain.schema_arrow)
        plain.close()
        source = parquet.ParquetFile(file, read_dictionary=names, buffer_size=1 << 16, pre_buffer=False)
    groups = [source.metadata.row_group(group).num_rows for group in range(source.metadata.num_row_groups)]

    def batches(offset: int, size: int) -> Iterator[Any]:
        left = list(range(len(groups)))
        while left and offset >= groups[left[0]]:
            offset -= groups[left.pop(0)]
        for batch in source.iter_batches(size, row_groups=left, use_threads=False):
            yield batch.slice(min(offset, batch.num_rows))
            offset -= min(offset, batch.num_rows)

    try:
        yield OpenFile(source.schema_arrow, batches)
    finally:
        source.close()


def _repetitive(metadata: Any, schema: Any) -> list[str]:
    """Top-level string columns whose first row group takes few bytes a value, so that dictionary encoding pays."""
    if not metadata.num_row_groups or metadata.row_group(0).num_rows == 0:
        return []
    group = metadata.row_group(0)
    small = {
        chunk.path_in_schema
        for chunk in (group.column(place) for place in range(group.num_columns))
        if chunk.total_uncompressed_size < 8 * max(chunk.num_values, 1) + 4096
    }
    return [field.name for field in schema if family(field.type) == "string" and field.name in small]


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


Opener = Callable[[str], AbstractContextManager[OpenFile]]


def _schema(file: str, options: Options, opener: Opener) -> Any:
    with opener(file) as opened:
        return opened.schema


def _columns(file: str, schema: Any, options: Options, opener: Opener) -> dict[str, Any]:
    return {field.name: field.type for field in _schema(file, options, opener)}


def _chunks(
    file: str, start: Position, schema: Any, options: Options, bad: BadRows, opener: Opener, title: str
) -> Iterator[Columns]:
    with opener(file) as opened:
        batches = opened.batches(start.offset, options.chunk_rows or rows_of_a_chunk(len(opened.schema)))
        row = start.row
        while True:
            with _arrow_errors(file, title):
                batch = next(batches, None)
            if batch is None:
                return
            row += batch.num_rows
            if batch.num_rows:
                yield Columns(batch, file, row - batch.num_rows + 1, Position(0, row, row))


@contextmanager
def _arrow_errors(file: str, title: str) -> Iterator[None]:
    """Raise Arrow's errors as DataError."""
    try:
        yield
    except FileNotFoundError:
        raise DataError("there is no such file", file, remedy="check the path") from None
    except DataError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        remedy = "get or write the file again, or name its --format"
        raise DataError(f"this is not a whole {title} file ({reason})", file, remedy=remedy) from None


def _n_rows(file: str) -> int:
    return int(parquet.read_metadata(file).num_rows)


def _reader(opener: Opener, title: str) -> TableReader:
    return TableReader(
        partial(_schema, opener=opener),
        partial(_columns, opener=opener),
        partial(_chunks, opener=opener, title=title),
    )


PARQUET = _reader(open_parquet, "Parquet")._replace(length=_n_rows)
ARROW = _reader(open_ipc, "Arrow")  # how many rows it has takes reading it all
