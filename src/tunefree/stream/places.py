"""Places all over a source from which it can be read, for a look at it that does not hang on its start."""

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


def places_of(source: Source, count: int) -> list[Position]:
    """Positions all over a source from which it can be read, the first at its start.

    Only the start, where it can be read from no other place, such as compressed text, and where quotes hold line ends:
    nothing shows there where a line begins. None, where it cannot be read again at all. Rows of text before a position
    are not counted.

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
    for part in range(1, count) if lengths and all(lengths) else ():
        goal = ends[-1] * part // count
        number = bisect.bisect_right(ends, goal)
        offset: int | None = goal - ends[number] + lengths[number]
        is_text = source.format is not None and formats.named(source.format).text
        if is_text:
            offset = _line_after(source.files[number], int(offset or 0), DELIMITERS if source.format == "csv" else "")
        if offset is not None:
            places.add(Position(number, offset, 0 if is_text else offset))
    return sorted(places)


def _rows_of(table: Any) -> int:
    """Rows of a table in memory that can be read again; 0 of a stream, or where that is unknown."""
    if isinstance(table, Mapping):
        table = next(iter(table.values()), ())
    can_be_read_again = isinstance(table, Sequence | pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch)
    library = type(table).__module__.split(".")[0]
    # others may be results of a query, which are gone once they are read
    return len(table) if can_be_read_again or library in ("numpy", "pandas", "polars") else 0


def _line_after(file: str, offset: int, delimiters: str) -> int | None:
    """Where the first line after a place of a text begins; None where none does, or where quotes hold line ends."""
    text = open_text(file)
    try:
        if text.size is None:
            return None
        sample = text.peek(SAMPLE).tobytes()
        if holds_line_ends(sample[: sample.rfind(b"\n") + 1], delimiters):
            return None
        text.skip_to(offset)
        start = offset + text.peek(BLOCK_SIZE).tobytes().find(b"\n") + 1
        return start if offset < start < text.size else None
    finally:
        text.close()
