"""Shuffling of sources of any size, in two passes over buckets on the disk.

The first pass appends each row to a bucket drawn at random. The second pass reads one bucket after the other into
memory, and writes its rows in a random order. Every order of all rows is then equally likely. For messages, a second
file next to each file of rows has the origin of each row.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.stream import formats
from tunefree.stream.arrays import bytes_of, number_array, strings_of, to_numpy
from tunefree.stream.batch import BadRows, no_rows, row_numbers
from tunefree.stream.columns import decoded, family
from tunefree.stream.files import TextFile, display_name
from tunefree.stream.quotes import LINE_END
from tunefree.stream.source import MOST_LINE_BYTES, Source
from tunefree.stream.tables import CHUNK_ROWS

MOST_IN_MEMORY = 1 << 26  # bytes of rows in memory before they are written to buckets; less data needs one bucket
BUCKET = 1 << 27  # maximum bytes of a bucket
BUCKETS, MOST_BUCKETS = 64, 1024  # number of buckets up to 8 GiB of rows, and for the largest files
UNPACKED = 4  # approximate bytes of rows for a byte of a compressed or columnar file
_ORIGIN = "\0file", "\0row"  # columns with the file index and row number of the origin of each row


@contextmanager
def shuffled(
    source: Source, seed: int, bad: BadRows | None = None, chunks: Iterator[Any] | None = None, known: Any = None
) -> Iterator[Source]:
    """Shuffle the rows of a source into files that exist for as long as the context.

    The same source and seed give the same order. ``chunks`` are the chunks of the source, if read with options, and
    ``known`` is the encoder of their columns. Errors name the file and the row of ``source``.
    """

    origins = cache(lambda file: np.load(_origins(file), mmap_mode="r"))

    def origin(file: str, row: int) -> tuple[str, int]:
        number, before = origins(file)[row - 1].tolist()
        return display_name(source.files[number]) if source.files else source.name, before

    bad = bad or BadRows()
    with tempfile.TemporaryDirectory(prefix="tunefree-shuffle-") as folder:
        rng = np.random.default_rng(seed)
        size = UNPACKED * sum(os.path.getsize(file) for file in source.files if file != "-")
        n_buckets = min(max(BUCKETS, size // BUCKET), MOST_BUCKETS)
        try:
            buckets = _divide(chunks or source.chunks(bad=bad), n_buckets, Path(folder), rng)
            files = [_reordered(bucket, source.kind == formats.TABLE, rng) for bucket in buckets]
            if not files:
                raise no_rows(source.name, bad.tally)
        except OSError as error:
            problem = f"rows cannot be written to the disk in their new order ({error.strerror or error})"
            raise DataError(problem, folder, remedy="make room, or name another folder as TMPDIR") from None
        names = tuple(TextFile(file, longest_line=MOST_LINE_BYTES) for file in files)
        format = "arrow" if source.kind == formats.TABLE else source.format
        shuffled_source = Source(names, format, origin=origin, known=known)
        try:
            yield shuffled_source
        except DataError as error:
            if error.file not in (*files, shuffled_source.name):
                raise
            file, row = source.name, None
            if error.file in files and error.row is not None:
                file, row = origin(error.file, error.row)
            raise DataError(error.problem, file, row, error.column, error.remedy) from None


def _divide(chunks: Iterator[Any], n_buckets: int, folder: Path, rng: np.random.Generator) -> list[Path]:
    """The first pass: divide rows and their origins into buckets; into one bucket if they fit into memory."""
    buffered, size = [], 0
    while size <= MOST_IN_MEMORY and (chunk := next(chunks, None)) is not None:
        buffered.append(chunk)
        size += chunk.data.nbytes
    buckets = [folder / f"{number:04d}" for number in range(1 if size <= MOST_IN_MEMORY else n_buckets)]
    waiting: list[list[Any]] = [[] for _ in buckets]
    size = 0
    for chunk in itertools.chain(buffered, chunks):
        rows = _rows_of(chunk)
        bucket_indices = rng.integers(len(buckets), size=len(rows))
        order = np.argsort(bucket_indices, kind="stable")
        rows, ends = rows.take(number_array(order)), np.searchsorted(bucket_indices[order], np.arange(len(buckets) + 1))
        for pieces, start, stop in zip(waiting, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
            if start < stop:
                pieces.append(rows.slice(start, stop - start))
        size += chunk.data.nbytes
        if size > MOST_IN_MEMORY:
            _flush(waiting, buckets)
            size = 0
    _flush(waiting, buckets)
    return [bucket for bucket in buckets if bucket.exists()]


def _rows_of(chunk: Any) -> Any:
    """Convert a chunk to a table, with a column of lines for text, and add the file index and the row numbers."""
    if isinstance(chunk.data, np.ndarray):
        data = chunk.data if chunk.data[-1:].tobytes() == b"\n" else np.append(chunk.data, np.uint8(LINE_END))
        ends = np.flatnonzero(data == LINE_END) + 1
        lines = strings_of(data, ends, pa.large_binary())
        names, arrays, numbers = ["line"], [lines], chunk.row + np.arange(len(ends))
    else:
        names, arrays, numbers = chunk.data.schema.names, chunk.data.columns, row_numbers(chunk)
        arrays = [decoded(array).cast(pa.string()) if family(array.type) == "string" else array for array in arrays]
    origins = [number_array(np.full(len(numbers), chunk.position.file)), number_array(numbers)]
    return pa.Table.from_arrays([*arrays, *origins], names=[*names, *_ORIGIN])


def _flush(waiting: list[list[Any]], buckets: list[Path]) -> None:
    """Append rows to their buckets; the type of a column may differ between writes."""
    for bucket, pieces in zip(buckets, waiting, strict=True):
        if pieces:
            table = _joined(pieces)
            with open(bucket, "ab") as rows, pa.ipc.new_stream(rows, table.schema) as writer:
                writer.write_table(table)
            pieces.clear()


def _joined(tables: list[Any]) -> Any:
    return pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()


def _reordered(bucket: Path, is_table: bool, rng: np.random.Generator) -> str:
    """The second pass over one bucket: shuffle it into a new file, remove it, and return the name of the file."""
    tables, file = list[Any](), f"{bucket}.rows"
    with pa.OSFile(str(bucket)) as stored:
        while stored.tell() < stored.size():
            tables.append(pa.ipc.open_stream(stored).read_all())
    bucket.unlink()
    table = _joined(tables)
    table = table.take(number_array(rng.permutation(len(table)))).combine_chunks()
    np.save(_origins(file), np.column_stack([to_numpy(table.column(name).combine_chunks(), 0) for name in _ORIGIN]))
    table = table.drop_columns([*_ORIGIN])
    with pa.OSFile(file, "wb") as handle:
        if is_table:
            with pa.ipc.new_file(handle, table.schema) as writer:
                writer.write_table(table.unify_dictionaries(), max_chunksize=CHUNK_ROWS)
        else:
            for lines in table.column(0).chunks:
                offsets = bytes_of(lines)[0]
                handle.write(lines.buffers()[2][int(offsets[0]) : int(offsets[-1])])
    return file


def _origins(file: str) -> str:
    """Return the name of the NumPy file with the origins (file index and row number) of the rows of a file."""
    return f"{file}.npy"
