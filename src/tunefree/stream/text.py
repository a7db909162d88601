"""Reading of text: decompression, conversion to UTF-8, division into chunks of whole lines, and samples.

If rows arrive slowly, the borders of blocks depend on time, so no result may depend on them. The first block is
therefore complete unless the column types, which are inferred from it, are already known.
"""

from __future__ import annotations

import lzma
import os
import re
import select
import stat
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.core.storage import MARK
from tunefree.stream.batch import START, Chunk, Position
from tunefree.stream.files import COMPRESSIONS, LONGEST_LINE, display_name
from tunefree.stream.notation import is_plain_number
from tunefree.stream.quotes import LINE_END, QUOTE, inside_quotes, unescape

BLOCK_SIZE = 1 << 21  # bytes of a chunk: its fixed costs are negligible, and it fits into the last-level cache
SAMPLE = BLOCK_SIZE  # bytes at the start of a text from which the types of its columns are inferred
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
DELIMITERS = ",;\t|"
_SEPARATOR = re.compile(rb'"?sep=(.)"?\r?\n')  # the first line with which Excel names the delimiter
_BLANK = b" \t\r,;|\"'"  # a line of only these characters has no values
_QUOTED = re.compile(r'(?:^|(?<=[,;\t|]))"[^"]*"')
WINDOWS = 16  # windows spread over a text, which share the second half of the bytes of a sample
MOST_AT_ONCE = 1 << 21  # maximum bytes of one read by a decompressor or for a skip
_MAGIC = {
    "gzip": (b"\x1f\x8b",),
    "bz2": (b"BZh",),
    "zstd": (b"\x28\xb5\x2f\xfd",),
    "lz4": (b"\x04\x22\x4d\x18",),
    "xz": (b"\xfd7zXZ\x00",),
    "zip": (b"PK\x03\x04", b"PK\x05\x06"),
}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class ByteStream:
    """A stream of bytes that is read once, with look-ahead. ``size`` is the size of a regular file, in which reading
    can start anywhere. ``compressed`` is the source of a decompressor or decoder, closed together with the stream."""

    closed = False
    longest_line = LONGEST_LINE
    end: int | None = None  # offset at which reading stops; None for the end of the stream
    escaped = False  # whether a backslash before a quote is replaced by a second quote
    patience: float | None = None  # seconds after the first line until the lines so far are used; None for no limit
    is_shared = False  # whether other readers still use the stream after close

    def __init__(self, stream: Any, name: str, size: int | None = None, compressed: ByteStream | None = None) -> None:
        self.stream, self.name, self.size, self.compressed = stream, name, size, compressed
        self.offset = 0  # bytes taken so far
        self._ahead = np.empty(0, np.uint8)  # bytes read but not taken
        self._ended = False  # whether there is nothing left to read

    def peek(self, size: int, least: int = 1) -> np.ndarray:
        """Look at the next ``size`` bytes; fewer at the end, or ``least`` bytes of whole lines if no more arrive."""
        size = size if self.end is None else min(size, max(self.end - self.offset, 0))
        is_live = self.patience is not None
        if len(self._ahead) < size and not self._ended:
            with errors_of(self.name):
                self._fill(size, least if is_live else size)
                if self.escaped:
                    unescape(self._ahead)
        window = self._ahead[:size]
        if is_live and len(window) < size and not self._ended:
            return window[: _end_of_lines(window)]
        return window

    def _fill(self, size: int, least: int) -> None:
        """Read until ``size`` bytes are there, or whole lines of ``least`` bytes and no more arrive in time."""
        block, filled = np.empty(size, np.uint8), len(self._ahead)
        block[:filled] = self._ahead
        complete, deadline = _end_of_lines(self._ahead) if least < size else 0, None
        while filled < size and not self._ended:
            if complete >= least:
                deadline = deadline or time.monotonic() + (self.patience or 0.0)
                if not _has_input(self.stream, deadline - time.monotonic()):
                    break
            count = self.stream.readinto(block.data[filled:]) or 0
            self._ended = not count
            if least < size and (end := _end_of_lines(block[filled : filled + count])):
                complete = filled + end
            filled += count
        self._ahead = block[:filled]

    def is_at_end(self, size: int) -> bool:
        """Whether nothing follows the next ``size`` bytes, as far as :meth:`peek` has looked."""
        if self.end is not None and self.offset + size >= self.end:
            return True
        return self._ended and size >= len(self._ahead)

    def take(self, size: int) -> np.ndarray:
        """Consume the next ``size`` bytes, which :meth:`peek` must have returned before."""
        taken, self._ahead = self._ahead[:size], self._ahead[size:]
        self.offset += len(taken)
        return taken

    def read(self, size: int = -1) -> bytes:
        """Read up to ``size`` bytes from the current position, as ``read`` of a file; for decompressors."""
        block = min(size, MOST_AT_ONCE) if size >= 0 else MOST_AT_ONCE
        self.peek(block)
        return self.take(block).tobytes()

    def skip_to(self, offset: int) -> None:
        """Move forward to byte ``offset``: by a seek in a regular file, otherwise by reading."""
        if offset < self.offset:
            raise DataError("the stream has been read already", self.name, remedy="save it to a file to read it again")
        if self.size is not None:
            self.offset, self._ahead, self._ended = min(offset, self.size), self._ahead[:0], False
            self.stream.seek(self.offset)
        while self.offset < offset and len(self.peek(min(MOST_AT_ONCE, offset - self.offset))):
            self.take(offset - self.offset)
        if self.offset < offset:
            problem = "the data end before the place to go on from"
            raise DataError(problem, self.name, remedy="resume with the data of the first run")

    def close(self) -> None:
        """Close the stream and its source, unless the source is shared, as standard input is."""
        if not self.is_shared:
            self.stream.close()
            if self.compressed:
                self.compressed.close()


