"""Sources in a random order, for files of any size: two passes over buckets on the disk.

The first pass sends each row to a bucket drawn at random. The second reads one bucket after the other into memory,
draws a random order of its rows, and writes them. Every order of all rows is then equally likely. What comes out is a
source of ordinary files, so passes, checkpoints and positions are as for any other. Beside each file of rows stands a
file that tells where each row came from, for messages.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.stream import formats
from tunefree.stream.batch import BadRows, row_numbers
from tunefree.stream.columns import decoded, family
from tunefree.stream.files import COMPRESSIONS, TextFile, display_name
from tunefree.stream.source import MOST_LINE_BYTES, Source
from tunefree.stream.tables import CHUNK_ROWS

HELD = 1 << 26  # bytes of rows in memory before they are written to their buckets; so many need one bucket only
BUCKET = 1 << 27  # bytes of a bucket to aim at
MOST_BUCKETS = 1024
UNKNOWN = 64  # buckets where nothing tells how many bytes there are
UNPACKED = 4  # bytes of rows for a byte of a compressed or columnar file, about


class Kind(NamedTuple):
    """How chunks of one kind are taken apart, written and read."""

    size: Callable[[Any], int]  # (chunk) -> bytes
    numbers: Callable[[Any], np.ndarray]  # (chunk) -> number of each row in its file
    take: Callable[[Any, np.ndarray], Any]  # (chunk, places) -> rows
    slice: Callable[[Any, int, int], Any]  # (rows, start, stop) -> rows
    append: Callable[[Any, list[Any]], None]  # (file, list of rows): to a bucket
    finish: Callable[[Path, Path, np.ndarray], None]  # (bucket, file, places): the rows of a bucket in a new order


@contextmanager
def shuffled(
    source: Source, seed: int, bad: BadRows | None = None, chunks: Iterator[Any] | None = None, known: Any = None
) -> Iterator[Source]:
    """The rows of a source in a random order, in files that exist for as long as the context.

    Parameters
    ----------
    source : Source
    seed : int
        From 0; the same source and seed give the same order.
    bad : BadRows, optional
        What happens to rows that cannot be read; an error if None.
    chunks : iterator, optional
        All chunks of the source, where they are to be read otherwise than it reads them by itself.
    known : encoder, optional
        Of the columns as these chunks have them.

    Yields
    ------
    Source
        Errors about its rows that are raised in the context name the file and the number of the row in ``source``.

    Raises
    ------
    DataError
        If a row cannot be used, or the rows cannot be written.

    Examples
    --------
    >>> from tunefree.stream.source import open_source
    >>> with shuffled(open_source({"age": [1, 2, 3, 4]}), seed=2) as shuffled_source:
    ...     [chunk.table["age"].to_pylist() for chunk in shuffled_source.chunks()]
    [[4, 3, 1, 2]]
    """
    kind = _TABLES if source.kind == formats.TABLE else _LINES
    with tempfile.TemporaryDirectory(prefix="tunefree-shuffle-") as name:
        rng = np.random.default_rng(seed)
        files = _divide(source, chunks or source.chunks(bad=bad or BadRows()), kind, Path(name), rng)
        for file in files:
            _reorder(file, kind, rng)
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


def _divide(source: Source, chunks: Iterator[Any], kind: Kind, folder: Path, rng: np.random.Generator) -> list[Path]:
    """The first pass: buckets, and beside each where its rows came from. Names of the files that they will become."""
    held, total = [], 0
    for chunk in chunks:
        held.append(chunk)
        total += kind.size(chunk)
        if total > HELD:
            break
    count = 1 if total <= HELD else _count(source)
    files = [folder / f"{number:04d}.rows" for number in range(count)]
    waiting: list[list[tuple[Any, np.ndarray]]] = [[] for _ in files]
    total = 0
    for chunk in itertools.chain(held, chunks):
        numbers = kind.numbers(chunk)
        buckets = rng.integers(count, size=len(numbers))
        order = np.argsort(buckets, kind="stable")
        places, rows = np.searchsorted(buckets[order], np.arange(count + 1)), kind.take(chunk, order)
        origins = np.column_stack([np.full(len(order), chunk.position.file), numbers[order]])
        for bucket, (start, stop) in enumerate(itertools.pairwise(places.tolist())):
            if start < stop:
                waiting[bucket].append((kind.slice(rows, start, stop), origins[start:stop]))
        total += kind.size(chunk)
        if total > HELD:
            _flush(waiting, files, kind)
            total = 0
    _flush(waiting, files, kind)
    return [file for file in files if _bucket(file).exists()]


def _flush(waiting: list[list[tuple[Any, np.ndarray]]], files: list[Path], kind: Kind) -> None:
    """Write rows to their buckets."""
    for file, pieces in zip(files, waiting, strict=True):
        if not pieces:
            continue
        with _writing(file), open(_bucket(file), "ab") as rows, open(_origins(file), "ab") as origins:
            kind.append(rows, [piece for piece, _ in pieces])
            origins.write(np.concatenate([origin for _, origin in pieces]).astype(np.int64).tobytes())
        pieces.clear()


def _reorder(file: Path, kind: Kind, rng: np.random.Generator) -> None:
    """The second pass over one bucket, which is removed."""
    origins = _read_origins(file)
    order = rng.permutation(len(origins))
    with _writing(file):
        kind.finish(_bucket(file), file, order)
        _origins(file).write_bytes(origins[order].tobytes())
        _bucket(file).unlink()


def _bucket(file: Path) -> Path:
    return file.with_suffix(".bucket")


def _origins(file: Path) -> Path:
    return file.with_suffix(".origins")


def _read_origins(file: Path) -> np.ndarray:
    """For each row the number of its file in the source, and its number in that file."""
    return np.fromfile(_origins(file), np.int64).reshape(-1, 2)


def _count(source: Source) -> int:
    """How many buckets to make, so that each fits into memory."""
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


def _take_columns(chunk: Any, places: np.ndarray) -> Any:
    """Rows of a chunk of a table. Dictionaries of strings, which differ from chunk to chunk, are decoded."""
    table = chunk.table
    arrays = [_plain(array) if family(array.type) == "string" else array for array in table.columns]
    return pa.Table.from_arrays(arrays, names=table.schema.names).take(pa.array(places))


def _plain(strings: Any) -> Any:
    plain = decoded(strings)
    return plain.cast(pa.string()) if pa.types.is_string_view(plain.type) else plain


def _append_tables(file: Any, tables: list[Any]) -> None:
    """Write tables as one, behind those that the file holds; the types of a column need not be the same in all."""
    table = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


def _finish_tables(bucket: Path, file: Path, places: np.ndarray) -> None:
    tables = []
    with pa.OSFile(str(bucket)) as handle:
        while handle.tell() < handle.size():
            tables.append(pa.ipc.open_stream(handle).read_all())
    table = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries().take(pa.array(places))
    with pa.OSFile(str(file), "wb") as handle, pa.ipc.new_file(handle, table.schema) as writer:
        writer.write_table(table.combine_chunks().unify_dictionaries(), max_chunksize=CHUNK_ROWS)


def _lines_of(data: bytes) -> list[bytes]:
    return data.removesuffix(b"\n").split(b"\n")


def _take_lines(chunk: Any, places: np.ndarray) -> list[bytes]:
    lines = _lines_of(chunk.data.tobytes())
    return [lines[place] for place in places.tolist()]


def _append_lines(file: Any, pieces: list[list[bytes]]) -> None:
    for lines in pieces:
        file.write(b"\n".join(lines) + b"\n")


def _finish_lines(bucket: Path, file: Path, places: np.ndarray) -> None:
    lines = _lines_of(bucket.read_bytes())
    with open(file, "wb") as handle:
        _append_lines(handle, [[lines[place] for place in places.tolist()]])


_TABLES = Kind(
    lambda chunk: int(chunk.table.nbytes),
    row_numbers,
    _take_columns,
    lambda table, start, stop: table.slice(start, stop - start),
    _append_tables,
    _finish_tables,
)
_LINES = Kind(
    lambda chunk: len(chunk.data),
    lambda chunk: np.arange(chunk.row, chunk.row + len(_lines_of(chunk.data.tobytes()))),
    _take_lines,
    lambda lines, start, stop: lines[start:stop],
    _append_lines,
    _finish_lines,
)
