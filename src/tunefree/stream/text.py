"""Text as chunks of whole lines, how it begins, and samples of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np

from tunefree.core.errors import DataError
from tunefree.stream.batch import Chunk, Position
from tunefree.stream.byte_stream import ByteStream, open_text
from tunefree.stream.files import display_name
from tunefree.stream.notation import is_plain_number
from tunefree.stream.quotes import LINE_END, QUOTE, quotes_of

BLOCK_SIZE = 1 << 21  # bytes of a chunk: its fixed costs are negligible, and it fits into the last-level cache
SAMPLE = BLOCK_SIZE  # bytes at the start of a text from which the types of its columns are inferred
_PIECE = 1 << 16
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(rb'"?sep=(.)"?\r?\n')  # how Excel names the delimiter
_BLANK = b" \t\r,;|\"'"  # letters of lines that hold nothing
_QUOTED = re.compile(r'(?:^|(?<=[,;\t|]))"[^"]*"')
WINDOWS = 16  # of a sample from all over a text, which take the bytes of its second half


class _LineEnds(NamedTuple):
    """Where lines end in a window of text."""

    first: int  # bytes up to and with the first line end, or 0
    last: int  # bytes up to and with the last line end, or 0
    lines: int  # line ends
    is_open: bool = False  # whether the window ends inside quotes


def read_lines(
    files: Sequence[str],
    start: Position = Position(),  # noqa: B008 - an immutable tuple
    block_size: int = BLOCK_SIZE,
    delimiters: str = "",
    header: bool = False,
    escaped: bool = False,
) -> Iterator[Chunk]:
    """Read texts as chunks of whole lines, from a position on; a chunk's ``position`` gives the chunks that follow it.

    A chunk has about ``block_size`` bytes; a longer line gets a chunk of its own. Line ends between double quotes do
    not end a line if there are ``delimiters``; a quote that is never closed holds its own line only. With a ``header``
    the first line of each file is no row. Quotes that a backslash precedes are doubled if they are ``escaped``.
    """
    for number in range(start.file, len(files)):
        begin = start if number == start.file else Position(number)
        with closing(open_text(files[number])) as text:
            text.end, text.escaped = getattr(files[number], "end", None), escaped
            yield from _chunks(text, begin, block_size, delimiters, header)


class Beginning(NamedTuple):
    """How a text begins."""

    header: bytes  # the first line that is neither blank nor a comment nor names the delimiter, without its line end
    start: Start  # what comes before it
    sample: bytes  # the first two mebibytes, from the header on

    @property
    def below(self) -> bytes:
        """The sample from the line after the header on."""
        start = self.sample.find(b"\n", len(self.header)) + 1  # the header may hold line ends
        return self.sample[start:] if start else b""


def read_beginning(file: str, delimiters: str = "") -> Beginning:
    """How a text begins; standard input can still be read from its start afterwards."""
    with closing(open_text(file)) as text:
        if text.offset:
            return Beginning(b"", Start(), b"")
        window = text.peek(SAMPLE).tobytes()
        start, end = _header_of(text, delimiters)
        header = text.peek(end).tobytes()[start.size :].rstrip(b"\r\n")
        return Beginning(header, start, window[start.size :])


def read_sample(file: str) -> bytes:
    """The first two mebibytes of a text, without a byte-order mark; standard input can still be read from its start."""
    with closing(open_text(file)) as text:
        return text.peek(SAMPLE).tobytes().removeprefix(BYTE_ORDER_MARK) if text.offset == 0 else b""


def whole_lines(window: bytes, delimiters: str = "") -> bytes:
    """A sample of text up to its last line end outside quotes; all of it where it has none, or the text ends sooner."""
    if len(window) < SAMPLE // 2:
        return window
    has_quotes = delimiters and b'"' in window
    last = _find_ends(np.frombuffer(window, np.uint8), delimiters).last if has_quotes else window.rfind(b"\n") + 1
    return window[: last or len(window)]


def holds_line_ends(lines: bytes, delimiters: str) -> bool:
    """Whether quotes of whole lines of text hold line ends."""
    return b'"' in lines and _find_ends(np.frombuffer(lines, np.uint8), delimiters).lines < lines.count(b"\n")


def check_text(file: str, sample: bytes) -> None:
    """Raise a DataError if a file is not text in UTF-8, as the first bytes of it show."""
    start = sample[:4096]
    if start.startswith((b"PAR1", b"ARROW1")):
        remedy = "give it its own extension, or pass `format`"
        raise DataError("this is a Parquet or Arrow file, not text", display_name(file), remedy=remedy)
    if b"\0" in start:
        raise not_utf8(file)


def not_utf8(file: str) -> DataError:
    """The error for a file that is not text in UTF-8."""
    remedy = "name its `encoding`, such as latin-1, or its `format`"
    return DataError("this is not text in UTF-8", display_name(file), remedy=remedy)


class Start(NamedTuple):
    """The lines before the header."""

    size: int = 0  # bytes
    separator: str | None = None  # the delimiter that a line such as ``sep=;`` names
    comments: int = 0  # lines


def start_of(window: bytes) -> Start:
    """The lines before the header at the beginning of a text, which is long enough to hold the next two lines."""
    place = len(BYTE_ORDER_MARK) if window.startswith(BYTE_ORDER_MARK) else 0
    separator, comments = None, []
    while end := window.find(b"\n", place) + 1:
        line = window[place:end]
        named = _SEPARATOR.fullmatch(line)
        if named:
            separator = named[1].decode("latin-1")
        elif line.startswith(b"#"):
            comments.append(place)
        elif line.strip(_BLANK + b"\n"):
            break
        place = end
    lines = [line.decode(errors="replace").rstrip("\r") for line in window[place:].split(b"\n", 2)[:2]]
    if comments and _holds_names(window[comments[-1] :].split(b"\n", 1)[0].decode(errors="replace"), lines):
        place = comments.pop()
    return Start(place, separator, len(comments))


def _holds_names(comment: str, lines: list[str]) -> bool:
    """Whether a line that begins with # has the names of the columns, judged by the two lines that follow it."""
    counts = delimiter_counts(comment)
    delimiter = max(counts, key=counts.__getitem__)
    below, second = ([field.strip(' \t"') for field in line.split(delimiter)] for line in [*lines, ""][:2])
    if not lines[0] or len(below) != comment.count(delimiter) + 1:
        return not lines[0]
    numbers = [any(map(is_plain_number, fields)) for fields in (below, second)]
    return numbers[0] or (numbers[1] is False and len(below) > 1 and comment[1:2].isalpha())