def _end_of_lines(window: np.ndarray) -> int:
    """Return the number of bytes up to and including the last line end; 0 if there is none."""
    return window.tobytes().rfind(b"\n") + 1


def _has_input(stream: Any, seconds: float) -> bool:
    """Whether more bytes, or the end, arrive in the next ``seconds`` seconds."""
    with suppress(OSError, ValueError):  # a stream in memory has no file number
        return bool(select.select([stream.fileno()], [], [], max(seconds, 0.0))[0])
    return True


@contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Convert errors of reading to DataError."""
    try:
        yield
    except UnicodeError as error:
        problem = f"this is not text in {getattr(error, 'encoding', 'its encoding')} ({error})"
        raise DataError(problem, name, remedy="name its `encoding`, such as utf-8 or cp1252") from None
    except (EOFError, lzma.LZMAError, pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:  # raised by the system, not by a decompressor
            remedy = "check the file and its permissions"
            raise DataError(f"it cannot be read ({error})", name, remedy=remedy) from None
        raise DataError(f"the compressed data are damaged ({error})", name, remedy="get the file again") from None


def open_text(file: str) -> ByteStream:
    """Open a file, or standard input for ``"-"``, as a stream of decompressed UTF-8 text."""
    if file == "-":
        text = _standard_text(file)
    else:
        with errors_of(file):
            status = os.stat(file)
            size = status.st_size if stat.S_ISREG(status.st_mode) else None
            raw = ByteStream(open(file, "rb", buffering=0), file, size)  # noqa: SIM115 - closed by ByteStream.close
            try:
                text = _decoded(raw, file)
            except DataError:
                raw.close()
                raise
    text.longest_line = getattr(file, "longest_line", LONGEST_LINE)
    return text


def plain_size(file: str) -> int | None:
    """Return the size of a file in bytes if it is plain UTF-8 text, in which reading can begin anywhere; else None."""
    if file == "-":
        return None
    with closing(open_text(file)) as text:
        return text.size


def use_lines_as_they_come(patience: float) -> None:
    """From now on use the lines of standard input ``patience`` seconds after the first arrives, unless it is a file."""
    with suppress(OSError, ValueError, AttributeError):  # a stream in memory has no file number
        if not stat.S_ISREG(os.fstat(_standard_stream().fileno()).st_mode):
            text = _standard_text("-", patience)
            text.patience = patience if text.compressed is None else None


_standard_input: dict[Any, ByteStream] = {}  # the raw stream of standard input and its decoded text, once opened


def _standard_text(name: str, patience: float | None = None) -> ByteStream:
    """Standard input as text. It is opened once and shared, so that the bytes in the look-ahead buffer are kept."""
    stream = _standard_stream()
    if stream not in _standard_input:
        _standard_input.clear()
        raw = ByteStream(stream, "standard input")
        raw.patience = patience
        _standard_input[stream] = _decoded(raw, name)
        _standard_input[stream].is_shared = True
    return _standard_input[stream]


def _standard_stream() -> Any:
    """Standard input without Python's buffer, whose lock would block the exit of the program while a thread waits."""
    buffer = getattr(sys.stdin, "buffer", None)
    return getattr(buffer, "raw", buffer)


