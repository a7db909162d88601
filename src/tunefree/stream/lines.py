"""Text from files and standard input, decompressed as it is read and cut into chunks of whole lines."""

from __future__ import annotations

import lzma
import os
import stat
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.stream.batch import Lines, Position
from tunefree.stream.beginnings import BYTE_ORDER_MARK, Start, start_of
from tunefree.stream.byte_stream import ByteStream, errors_of
from tunefree.stream.files import COMPRESSIONS, LONGEST_LINE, display_name
from tunefree.stream.quotes import LINE_END, QUOTE, quotes_of

BLOCK_SIZE = 1 << 21  # bytes of a chunk: its fixed costs are negligible, and it fits into the last-level cache
SAMPLE = BLOCK_SIZE  # bytes at the start of a text from which the types of its columns are inferred
_PIECE = 1 << 16
_MAGIC = {
    "gzip": (b"\x1f\x8b",),
    "bz2": tuple(b"BZh%d" % level + b"1AY&SY" for level in range(1, 10))
    + tuple(b"BZh%d" % level + b"\x17\x72\x45\x38\x50\x90" for level in range(1, 10)),  # of no bytes
    "zstd": (b"\x28\xb5\x2f\xfd",),
    "lz4": (b"\x04\x22\x4d\x18",),
    "xz": (b"\xfd7zXZ\x00",),
    "zip": (b"PK\x03\x04", b"PK\x05\x06"),
}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


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
) -> Iterator[Lines]:
    """Read texts as chunks of whole lines.

    Parameters
    ----------
    files : sequence of str
        Local paths, or ``"-"`` for standard input. Compressed texts (gzip, bzip2, Zstandard, LZ4, xz; Brotli by its
        extension ``.br``) are decompressed as they are read.
    start : Position, default=Position()
        Where to begin: a chunk's ``position`` gives the chunks that follow it, and no others.
    block_size : int, default=2 MiB
        Bytes a chunk aims at; a line that is longer gets a chunk of its own, up to 64 MiB or as the file's
        :class:`tunefree.stream.files.TextFile` says.
    delimiters : str, default=""
        Of CSV, in which line ends between double quotes do not end a line (:mod:`tunefree.stream.quotes`). A quote that
        is never closed, or not within the longest line, holds its own line only.
    header : bool, default=False
        The first line of each file is not a row and is left out; :func:`read_beginning` returns it.
    escaped : bool, default=False
        Quotes that a backslash precedes belong to values, and are doubled instead.

    Yields
    ------
    Lines
        Rows are lines counted from 1, blank ones included and the header excluded. A byte-order mark is left out.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     _ = path.write_text("x,y\\n1,2\\n3,4\\n")
    ...     for chunk in read_lines([str(path)], block_size=4, header=True):
    ...         print(chunk.row, bytes(chunk.data), chunk.position)
    1 b'1,2\\n' Position(file=0, offset=8, row=1)
    2 b'3,4\\n' Position(file=0, offset=12, row=2)
    """
    for number in range(start.file, len(files)):
        begin = start if number == start.file else Position(number)
        text = open_text(files[number])
        text.end, text.escaped = getattr(files[number], "end", None), escaped
        try:
            yield from _chunks(text, begin, block_size, delimiters, header)
        finally:
            text.close()


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
    """How a text begins; standard input can still be read from its start afterwards.

    Parameters
    ----------
    file : str
    delimiters : str, default=""
        Of CSV, in which line ends between double quotes do not end the header.
    """
    text = open_text(file)
    try:
        if text.offset:
            return Beginning(b"", Start(), b"")
        window = text.peek(SAMPLE).tobytes()
        start, end = _header_of(text, delimiters)
        header = text.peek(end).tobytes()[start.size :].rstrip(b"\r\n")
    finally:
        text.close()
    return Beginning(header, start, window[start.size :])


def read_sample(file: str) -> bytes:
    """The first two mebibytes of a text, without a byte-order mark; standard input can still be read from its start."""
    text = open_text(file)
    try:
        window = text.peek(SAMPLE).tobytes() if text.offset == 0 else b""
    finally:
        text.close()
    return window.removeprefix(BYTE_ORDER_MARK)