def delimiter_counts(header: str) -> dict[str, int]:
    """How often a line has each delimiter, outside quotes."""
    bare = _QUOTED.sub("", header)
    return {delimiter: bare.count(delimiter) for delimiter in DELIMITERS}


def spread_lines(file: str, beginning: bytes, delimiters: str, escaped: bool = False) -> bytes:
    """The first half of a sample of a file, and whole lines from places all over the rest.

    It is the sample itself of a short or compressed file, or where quotes hold line ends: lines begin anywhere there.
    """
    with closing(open_text(file)) as text:
        text.escaped = escaped
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


def line_after(file: str, offset: int, delimiters: str) -> int:
    """Where the first line after a place of a text begins; 0 where none does."""
    with closing(open_text(file)) as text:
        sample = text.peek(SAMPLE).tobytes() if text.size is not None else b""
        if not sample or holds_line_ends(sample[: sample.rfind(b"\n") + 1], delimiters):
            return 0
        text.skip_to(offset)
        start = offset + text.peek(BLOCK_SIZE).tobytes().find(b"\n") + 1
        return start if offset < start < (text.size or 0) else 0


def _chunks(text: ByteStream, begin: Position, block_size: int, delimiters: str, header: bool) -> Iterator[Chunk]:
    if begin.offset:
        text.skip_to(begin.offset)
    elif text.offset:
        text.skip_to(0)  # raises: it has been read
    elif header:
        text.take(_header_of(text, delimiters)[1])
    elif text.peek(len(BYTE_ORDER_MARK)).tobytes() == BYTE_ORDER_MARK:
        text.take(len(BYTE_ORDER_MARK))
    rows = begin.row
    while True:
        ends = _line_ends(text, text.chunk_size or block_size if text.begun else block_size, delimiters)
        data = text.take(ends.last)
        text.begun = True
        if not len(data):
            return
        first, rows = rows + 1, rows + ends.lines
        data.flags.writeable = False
        yield Chunk(data, text.name, first, Position(begin.file, text.offset, rows))


