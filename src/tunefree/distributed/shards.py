"""Shards: parts of the data that are read, learned and lost as a whole. They are cut by content, not by worker.

A text is cut at the line ends that follow multiples of a number of bytes, a Parquet file between row groups, and a row
group of very many rows into equal parts; other files are parts as they are. Neighbouring parts are joined until a shard
has rows enough to learn from. So shards depend on the data alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np
from pyarrow import parquet

from tunefree.core.errors import DataError
from tunefree.stream import formats
from tunefree.stream.batch import Position
from tunefree.stream.delimited import csv_header
from tunefree.stream.files import COMPRESSIONS, TextFile
from tunefree.stream.quotes import BACKSLASH, LINE_END, QUOTE, inside_quotes, unescape
from tunefree.stream.source import Source
from tunefree.stream.tables import Options

FEWEST_ROWS = 16_384  # of a shard, if there are as many
MOST_ROWS = 1 << 18  # of a part of a row group: longer ones would keep one worker while others wait
RANGE = 1 << 25  # bytes of a part of a text
_WINDOW = 1 << 22  # bytes of a text that are looked at together
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


class Counted(NamedTuple):
    """Counts of a range of bytes of a text, if it begins outside quotes, and if it begins inside."""

    ends_inside: tuple[bool, bool]  # whether its end lies inside quotes
    lines: tuple[int, int]  # line ends outside quotes
    first: tuple[int, int]  # bytes up to and with the first of them; 0 if there is none


def count_range(file: str, start: int, stop: int, delimiter: str, escaped: bool = False) -> Counted:
    """Count the lines and quotes of a range of bytes of a text, which may begin anywhere.

    A run of quotes belongs to the range in which it begins. The delimiter is that of CSV, empty for text without
    quotes; quotes are ``escaped`` if backslashes say that they belong to values.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text('a,"x' + chr(10) + 'y"' + chr(10))
    >>> count_range(str(path), 0, 8, delimiter=",")
    Counted(ends_inside=(False, False), lines=(1, 2), first=(8, 5))
    """
    inside, lines, first = [False, True], [0, 0], [0, 0]
    try:
        with open(file, "rb") as text:
            for begin in range(start, stop, _WINDOW):
                before, window = _window(text, begin, min(_WINDOW, stop - begin), escaped)
                ends = np.flatnonzero(window == LINE_END)
                for way in range(2):
                    outside = ends
                    if delimiter and len(window):  # a file may have become shorter
                        is_inside = inside_quotes(window, delimiter, before, inside[way])
                        outside = ends[~is_inside[ends]]
                        inside[way] = bool(is_inside[-1])
                    lines[way] += len(outside)
                    if len(outside) and not first[way]:
                        first[way] = begin - start + int(outside[0]) + 1
    except OSError as error:
        raise DataError(f"it cannot be read ({error})", str(file), remedy="check the file") from None
    return Counted((inside[0], inside[1]), (lines[0], lines[1]), (first[0], first[1]))


def _window(text: Any, begin: int, size: int, escaped: bool) -> tuple[int, np.ndarray]:
    """The byte before a window of a text, and the window: with the rest of a run of quotes that it begins, and letters
    for the rest of one that began before it. Backslashes belong to such runs if they are escapes."""
    marks = bytes([QUOTE, BACKSLASH]) if escaped else bytes([QUOTE])
    text.seek(max(begin - 1, 0))
    before = text.read(1)[0] if begin else LINE_END
    data = text.read(size)
    if before in marks:
        rest = data.lstrip(marks)
        data = b"x" * (len(data) - len(rest)) + rest
    while data[-1:] and data[-1] in marks and (more := text.read(1)) and more in marks:
        data += more
    window = np.frombuffer(bytearray(data), np.uint8)
    if escaped:
        unescape(window)
    return before, window


def ranges_to_count(source: Source, cut: Cut) -> list[tuple[str, int, int, str, bool]]:
    """The ranges of bytes of a source's texts, as :func:`count_range` takes them."""
    ranges: list[tuple[str, int, int, str, bool]] = []
    for file in source.files:
        if _is_plain_text(source, file):
            begin, delimiter, escaped = 0, "", False
            if source.format == "csv":
                header = csv_header(file, Options(source.delimiter))
                begin, delimiter, escaped = header.start, header.delimiter, header.escaped  # comments have quotes
            edges = [*range(begin, os.stat(file).st_size, cut.range_bytes), os.stat(file).st_size]
            ranges += [(file, start, stop, delimiter, escaped) for start, stop in pairwise(edges)]
    return ranges


def shards_of(source: Source, counted: Sequence[Counted], cut: Cut) -> list[Shard]:
    """The shards of files, of whose ranges the lines were counted."""
    ranges: dict[str, list[tuple[int, int, Counted]]] = {}
    for (file, start, stop, *_), count in zip(ranges_to_count(source, cut), counted, strict=True):
        ranges.setdefault(file, []).append((start, stop, count))
    pieces: list[Piece] = []
    for file in source.files:
        pieces += _text_pieces(source, file, ranges[file]) if file in ranges else _whole_pieces(source, file, cut)
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
    groups: list[list[int]] = [[]]
    filled = 0
    for place, n in enumerate(rows):
        if filled >= fewest:
            groups.append([])
            filled = 0
        groups[-1].append(place)
        filled += n
    if filled < fewest and len(groups) > 1:
        last = groups.pop()
        groups[-1] += last
    return [group for group in groups if group]


def _is_plain_text(source: Source, file: str) -> bool:
    """Whether reading can begin anywhere in a file."""
    if not formats.named(str(source.format)).text or getattr(file, "encoding", None):
        return False
    with open(file, "rb") as opened:
        start = opened.read(2)
    known = b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b"  # UTF-16, and gzip whatever the file is called
    return os.path.splitext(file)[1].lower() not in COMPRESSIONS and start not in known


def _text_pieces(source: Source, file: str, ranges: list[tuple[int, int, Counted]]) -> list[Piece]:
    """Pieces that begin after the first line end of a range; a range without one belongs to the piece before."""
    ways = [*accumulate((count.ends_inside for _, _, count in ranges), lambda way, ends: int(ends[way]), initial=0)]
    before = [0, *accumulate(count.lines[way] for way, (_, _, count) in zip(ways, ranges, strict=False))]
    header = 1 if source.format == "csv" else 0
    starts = [(0, 0)]
    for (start, _, count), way, lines in zip(ranges[1:], ways[1:], before[1:], strict=False):
        if count.first[way]:
            starts.append((start + count.first[way], max(lines + 1 - header, 0)))
    size, total = ranges[-1][1], before[-1] + 1 - header
    starts = [(offset, row) for offset, row in starts if offset < size]
    named = file if isinstance(file, TextFile) else TextFile(file)
    return [
        Piece(named.but(end=stop if stop < size else None), Position(0, offset, row), None, max(until - row, 1))
        for (offset, row), (stop, until) in pairwise([*starts, (size, total)])
    ]


def _whole_pieces(source: Source, file: str, cut: Cut) -> list[Piece]:
    """The row groups of a Parquet file, or equal parts of these; any other file as it is."""
    if source.format != "parquet":
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