def _decoded(raw: ByteStream, file: str) -> ByteStream:
    """Return a stream of UTF-8 text: the decompressed bytes themselves, or a transcoder of them."""
    text, encoding = _decompressed(raw, file), getattr(file, "encoding", None)
    if encoding is None and text.peek(2).tobytes() in _UTF_16:
        encoding = "utf-16"
    if encoding is None:
        return text
    decoded = pa.transcoding_input_stream(pa.PythonFile(text, mode="r"), encoding, "utf-8")
    return ByteStream(decoded, text.name, compressed=text)


def _decompressed(raw: ByteStream, file: str) -> ByteStream:
    start = raw.peek(10).tobytes()
    claimed = COMPRESSIONS.get(os.path.splitext(file)[1].lower())
    detected = next((method for method, magic in _MAGIC.items() if start.startswith(magic)), None)
    method = claimed if claimed == "brotli" else detected  # only Brotli has no magic bytes
    if not method or not start:
        return raw
    if method == "zip":
        stream = _only_member(raw, file)
    elif method == "xz":
        stream = lzma.LZMAFile(raw)  # type: ignore[arg-type]  # noqa: SIM115 - closed by ByteStream.close
    else:
        stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), method)
    return ByteStream(stream, raw.name, compressed=raw)


def _only_member(raw: ByteStream, file: str) -> Any:
    """Open the only file of a zip archive."""
    if raw.size is None:
        raise DataError("a zip archive cannot be read from a pipe", raw.name, remedy="save it to a file")
    try:
        archive = zipfile.ZipFile(file)
        members = [name for name in archive.namelist() if not name.endswith("/") and not name.startswith("__MACOSX/")]
        if len(members) == 1:
            return archive.open(members[0])
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # damaged, encrypted, an unknown method
        raise DataError(f"the zip archive cannot be read ({error})", raw.name, remedy="unpack it") from None
    remedy = "unpack it and name the files in it (save a sheet of Excel as CSV)"
    raise DataError(f"the zip archive has {len(members)} files, not one", raw.name, remedy=remedy)


def read_lines(
    files: Sequence[str],
    start: Position = START,
    block_size: int = BLOCK_SIZE,
    delimiters: str = "",
    escaped: bool = False,
) -> Iterator[Chunk]:
    """Read texts as chunks of whole lines, from a position on. A chunk's ``position`` is the start of the next chunk.

    A chunk has about ``block_size`` bytes; a longer line becomes a separate chunk. With ``delimiters``, line ends
    between double quotes do not end a line, and a quote that is never closed extends to the end of its line only. With
    ``escaped``, a backslash before a quote is replaced by a second quote.
    """
    for index, file in enumerate(files[start.file :], start.file):
        begin = start if index == start.file else Position(index)
        with closing(open_text(file)) as text:
            text.end, text.escaped = getattr(file, "end", None), escaped
            if begin.offset or text.offset:
                text.skip_to(begin.offset)
            elif text.peek(len(BYTE_ORDER_MARK)).tobytes() == BYTE_ORDER_MARK:
                text.take(len(BYTE_ORDER_MARK))
            rows, next_size = begin.row, block_size
            while True:
                size, lines = _block(text, next_size, delimiters)
                if not size:
                    break
                data, next_size = text.take(size), min(getattr(file, "chunk_size", None) or block_size, block_size)
                data.flags.writeable = False
                rows += lines
                yield Chunk(data, text.name, rows - lines + 1, Position(index, text.offset, rows))