def _header_of(text: ByteStream, delimiters: str) -> tuple[Start, int]:
    """The lines before the header, and the bytes up to the end of its line."""
    size = 1 << 13
    while True:
        window = text.peek(size)
        content = window.tobytes()
        start = start_of(content)
        length = _find_ends(window[start.size :], delimiters).first
        if not length and (len(window) < size or size >= text.longest_line):  # of a quote that is never closed
            length = _find_ends(window[start.size :], "").first
        is_commented = start.comments or content.startswith(b"#", start.size)
        is_judged = not is_commented or content.count(b"\n", start.size) > 2  # by whole lines below the comment
        if (length and is_judged) or len(window) < size:
            return start, start.size + length if length else len(window)
        size = _doubled(size, text)


def _line_ends(text: ByteStream, block_size: int, delimiters: str) -> _LineEnds:
    """The line ends in the next block, which grows until it holds one or is the rest of the text."""
    size, least = block_size, 1
    while True:
        window = text.peek(size, least)
        ends = _find_ends(window, delimiters)
        is_whole = len(window) < size and text.is_at_end(len(window))  # the last line may lack its line end
        if is_whole and not ends.is_open:
            return _LineEnds(ends.first, len(window), ends.lines + (ends.last < len(window)))
        if ends.last:
            return ends
        if (is_whole or size >= text.longest_line) and delimiters and (line := _find_ends(window[:size], "").first):
            return _LineEnds(line, line, 1)
        if is_whole:
            return _LineEnds(0, len(window), 1)
        if len(window) < size:  # a quote of the lines that have come is still open
            least = len(window) + 1
        else:
            size = _doubled(size, text)


def _doubled(size: int, text: ByteStream) -> int:
    """The size of the next window to look for a line end in; too long a line is refused."""
    if size >= text.longest_line:
        remedy = "check that every row ends with a line end, or raise `max_line_bytes`"
        raise DataError(f"a line is longer than {text.longest_line:,} bytes", text.name, remedy=remedy)
    return min(2 * size, text.longest_line)


def _find_ends(window: np.ndarray, delimiters: str) -> _LineEnds:
    """The line ends of a window that begins outside quotes."""
    if delimiters and QUOTE in window:
        quotes = quotes_of(window, delimiters)
        places = np.flatnonzero(window == LINE_END)
        places = places[~quotes.hold(places)]
        first, last = (int(places[0]) + 1, int(places[-1]) + 1) if len(places) else (0, 0)
        return _LineEnds(first, last, len(places), quotes.ends_inside)
    counts = _counts_of_line_ends(window)
    full = [_PIECE * place for place, count in enumerate(counts) if count]
    if not full:
        return _LineEnds(0, 0, 0)
    first = window[full[0] : full[0] + _PIECE].tobytes().find(b"\n")
    last = window[full[-1] : full[-1] + _PIECE].tobytes().rfind(b"\n")
    return _LineEnds(full[0] + first + 1, full[-1] + last + 1, sum(counts))


def count_line_ends(lines: np.ndarray) -> int:
    """How many line ends there are, inside quotes and outside."""
    return sum(_counts_of_line_ends(lines))


def _counts_of_line_ends(window: np.ndarray) -> list[int]:
    """Line ends of pieces that fit into the first-level cache."""
    return [int(np.count_nonzero(window[i : i + _PIECE] == LINE_END)) for i in range(0, len(window), _PIECE)]