def whole_lines(window: bytes, delimiters: str = "") -> bytes:
    """A sample of text up to its last line end (outside quotes); all of it where it has none, or the text ends sooner.

    Examples
    --------
    >>> sample = b"name\\n" + b"cook\\n" * SAMPLE
    >>> len(whole_lines(sample[:SAMPLE])) < SAMPLE, whole_lines(b"half a li")
    (True, b'half a li')
    """
    if len(window) < SAMPLE // 2:
        return window
    has_quotes = delimiters and b'"' in window
    last = _find_ends(np.frombuffer(window, np.uint8), delimiters).last if has_quotes else window.rfind(b"\n") + 1
    return window[: last or len(window)]


def holds_line_ends(lines: bytes, delimiters: str) -> bool:
    """Whether quotes of whole lines of text hold line ends.

    Examples
    --------
    >>> holds_line_ends(b'1,"a, b"\\n3.5" disk\\n', ","), holds_line_ends(b'1,"a\\nb"\\n', ",")
    (False, True)
    """
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


def standard_input(name: str = "-", patience: float | None = None) -> ByteStream:
    """Standard input as text. It is opened once and shared, so that bytes looked ahead at are not lost."""
    stream = _standard_stream()
    if stream not in _standard_input:
        _standard_input.clear()
        raw = ByteStream(stream, "standard input")
        raw.patience, raw.begun = patience, patience is not None
        _standard_input[stream] = _decoded(_decompressed(raw, "-"), name)
        _standard_input[stream].is_shared = True
    return _standard_input[stream]


def use_lines_as_they_come(patience: float, from_the_first: bool = False) -> None:
    """Use lines of standard input as they come, unless it is a file; blocks of compressed text are waited for.

    Parameters
    ----------
    patience : float
        Seconds from the first line on until those that have come are used, though they do not fill a block.
    from_the_first : bool, default False
        Whether the first block, from which types of columns are inferred, is not waited for either.
    """
    with suppress(OSError, ValueError, AttributeError):  # what is read is in memory
        if not stat.S_ISREG(os.fstat(_standard_stream().fileno()).st_mode):
            text = standard_input("-", patience if from_the_first else None)
            text.patience = patience if text.compressed is None else None


def open_text(file: str) -> ByteStream:
    """Open a file, or :func:`standard_input` for ``"-"``, decompress it, and turn it into UTF-8.

    UTF-16 is told by its byte-order mark; :class:`tunefree.stream.files.TextFile` names other encodings.
    """
    text = standard_input(file) if file == "-" else _opened(file)
    text.longest_line, text.chunk_size = getattr(file, "longest_line", LONGEST_LINE), getattr(file, "chunk_size", None)
    return text


def _opened(file: str) -> ByteStream:
    with errors_of(file):
        status = os.stat(file)
        if stat.S_ISDIR(status.st_mode):
            raise DataError("is a directory", file, remedy="name the files in it")
        size = status.st_size if stat.S_ISREG(status.st_mode) else None
        raw = ByteStream(open(file, "rb", buffering=0), file, size)  # noqa: SIM115 - closed by ByteStream.close
        try:
            return _decoded(_decompressed(raw, file), file)
        except DataError:
            raw.close()
            raise


_standard_input: dict[Any, ByteStream] = {}  # standard input and its text, once it is opened


def _standard_stream() -> Any:
    """Standard input without Python's buffer: a thread that waits for it must hold no lock as the program ends."""
    buffer = getattr(sys.stdin, "buffer", None)
    return getattr(buffer, "raw", buffer)


def _decompressed(raw: ByteStream, file: str) -> ByteStream:
    start = raw.peek(10).tobytes()
    claimed = COMPRESSIONS.get(os.path.splitext(file)[1].lower())
    method_of_bytes = next((method for method, magic in _MAGIC.items() if start.startswith(magic)), None)
    method = claimed if claimed == "brotli" else method_of_bytes
    if claimed and claimed != method and start:
        raise DataError(
            f"the name promises {claimed}, the bytes are not", raw.name, remedy="rename the file or get it again"
        )
    if not method or not start:
        return raw
    if method == "zip":
        return _only_member(raw, file)
    if method == "xz":
        return ByteStream(lzma.LZMAFile(raw), raw.name, compressed=raw)  # type: ignore[arg-type]
    return ByteStream(pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), method), raw.name, compressed=raw)


