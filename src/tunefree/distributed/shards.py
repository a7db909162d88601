"""Shards: parts of the data that are read and learned as a whole, and skipped as a whole if one cannot be read.

A text is cut at line ends into pieces of about equal size, a Parquet file between row groups, and a row group with very
many rows into equal parts; any other file is one piece. Adjacent pieces are joined until a shard has enough rows to
learn from. Shards therefore depend on the data only, not on the workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from tunefree.stream import formats
from tunefree.stream.batch import Position
from tunefree.stream.columnar import parquet_groups
from tunefree.stream.delimited import csv_header
from tunefree.stream.files import TextFile
from tunefree.stream.source import Source
from tunefree.stream.tables import Options
from tunefree.stream.text import plain_size, read_lines

FEWEST_ROWS = 16_384  # minimum rows of a shard, if the data have as many
MOST_ROWS = 1 << 18  # maximum rows of a part of a row group: on a longer part one worker works while others wait
RANGE = 1 << 25  # bytes of a piece of text
_ROW_BYTES = 128  # assumed bytes of a row in a file whose rows cannot be counted without reading


class Cut(NamedTuple):
    """The sizes of shards."""

    fewest_rows: int = FEWEST_ROWS
    range_bytes: int = RANGE
    most_rows: int = MOST_ROWS  # maximum rows of a part of a row group


class Piece(NamedTuple):
    """Consecutive rows of one file."""

    file: TextFile
    start: Position  # position of the first row, with file index 0
    rows: int | None  # number of rows; None for all rows up to the end of the file, or to its ``end``
    counted: int  # number of rows, or an estimate


class Shard(NamedTuple):
    """Rows that are learned together: pieces of files, or tables in memory, which are passed separately."""

    number: int
    pieces: tuple[Piece, ...] = ()
    format: str | None = None  # format of the files
    delimiter: str | None = None  # delimiter of CSV

    @property
    def name(self) -> str:
        """The name in messages."""
        files = ", ".join(dict.fromkeys(str(piece.file) for piece in self.pieces)) or "the table"
        return f"shard {self.number} of {files}"

    def whole(self) -> Shard:
        """Return the shard with each text extended to the end of its file."""
        return self._replace(pieces=tuple(piece._replace(file=piece.file.but(end=None)) for piece in self.pieces))

    def sources(self, frames: Sequence[Any]) -> Iterator[tuple[Source, Position, int | None]]:
        """Yield the sources to read, each with its start and its number of rows; None for all rows to the end."""
        for piece in self.pieces:
            yield Source((piece.file,), self.format, None, self.delimiter), piece.start, piece.rows
        for frame in frames:
            if len(frame):
                yield Source((), None, frame), Position(), None


def pieces_of(file: TextFile, format: str, delimiter: str | None, cut: Cut) -> list[Piece]:
    """Cut a text at line ends, and a Parquet file into row groups or equal parts of these; others are one piece."""
    if formats.named(format).text and plain_size(file) is not None:
        return _text_pieces(file, format, delimiter, cut)
    if format != "parquet":
        return [Piece(file, Position(), None, os.stat(file).st_size // _ROW_BYTES)]
    edges = [0]
    for n in parquet_groups(file):
        n_parts = -(-n // cut.most_rows)
        edges += [edges[-1] + n * (part + 1) // n_parts for part in range(n_parts)]
    return [Piece(file, Position(0, start, start), stop - start, stop - start) for start, stop in pairwise(edges)]


def shards_of(source: Source, pieces: Sequence[Piece], cut: Cut) -> list[Shard]:
    """Join the pieces of all files to shards."""
    groups = joined([piece.counted for piece in pieces], cut.fewest_rows)
    return [
        Shard(number, tuple(pieces[index] for index in group), source.format, source.delimiter)
        for number, group in enumerate(groups)
    ]


def joined(rows: Sequence[int], fewest: int) -> list[list[int]]:
    """Group adjacent parts until a group has ``fewest`` rows; remaining parts join the last group.

    >>> joined([5, 0, 9, 20, 3], fewest=10)
    [[0, 1, 2], [3, 4]]
    """
    groups, filled = list[list[int]](), fewest
    for index, n in enumerate(rows):
        if filled >= fewest:
            groups.append([])
            filled = 0
        groups[-1].append(index)
        filled += n
    if filled < fewest and len(groups) > 1:
        last = groups.pop()
        groups[-1] += last
    return groups


def _text_pieces(file: TextFile, format: str, delimiter: str | None, cut: Cut) -> list[Piece]:
    """Cut a text into pieces that end at line ends outside quotes."""
    delimiters, escaped, begin = "", False, Position()
    if format == "csv":
        header = csv_header(file, Options(delimiter))
        delimiters, escaped, begin = header.delimiter, header.escaped, Position(offset=header.beginning.end)
    chunks = read_lines([file], begin, cut.range_bytes, delimiters, escaped)
    ends = [Position(), *(chunk.position for chunk in chunks)]
    last = len(ends) - 2
    return [
        Piece(file.but(end=None if k == last else end.offset), start, None, max(end.row - start.row, 1))
        for k, (start, end) in enumerate(pairwise(ends))
    ]
