"""One face for every kind of data: a source of chunks, and the encoder that turns them into batches."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunefree.core.errors import DataError
from tunefree.stream.batch import BadRows, Position
from tunefree.stream.files import COMPRESSIONS, expand, format_of
from tunefree.stream.lines import open_text, read_lines

_ENCODERS = {"table": "features.TableEncoder", "svmlight": "svmlight.SvmlightEncoder", "vw": "vw.VWEncoder"}
TABLES = ("csv", "json", "parquet", "arrow")
FORMATS = (*TABLES, "svmlight", "vw")
_EXTENSIONS = {".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".vw": "vw"}


def encoder_of(kind: str) -> Any:
    """The encoder class of a kind of source. Only the one in use is loaded: the readers of tables take a while."""
    module, name = _ENCODERS[kind].split(".")
    return getattr(importlib.import_module(f"tunefree.stream.{module}"), name)


@dataclass(frozen=True)
class Source:
    """Where rows come from: files of one format, or a table in memory.

    Examples
    --------
    >>> source = open_source({"age": [39, 50], "rich": ["no", "yes"]})
    >>> source.kind, [chunk.table.num_rows for chunk in source.chunks()]
    ('table', [2])
    """

    files: tuple[str, ...]
    format: str | None  # None for a table in memory
    table: Any = None
    delimiter: str | None = None

    @property
    def kind(self) -> str:
        """The kind of encoder that its chunks are for."""
        return "table" if self.format is None or self.format in TABLES else self.format

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return ", ".join(self.files) if self.files else "the table"

    @property
    def rewindable(self) -> bool:
        """Whether it can be read more than once."""
        return "-" not in self.files

    def chunks(
        self,
        start: Position = Position(),  # noqa: B008 - an immutable tuple
        bad: BadRows | None = None,
        types: dict[str, Any] | None = None,
    ) -> Iterator[Any]:
        """Chunks from a position on; ``types`` are those of columns known before."""
        if self.kind == "table":
            from tunefree.stream import arrow, frames
        if self.format is None:
            return frames.read_frame(self.table, start)
        if self.format in TABLES:
            return arrow.read_tables(self.files, self.format, start, bad, types, self.delimiter)
        return read_lines(self.files, start)

    def encoder(
        self,
        first: Any,
        target: str | None,
        weight: str | None = None,
        ignore: Iterable[str] = (),
        text: Iterable[str] | None = None,
        hash_bits: int = 0,
    ) -> Any:
        """A new encoder, made to measure for the first chunk."""
        if self.kind == "table":
            return encoder_of(self.kind).infer(first, target, weight, ignore, text, hash_bits)
        if weight or text or list(ignore):
            raise DataError(f"{self.kind} text has no columns to name", self.name, remedy="leave such options out")
        return encoder_of(self.kind)(hash_bits)

    def progress(self) -> Callable[[Position], float | None]:
        """A function from a position to the share of the source that lies before it; None where that is unknown."""
        try:
            sizes = [_size(file, self.format) for file in self.files]
        except OSError:
            sizes = []
        total = sum(sizes)
        if not sizes or not all(sizes):
            return lambda position: None
        before = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
        return lambda position: min(1.0, (before[min(position.file, len(sizes))] + position.offset) / total)


def open_source(
    data: Any, format: str | None = None, delimiter: str | None = None, ask: Sequence[str] = FORMATS
) -> Source:
    """A source over files (paths, patterns, directories; "-" is standard input) or a table in memory.

    Parameters
    ----------
    data : str, path, sequence of them, or a table
    format : str, optional
        One of csv, json, parquet, arrow, svmlight, vw; by default known by the names, or by a look at the text.
    delimiter : str, optional
        Between the fields of a CSV line; guessed if None.

    Raises
    ------
    DataError
        If there is no such file, or its format cannot be told.
    """
    paths = _paths(data)
    if paths is None:
        return Source((), None, data)
    if format is not None and format not in ask:
        raise DataError(f"there is no format {format!r}", remedy=f"choose one of {', '.join(ask)}")
    files = tuple(expand(paths))
    return Source(files, format or _format_of(files[0]), None, delimiter)


def _paths(data: Any) -> list[str] | None:
    """The paths that data names, or None if it is a table."""
    if isinstance(data, (str, os.PathLike)):
        return [os.fspath(data)]
    if isinstance(data, (list, tuple)) and data and all(isinstance(item, (str, os.PathLike)) for item in data):
        return [os.fspath(item) for item in data]
    return None


def _format_of(file: str) -> str:
    suffixes = [suffix for suffix in Path(file).suffixes if suffix.lower() not in COMPRESSIONS]
    known = _EXTENSIONS.get(suffixes[-1].lower()) if suffixes else None
    if known or (file != "-" and format_of(file)):
        return known or str(format_of(file))
    text = open_text(file)
    try:
        line = bytes(text.peek(1 << 16)).split(b"\n")[0].decode("utf-8", "replace").strip()
    finally:
        text.close()
    return _format_of_line(line, file)


def _format_of_line(line: str, file: str) -> str:
    words = line.split()
    if line.startswith("{"):
        return "json"
    if len(words) > 1 and all(":" in word for word in words[1:] if not word.startswith("#")) and "," not in words[0]:
        return "svmlight"
    if any(word.startswith("|") for word in words):
        return "vw"
    if any(mark in line for mark in ",;\t") or len(words) == 1:
        return "csv"
    raise DataError("its format cannot be told", file, remedy=f"pass --format, one of {', '.join(FORMATS)}")


def _size(file: str, format: str | None) -> int:
    """Length in the units of a position's offset: rows of a columnar file, bytes of a text; 0 if it takes reading."""
    if format == "parquet":
        from pyarrow import parquet

        return int(parquet.read_metadata(file).num_rows)
    if format == "arrow" or file == "-" or Path(file).suffix.lower() in COMPRESSIONS:
        return 0
    return os.stat(file).st_size