def _block(text: ByteStream, size: int, delimiters: str) -> tuple[int, int]:
    """Numbers of bytes and lines of the next block, which grows until it has a line end or reaches the text's end."""
    least = 1
    while True:
        window = text.peek(size, least)
        ends, is_open = _line_ends(window, delimiters)
        is_rest = len(window) < size and text.is_at_end(len(window))
        if is_rest and not is_open:  # the last line may lack its line end
            return len(window), len(ends) + (window[-1:].tobytes() not in (b"", b"\n"))
        if len(ends):
            return int(ends[-1]), len(ends)
        is_longest = size >= text.longest_line
        if (is_rest or is_longest) and delimiters and len(plain := _line_ends(window, "")[0]):
            return int(plain[0]), 1  # the quote is never closed
        if is_rest:
            return len(window), 1
        if len(window) < size:  # a quote is open at the end of the lines that have arrived
            least = len(window) + 1
        elif is_longest:
            raise _too_long(text)
        else:
            size = min(2 * size, text.longest_line)


def _too_long(text: ByteStream) -> DataError:
    remedy = "check that every row ends with a line end, or raise `max_line_bytes`"
    return DataError(f"a line is longer than {text.longest_line:,} bytes", text.name, remedy=remedy)


def _line_ends(window: np.ndarray | bytes, delimiters: str) -> tuple[np.ndarray, bool]:
    """Offsets after the line ends outside quotes of a text that begins outside quotes, and whether it ends inside."""
    window = np.frombuffer(window, np.uint8)
    offsets, is_open = np.flatnonzero(window == LINE_END), False
    if delimiters and QUOTE in window:
        inside = inside_quotes(window, delimiters)
        offsets, is_open = offsets[~inside[offsets]], bool(inside[-1])
    return offsets + 1, is_open


class Beginning(NamedTuple):
    """The beginning of a text."""

    header: bytes = b""  # first line that is not blank, a comment or a ``sep=`` line; without its line end
    end: int = 0  # offset of the line after the header
    sample: bytes = b""  # the first two mebibytes, from the header on
    separator: str | None = None  # the delimiter named by a line such as ``sep=;``
    comments: int = 0  # comment lines before the header

    @property
    def below(self) -> bytes:
        """The part of the sample after the header line."""
        start = self.sample.find(b"\n", len(self.header)) + 1  # the header may contain line ends inside quotes
        return self.sample[start:] if start else b""


def read_beginning(file: str, delimiters: str = "") -> Beginning:
    """Read the beginning of a text; standard input can still be read from its start afterwards."""
    with closing(open_text(file)) as text:
        text.skip_to(0)
        for size in (SAMPLE, text.longest_line):
            window = text.peek(size).tobytes()
            beginning = _beginning(window, delimiters)
            if beginning.end or len(window) < min(size, text.longest_line):
                return beginning._replace(end=beginning.end or len(window))
        raise _too_long(text)


def _beginning(window: bytes, delimiters: str) -> Beginning:
    """Parse the first bytes of a text; ``end`` is 0 if they end within the header."""
    start = len(BYTE_ORDER_MARK) if window.startswith(BYTE_ORDER_MARK) else 0
    separator, comments = None, []
    while end := window.find(b"\n", start) + 1:
        line = window[start:end]
        if separator_line := _SEPARATOR.fullmatch(line):
            separator = separator_line[1].decode("latin-1")
        elif line.startswith(b"#"):
            comments.append(start)
        elif line.strip(_BLANK + b"\n"):
            break
        start = end
    if comments:
        lines = [line.decode(errors="replace").rstrip("\r") for line in window[start:].split(b"\n", 2)[:2]]
        if _holds_names(window[comments[-1] :].split(b"\n", 1)[0].decode(errors="replace"), lines):
            start = comments.pop()
    end = window.find(b"\n", start) + 1
    if b'"' in window[start:end]:  # quotes of the header may contain line ends, unless one is never closed
        ends = (_line_ends(text, delimiters)[0][:1].sum() for text in (window[start:end], window[start:]))
        end = next((start + int(length) for length in ends if length), end)
    header = window[start : end or len(window)].rstrip(b"\r\n")
    return Beginning(header, end, window[start:SAMPLE], separator, len(comments))


def read_sample(file: str) -> bytes:
    """Look at the first two mebibytes of a text, without a byte-order mark; standard input is not consumed."""
    with closing(open_text(file)) as text:
        text.skip_to(0)
        return text.peek(SAMPLE).tobytes().removeprefix(BYTE_ORDER_MARK)


