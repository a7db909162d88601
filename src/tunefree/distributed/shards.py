"""Shards: parts of the data that are read, learned and lost as a whole. They are cut by content, not by worker.

A text is cut at line ends into pieces of about a number of bytes, a Parquet file between row groups, and a row
group of very many rows into equal parts; other files are parts as they are. Neighbouring parts are joined until a shard
has rows enough to learn from. So shards depend on the data alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from pyarrow import parquet

from tunefree.core.errors import DataError
from tunefree.stream import formats
from tunefree.stream.batch import Position
from tunefree.stream.delimited import csv_header
from tunefree.stream.files import TextFile
from tunefree.stream.source import Source
from tunefree.stream.tables import Options
from tunefree.stream.text import plain_size, read_lines

FEWEST_ROWS = 16_384  # of a shard, if there are as many
MOST_ROWS = 1 << 18  # of a part of a row group: longer ones would keep one worker while others wait
RANGE = 1 << 25  # bytes of a part of a text
_ROW_BYTES = 128  # of a row of a file that only reading would count


class Cut(NamedTuple):
    """The sizes of shards."""

    fewest_rows: int = FEWEST_ROWS
    range_bytes: int = RANGE
    most_rows: int = MOST_ROWS  # of a part of a row group


class Piece(NamedTuple):
    """Rows of one file that follow each other."""

    file: str
    start: Position  # of the first row, with 0 for the file
    rows: int | None  # how many there are; None for all that follow, up to the end that the file has
    counted: int  # rows, or a guess where only reading would count them


class Shard(NamedTuple):
    """Rows that are learned together: pieces of files, or else tables in memory that are handed over with it."""

    number: int
    pieces: tuple[Piece, ...] = ()
    format: str | None = None  # of the files
    delimiter: str | None = None  # of CSV

    @property
    def name(self) -> str:
        """The name in messages."""
        files = ", ".join(dict.fromkeys(str(piece.file) for piece in self.pieces)) or "the table"
        return f"shard {self.number} of {files}"

    def whole(self) -> Shard:
        """The shard with its texts up to their ends."""
        texts = ((piece, piece.file) for piece in self.pieces)
        pieces = (
            piece._replace(file=file.but(end=None)) if isinstance(file, TextFile) else piece for piece, file in texts
        )
        return self._replace(pieces=tuple(pieces))

    def sources(self, frames: Sequence[Any]) -> Iterator[tuple[Source, Position, int | None]]:
        """Sources to read, each with the place to begin and the number of rows; None for all rows to the end."""
        for piece in self.pieces:
            typed = formats.named(str(self.format)).typed
            source = Source((piece.file,), self.format, None, self.delimiter, typed=typed)
            yield source, piece.start, piece.rows
        for frame in frames:
            if not hasattr(frame, "__len__") or len(frame):
                yield Source((), None, frame), Position(), None


def pieces_of(file: str, format: str, delimiter: str | None, cut: Cut) -> list[Piece]:
    """The pieces of a file, cut by its content."""
    if formats.named(format).text and plain_size(file) is not None:
        return _text_pieces(file, format, delimiter, cut)
    return _whole_pieces(file, format, cut)


def shards_of(source: Source, pieces: Sequence[Piece], cut: Cut) -> list[Shard]:
    """The shards of the pieces of all files."""
    groups = joined([piece.counted for piece in pieces], cut.fewest_rows)
    return [
        Shard(number, tuple(pieces[place] for place in group), source.format, source.delimiter)
        for number, group in enumerate(groups)
    ]


def joined(rows: Sequence[int], fewest: int) -> list[list[int]]:
    """Groups of neighbouring parts that together have ``fewest`` rows; parts left over join the last group.

    >>> joined([5, 0, 9, 20, 3], fewest=10)
    [[0, 1, 2], [3, 4]]
    """
    groups, filled = list[list[int]](), fewest
    for place, n in enumerate(rows):
        if filled >= fewest:
            groups.append([])
            filled = 0
        groups[-1].append(place)
        filled += n
    if filled < fewest and len(groups) > 1:
        last = groups.pop()
        groups[-1] += last
    return groups


def _text_pieces(file: str, format: str, delimiter: str | None, cut: Cut) -> list[Piece]:
    """Pieces that end at line ends outside quotes."""
    delimiters, escaped, begin = "", False, Position()
    if format == "csv":
        header = csv_header(file, Options(delimiter))
        delimiters, escaped, begin = header.delimiter, header.escaped, Position(offset=header.end)
    chunks = read_lines([file], begin, cut.range_bytes, delimiters, escaped)
    ends = [Position(), *(chunk.position for chunk in chunks)]
    named = file if isinstance(file, TextFile) else TextFile(file)
    last = len(ends) - 2
    return [
        Piece(named.but(end=None if k == last else end.offset), start, None, max(end.row - start.row, 1))
        for k, (start, end) in enumerate(pairwise(ends))
    ]


def _whole_pieces(file: str, format: str, cut: Cut) -> list[Piece]:
    """The row groups of a Parquet file, or equal parts of these; any other file as it is."""
    if format != "parquet":
        return [Piece(file, Position(), None, os.stat(file).st_size // _ROW_BYTES)]
    try:
        metadata = parquet.read_metadata(file)
        groups = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    except Exception as error:  # whatever Arrow raises of a damaged file
        raise DataError(f"this is not a whole Parquet file ({error})", str(file), remedy="get it again") from None
    edges = [0]
    for n in groups:
        n_parts = -(-n // cut.most_rows)
        edges += [edges[-1] + n * (part + 1) // n_parts for part in range(n_parts)]
    return [Piece(file, Position(0, start, start), stop - start, stop - start) for start, stop in pairwise(edges)]
