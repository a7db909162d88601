"""Places all over a source, from which a look at it is taken that does not hang on its start.

Text can be read from anywhere if it is not compressed, and no quotes hold line ends: there nothing shows where a line
begins.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from tunefree.stream import formats
from tunefree.stream.batch import Position
from tunefree.stream.beginnings import DELIMITERS
from tunefree.stream.lines import BLOCK_SIZE, SAMPLE, holds_line_ends, open_text
from tunefree.stream.source import Source

WINDOWS = 16  # which take the bytes of the second half of a sample


def spread_lines(file: str, beginning: bytes, delimiters: str, escaped: bool = False) -> bytes:
    """The first half of a sample, and whole lines from places all over the rest of a delimited file.

    The sample itself, of a file that is no longer or cannot be read from anywhere.

    Parameters
    ----------
    file : str
    beginning : bytes
        The first lines of the file, as a sample has them.
    delimiters : str
        Between fields.
    escaped : bool, default False
        As :func:`tunefree.stream.lines.read_lines` takes it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     _ = path.write_text("".join(f"{k:07d}\\n" for k in range(SAMPLE)))
    ...     lines = spread_lines(str(path), path.read_bytes()[:SAMPLE], ",").split()
    >>> len(lines) * 8 <= SAMPLE, lines[0], lines[-1]
    (True, b'0000000', b'2097151')
    """
    text = open_text(file)
    text.escaped = escaped
    try:
        size, width, start = text.size or 0, SAMPLE // 2 // WINDOWS, SAMPLE - SAMPLE // 2
        if size <= SAMPLE or holds_line_ends(beginning, delimiters):
            return beginning
        pieces = [beginning[: beginning.rfind(b"\n", 0, start) + 1]]
        for number in range(WINDOWS):
            text.skip_to(start + (size - start - width) * number // (WINDOWS - 1))
            window = text.peek(width).tobytes()
            lines = window[window.find(b"\n") + 1 : window.rfind(b"\n") + 1]
            pieces.append(b"" if holds_line_ends(lines, delimiters) else lines)
        return b"".join(pieces)
    finally:
        text.close()


def places_of(source: Source, count: int) -> list[Position]:
    """Positions all over a source, the first at its start.

    Only the start, where it can be read from no other place; none, where it cannot be read again at all. Rows of text
    before a position are not counted.

    Parameters
    ----------
    source : Source
    count : int
        Of positions, at most.

    Examples
    --------
    >>> from tunefree.stream.source import open_source
    >>> places_of(open_source({"age": list(range(100))}), 2)
    [Position(file=0, offset=0, row=0), Position(file=0, offset=50, row=50)]
    """
    lengths = [_rows_of(source.table)] if source.format is None else source.lengths()
    if not source.rewindable or (source.format is None and not lengths[0]):
        return []
    ends, places = list(itertools.accumulate(lengths)), {Position()}
    is_text = source.format is not None and formats.named(source.format).text
    for part in range(1, count) if lengths and all(lengths) else ():
        goal = ends[-1] * part // count
        number = bisect.bisect_right(ends, goal)
        offset = goal - ends[number] + lengths[number]
        if not is_text:
            places.add(Position(number, offset, offset))
        elif start := _line_after(source.files[number], offset, DELIMITERS if source.format == "csv" else ""):
            places.add(Position(number, start))
    return sorted(places)


def _rows_of(table: Any) -> int:
    """Rows of a table in memory that can be read again; 0 of a stream, or where that is unknown."""
    if isinstance(table, Mapping):
        table = next(iter(table.values()), ())
    can_be_read_again = isinstance(table, Sequence | pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch)
    library = type(table).__module__.split(".")[0]
    # others may be results of a query, which are gone once they are read
    return len(table) if can_be_read_again or library in ("numpy", "pandas", "polars") else 0


def _line_after(file: str, offset: int, delimiters: str) -> int:
    """Where the first line after a place of a text begins; 0 where none does."""
    text = open_text(file)
    try:
        sample = text.peek(SAMPLE).tobytes() if text.size is not None else b""
        if not sample or holds_line_ends(sample[: sample.rfind(b"\n") + 1], delimiters):
            return 0
        text.skip_to(offset)
        start = offset + text.peek(BLOCK_SIZE).tobytes().find(b"\n") + 1
        return start if offset < start < (text.size or 0) else 0
    finally:
        text.close()