def whole_lines(window: bytes, delimiters: str = "") -> bytes:
    """Cut a sample of text after its last line end outside quotes; keep all of it if it has none or is short."""
    if len(window) < SAMPLE // 2:
        return window
    last = _line_ends(window, delimiters)[0][-1:].sum() if delimiters and b'"' in window else window.rfind(b"\n") + 1
    return window[: last or len(window)]


def holds_line_ends(lines: bytes, delimiters: str) -> bool:
    """Whether quoted values in whole lines of text contain line ends."""
    return b'"' in lines and len(_line_ends(lines, delimiters)[0]) < lines.count(b"\n")


def check_text(file: str, sample: bytes) -> None:
    """Raise a DataError if the first bytes of a file are not UTF-8 text."""
    start = sample[:4096]
    if start.startswith((b"PAR1", b"ARROW1")):
        remedy = "save it to a file" if file == "-" else "give it its own extension, or pass `format`"
        raise DataError("this is a Parquet or Arrow file, not text", display_name(file), remedy=remedy)
    if start.startswith(MARK) and b"\0" in start:
        remedy = "name a model before the data, or as `earlier`"
        raise DataError("this is a model, not data", display_name(file), remedy=remedy)
    if b"\0" in start:
        raise not_utf8(file)


def not_utf8(file: str) -> DataError:
    """The error for a file that is not text in UTF-8."""
    remedy = "name its `encoding`, such as cp1252, or its `format`"
    return DataError("this is not text in UTF-8", display_name(file), remedy=remedy)


def _holds_names(comment: str, lines: list[str]) -> bool:
    """Whether a line that begins with # contains the column names, judged by the next two lines."""
    counts = delimiter_counts(comment)
    delimiter = max(counts, key=counts.__getitem__)
    below, second = ([field.strip(' \t"') for field in line.split(delimiter)] for line in [*lines, ""][:2])
    if not lines[0] or len(below) != comment.count(delimiter) + 1:
        return not lines[0]
    numbers = [any(map(is_plain_number, fields)) for fields in (below, second)]
    return numbers[0] or (numbers[1] is False and len(below) > 1 and comment[1:2].isalpha())


def delimiter_counts(header: str) -> dict[str, int]:
    """Count each delimiter in a line, outside quotes."""
    bare = _QUOTED.sub("", header)
    return {delimiter: bare.count(delimiter) for delimiter in DELIMITERS}


def spread_lines(file: str, beginning: bytes, delimiters: str, escaped: bool = False) -> bytes:
    """Return the first half of a sample of a file, and whole lines from windows spread over the rest of the file.

    Return the sample itself for a short or compressed file, and if quotes contain line ends, which hide line starts.
    """
    with closing(open_text(file)) as text:
        text.escaped = escaped
        size, width, start = text.size or 0, SAMPLE // 2 // WINDOWS, SAMPLE - SAMPLE // 2
        if size <= SAMPLE or holds_line_ends(beginning, delimiters):
            return beginning
        pieces = [beginning[: beginning.rfind(b"\n", 0, start) + 1]]
        for index in range(WINDOWS):
            text.skip_to(start + (size - start - width) * index // (WINDOWS - 1))
            window = text.peek(width).tobytes()
            lines = window[window.find(b"\n") + 1 : window.rfind(b"\n") + 1]
            pieces.append(b"" if holds_line_ends(lines, delimiters) else lines)
        return b"".join(pieces)


def line_after(file: str, offset: int, delimiters: str) -> int:
    """Return the offset at which the first line after ``offset`` begins; 0 if there is none."""
    with closing(open_text(file)) as text:
        sample = text.peek(SAMPLE).tobytes() if text.size is not None else b""
        if not sample or holds_line_ends(sample[: sample.rfind(b"\n") + 1], delimiters):
            return 0
        text.skip_to(offset)
        start = offset + text.peek(BLOCK_SIZE).tobytes().find(b"\n") + 1
        return start if offset < start < (text.size or 0) else 0


def count_line_ends(lines: np.ndarray) -> int:
    """Count line ends, inside and outside quotes."""
    return int(np.count_nonzero(lines == LINE_END))
