"""Streams of bytes: files and standard input, decompressed and in UTF-8, read once with look-ahead.

Where a block of rows that come slowly begins depends on time, so nothing else may depend on it: the first block, from
which types of columns are inferred, is whole unless they are known before.
"""

from __future__ import annotations

import lzma
import os
import select
import stat
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.stream.files import COMPRESSIONS, LONGEST_LINE
from tunefree.stream.quotes import unescape

MOST_AT_ONCE = 1 << 21  # bytes that are read for a decompressor, or to skip them
_LINE_END = b"\n"
_MAGIC = {
    "gzip": (b"\x1f\x8b",),
    "bz2": tuple(  # the second is of no bytes
        b"BZh%d" % level + start for level in range(1, 10) for start in (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")
    ),
    "zstd": (b"\x28\xb5\x2f\xfd",),
    "lz4": (b"\x04\x22\x4d\x18",),
    "xz": (b"\xfd7zXZ\x00",),
    "zip": (b"PK\x03\x04", b"PK\x05\x06"),
}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class ByteStream:
    """A stream of bytes that is read once, with look-ahead. ``size`` has the bytes of a regular file, in which reading
    can start anywhere, and ``compressed`` is what the stream decompresses, to be closed with it."""

    closed = False

    def __init__(self, stream: Any, name: str, size: int | None = None, compressed: ByteStream | None = None) -> None:
        self.stream, self.name, self.size, self.compressed = stream, name, size, compressed
        self.offset = 0  # bytes taken so far
        self.longest_line = 0  # bytes; whoever opens it says it
        self.chunk_size: int | None = None  # likewise: bytes of each chunk of lines after the first; None for the usual
        self.end: int | None = None  # bytes of the stream that are read; None for all of it
        self.escaped = False  # whether quotes that a backslash precedes are doubled instead
        self.patience: float | None = None  # seconds from the first line on until those that came are used; None: ever
        self.begun = False  # whether the first block was read, which is waited for in any case
        self.is_shared = False  # whether others go on reading when it is closed
        self._ahead = np.empty(0, np.uint8)  # bytes read but not taken
        self._ended = False  # whether there is nothing left to read

    def peek(self, size: int, least: int = 1) -> np.ndarray:
        """The next ``size`` bytes, which stay to be taken; fewer at the end, or ``least`` bytes of lines that came."""
        size = size if self.end is None else min(size, max(self.end - self.offset, 0))
        comes = self.patience is not None and self.begun
        if len(self._ahead) < size and not self._ended:
            with errors_of(self.name):
                self._fill(size, least if comes else size)
                if self.escaped:
                    unescape(self._ahead)
        window = self._ahead[:size]
        if comes and len(window) < size and not self._ended:
            return window[: _end_of_lines(window)]
        return window

    def _fill(self, size: int, least: int) -> None:
        """Read until there are so many bytes, or whole lines of ``least`` bytes and no further ones come."""
        block, filled = np.empty(size, np.uint8), len(self._ahead)
        block[:filled] = self._ahead
        whole, deadline = _end_of_lines(self._ahead) if least < size else 0, None
        while filled < size and not self._ended:
            if whole >= least:
                deadline = deadline or time.monotonic() + (self.patience or 0.0)
                if not _comes(self.stream, deadline - time.monotonic()):
                    break
            count = self.stream.readinto(block.data[filled:]) or 0
            self._ended = not count
            if least < size and (end := _end_of_lines(block[filled : filled + count])):
                whole = filled + end
            filled += count
        self._ahead = block[:filled]

    def is_at_end(self, size: int) -> bool:
        """Whether nothing follows the next ``size`` bytes, as far as :meth:`peek` has looked."""
        if self.end is not None and self.offset + size >= self.end:
            return True
        return self._ended and size >= len(self._ahead)

    def take(self, size: int) -> np.ndarray:
        """The next ``size`` bytes, which :meth:`peek` must have returned before."""
        taken, self._ahead = self._ahead[:size], self._ahead[size:]
        self.offset += len(taken)
        return taken

    def read(self, size: int = -1) -> bytes:
        """The next bytes, as a file gives them (a decompressor reads from here)."""
        block = min(size, MOST_AT_ONCE) if size >= 0 else MOST_AT_ONCE
        self.peek(block)
        return self.take(block).tobytes()

    def skip_to(self, offset: int) -> None:
        """Go on from the byte ``offset``, by a seek in a regular file and else by reading."""
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
        """Close the stream and its source, unless others go on reading the source, as with standard input."""
        if not self.is_shared:
            self.stream.close()
            if self.compressed:
                self.compressed.close()


def _end_of_lines(window: np.ndarray) -> int:
    """Bytes up to and with the last line end; 0 if there is none."""
    return window.tobytes().rfind(_LINE_END) + 1


def _comes(stream: Any, seconds: float) -> bool:
    """Whether there are more bytes, or it has ended, within so many seconds."""
    with suppress(OSError, ValueError):  # what is read is in memory
        return bool(select.select([stream.fileno()], [], [], max(seconds, 0.0))[0])
    return True


@contextmanager
def errors_of(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise DataError("there is no such file", name, remedy="check the path") from None
    except PermissionError:
        raise DataError("reading it is not permitted", name, remedy="change its permissions") from None
    except UnicodeError as error:
        problem = f"this is not text in {getattr(error, 'encoding', 'its encoding')} ({error})"
        raise DataError(problem, name, remedy="name its `encoding`, such as utf-8 or latin-1") from None
    except (EOFError, lzma.LZMAError, pa.ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:  # from the system, not from a decompressor
            raise DataError(f"it cannot be read ({error})", name, remedy="check the file") from None
        raise DataError(f"the compressed data are damaged ({error})", name, remedy="get the file again") from None


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
    """Use lines of standard input, unless it is a file, so many seconds after the first; also of the first block."""
    with suppress(OSError, ValueError, AttributeError):  # what is read is in memory
        if not stat.S_ISREG(os.fstat(_standard_stream().fileno()).st_mode):
            text = standard_input("-", patience if from_the_first else None)
            text.patience = patience if text.compressed is None else None


def open_text(file: str) -> ByteStream:
    """A file, or :func:`standard_input` for ``"-"``, decompressed and in UTF-8."""
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
        problem = f"the name promises {claimed}, the bytes are not"
        raise DataError(problem, raw.name, remedy="rename the file or get it again")
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
        members = [member for member in archive.infolist() if not member.is_dir()]
        members = [member for member in members if not member.filename.startswith("__MACOSX/")]
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