def _only_member(raw: ByteStream, file: str) -> ByteStream:
    """The only file of a zip archive."""
    if raw.size is None:
        raise DataError("a zip archive cannot be read from a pipe", raw.name, remedy="save it to a file")
    try:
        archive = zipfile.ZipFile(file)
        members = [
            member
            for member in archive.infolist()
            if not member.is_dir() and not member.filename.startswith("__MACOSX/")
        ]
        if len(members) != 1:
            remedy = "unpack it and name the files in it (save a sheet of Excel as CSV)"
            raise DataError(f"the zip archive has {len(members)} files, not one", raw.name, remedy=remedy)
        return ByteStream(archive.open(members[0]), raw.name, compressed=raw)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # damaged, encrypted, an unknown method
        raise DataError(f"the zip archive cannot be read ({error})", raw.name, remedy="unpack it") from None


def _decoded(text: ByteStream, file: str) -> ByteStream:
    """A text in UTF-8: itself, or turned into it."""
    encoding = getattr(file, "encoding", None)
    if encoding is None and text.peek(2).tobytes() in _UTF_16:
        encoding = "utf-16"
    if encoding is None:
        return text
    return ByteStream(
        pa.transcoding_input_stream(pa.PythonFile(text, mode="r"), encoding, "utf-8"), text.name, compressed=text
    )


def _chunks(text: ByteStream, begin: Position, block_size: int, delimiters: str, header: bool) -> Iterator[Lines]:
    if begin.offset:
        text.skip_to(begin.offset)
    elif text.offset:
        text.skip_to(0)  # raises: it has been read
    else:
        _drop_start(text, delimiters, header)
    rows = begin.row
    while True:
        ends = _line_ends(text, text.chunk_size or block_size if text.begun else block_size, delimiters)
        data = text.take(ends.last)
        text.begun = True
        if not len(data):
            return
        first, rows = rows + 1, rows + ends.lines
        data.flags.writeable = False
        yield Lines(data, text.name, first, Position(begin.file, text.offset, rows))


def _drop_start(text: ByteStream, delimiters: str, header: bool) -> None:
    if header:
        text.take(_header_of(text, delimiters)[1])
    elif text.peek(len(BYTE_ORDER_MARK)).tobytes() == BYTE_ORDER_MARK:
        text.take(len(BYTE_ORDER_MARK))


def _header_of(text: ByteStream, delimiters: str) -> tuple[Start, int]:
    """What comes before the header, and the bytes up to the end of its line."""
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
        raise DataError(
            f"a line is longer than {text.longest_line:,} bytes",
            text.name,
            remedy="check that every row ends with a line end, or raise `max_line_bytes`",
        )
    return min(2 * size, text.longest_line)


def _find_ends(window: np.ndarray, delimiters: str) -> _LineEnds:
    """The line ends of a window that begins outside quotes."""
    if delimiters and QUOTE in window:
        quotes = quotes_of(window, delimiters)
        places = np.concatenate([i + np.flatnonzero(part) for i, part in _matches(window, LINE_END)])
        places = places[~quotes.hold(places)]
        ends = (int(places[0]) + 1, int(places[-1]) + 1, len(places)) if len(places) else (0, 0, 0)
        return _LineEnds(*ends, quotes.ends_inside)
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
    return [int(np.count_nonzero(part)) for _, part in _matches(window, LINE_END)]


def _matches(window: np.ndarray, byte: int) -> Iterator[tuple[int, np.ndarray]]:
    """Where a window holds a byte, in pieces that fit into the first-level cache: (start, mask)."""
    for i in range(0, max(len(window), 1), _PIECE):
        yield i, window[i : i + _PIECE] == byte
