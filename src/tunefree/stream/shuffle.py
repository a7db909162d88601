"""Sources in a random order, for files of any size: two passes over buckets on the disk.

The first pass sends each row to a bucket drawn at random. The second reads one bucket after the other into memory,
draws a random order of its rows, and writes them. Every order of all rows is then equally likely. Beside each file of
rows stands a file that tells where each row came from, for messages.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.stream import formats
from tunefree.stream.arrays import bytes_of, number_array, to_numpy
from tunefree.stream.batch import BadRows, row_numbers
from tunefree.stream.columns import decoded, family
from tunefree.stream.files import COMPRESSIONS, TextFile, display_name
from tunefree.stream.quotes import LINE_END
from tunefree.stream.source import MOST_LINE_BYTES, Source
from tunefree.stream.tables import CHUNK_ROWS

MOST_IN_MEMORY = 1 << 26  # bytes of rows before they are written to their buckets; so many need one bucket only
BUCKET = 1 << 27  # bytes of a bucket to aim at
MOST_BUCKETS = 1024
UNKNOWN = 64  # buckets where nothing tells how many bytes there are
_ORIGIN = "\0file", "\0row"  # columns of the places where rows came from
UNPACKED = 4  # bytes of rows for a byte of a compressed or columnar file, about


@contextmanager
def shuffled(
    source: Source, seed: int, bad: BadRows | None = None, chunks: Iterator[Any] | None = None, known: Any = None
) -> Iterator[Source]:
    """The rows of a source in a random order, in files that exist for as long as the context.

    The same source and seed give the same order. ``chunks`` are those of the source, where it would read others by
    itself, and ``known`` is the encoder of their columns. Errors name the file and the row of ``source``.
    """
    with tempfile.TemporaryDirectory(prefix="tunefree-shuffle-") as name:
        rng = np.random.default_rng(seed)
        files = _divide(source, chunks or source.chunks(bad=bad or BadRows()), Path(name), rng)
        for file in files:
            _reorder(file, source.kind == formats.TABLE, rng)
        shuffled_source = Source(
            tuple(TextFile(str(file), longest_line=MOST_LINE_BYTES) for file in files),
            "arrow" if source.kind == formats.TABLE else source.format,
            origin=partial(_origin, source),
            known=known,
            typed=source.typed,
        )
        try:
            yield shuffled_source
        except DataError as error:
            raise _traced(error, source, shuffled_source) from None


def _divide(source: Source, chunks: Iterator[Any], folder: Path, rng: np.random.Generator) -> list[Path]:
    """The first pass: buckets of rows with their places. The names of the files that they will become."""
    first, total = [], 0
    for chunk in chunks:
        first.append(chunk)
        total += _size(chunk)
        if total > MOST_IN_MEMORY:
            break
    count = 1 if total <= MOST_IN_MEMORY else _count(source)
    files = [folder / f"{number:04d}.rows" for number in range(count)]
    waiting: list[list[Any]] = [[] for _ in files]
    total = 0
    for chunk in itertools.chain(first, chunks):
        rows = _rows_of(chunk)
        buckets = rng.integers(count, size=len(rows))
        order = np.argsort(buckets, kind="stable")
        places, rows = np.searchsorted(buckets[order], np.arange(count + 1)), rows.take(number_array(order))
        for bucket, (start, stop) in enumerate(itertools.pairwise(places.tolist())):
            if start < stop:
                waiting[bucket].append(rows.slice(start, stop - start))
        total += _size(chunk)
        if total > MOST_IN_MEMORY:
            _flush(waiting, files)
            total = 0
    _flush(waiting, files)
    return [file for file in files if _bucket(file).exists()]


def _size(chunk: Any) -> int:
    """Bytes of a chunk."""
    return len(chunk.data) if isinstance(chunk.data, np.ndarray) else int(chunk.data.nbytes)


def _rows_of(chunk: Any) -> Any:
    """The rows of a chunk as a table, of text with a column of lines; and the numbers of the file and of each row."""
    if isinstance(chunk.data, np.ndarray):
        data = chunk.data if chunk.data[-1:].tobytes() == b"\n" else np.append(chunk.data, np.uint8(LINE_END))
        ends = np.flatnonzero(data == LINE_END) + 1
        buffers = [None, pa.py_buffer(np.append(0, ends)), pa.py_buffer(data)]
        lines = pa.Array.from_buffers(pa.large_binary(), len(ends), buffers)
        names, arrays, numbers = ["line"], [lines], chunk.row + np.arange(len(ends))
    else:
        names, arrays, numbers = chunk.data.schema.names, chunk.data.columns, row_numbers(chunk)
        arrays = [_plain(array) if family(array.type) == "string" else array for array in arrays]
    origins = [number_array(np.full(len(numbers), chunk.position.file)), number_array(numbers)]
    return pa.Table.from_arrays([*arrays, *origins], names=[*names, *_ORIGIN])


def _plain(strings: Any) -> Any:
    plain = decoded(strings)
    return plain.cast(pa.string()) if pa.types.is_string_view(plain.type) else plain


def _flush(waiting: list[list[Any]], files: list[Path]) -> None:
    """Write rows to their buckets, behind those that these hold; the types of a column need not be the same in all."""
    for file, pieces in zip(files, waiting, strict=True):
        if pieces:
            table = _joined(pieces)
            with _writing(file), open(_bucket(file), "ab") as rows, pa.ipc.new_stream(rows, table.schema) as writer:
                writer.write_table(table)
            pieces.clear()


def _joined(tables: list[Any]) -> Any:
    return pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()


def _reorder(file: Path, is_table: bool, rng: np.random.Generator) -> None:
    """The second pass over one bucket, which is removed."""
    tables = list[Any]()
    with _writing(file):
        with pa.OSFile(str(_bucket(file))) as bucket:
            while bucket.tell() < bucket.size():
                tables.append(pa.ipc.open_stream(bucket).read_all())
        table = _joined(tables)
        table = table.take(number_array(rng.permutation(len(table)))).combine_chunks()
        origins = [to_numpy(table.column(name).combine_chunks(), 0) for name in _ORIGIN]
        table = table.drop_columns([*_ORIGIN])
        with pa.OSFile(str(file), "wb") as handle:
            if is_table:
                with pa.ipc.new_file(handle, table.schema) as writer:
                    writer.write_table(table.unify_dictionaries(), max_chunksize=CHUNK_ROWS)
            else:
                for lines in table.column(0).chunks:
                    places = bytes_of(lines)[0]
                    handle.write(lines.buffers()[2][int(places[0]) : int(places[-1])])
        _origins(file).write_bytes(np.column_stack(origins).tobytes())
        _bucket(file).unlink()


def _bucket(file: Path) -> Path:
    return file.with_suffix(".bucket")


def _origins(file: Path) -> Path:
    return file.with_suffix(".origins")


def _read_origins(file: Path) -> np.ndarray:
    """For each row the number of its file in the source, and its number in that file."""
    return np.fromfile(_origins(file), np.int64).reshape(-1, 2)


def _count(source: Source) -> int:
    """The number of buckets with which each fits into memory."""
    if not source.files or not source.rewindable:
        return UNKNOWN
    plain = formats.named(str(source.format)).text
    factors = [1 if plain and Path(file).suffix.lower() not in COMPRESSIONS else UNPACKED for file in source.files]
    total = sum(factor * os.stat(file).st_size for factor, file in zip(factors, source.files, strict=True))
    return min(max(-(-total // BUCKET), 2), MOST_BUCKETS)


@contextmanager
def _writing(file: Path) -> Iterator[None]:
    """Raise the system's errors as DataError."""
    try:
        yield
    except OSError as error:
        problem = f"rows cannot be written to the disk in their new order ({error.strerror or error})"
        raise DataError(problem, str(file.parent), remedy="make room, or name another folder as TMPDIR") from None


def _traced(error: DataError, source: Source, shuffled_source: Source) -> DataError:
    """The error with the file and row that the user knows."""
    if error.file not in (*shuffled_source.files, shuffled_source.name):
        return error
    file, row = source.name, None
    if error.file in shuffled_source.files and error.row is not None:
        file, row = _origin(source, error.file, error.row)
    return DataError(error.problem, file, row, error.column, error.remedy)


def _origin(source: Source, file: str, row: int) -> tuple[str, int]:
    """The file and the row of a source that a row in a random order comes from."""
    number, before = _read_origins(Path(file))[row - 1].tolist()
    return display_name(source.files[number]) if source.files else source.name, before
