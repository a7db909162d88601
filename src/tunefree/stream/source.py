"""Sources of rows: files of any format, or a table in memory."""

from __future__ import annotations

import bisect
import codecs
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tunefree.core.errors import DataError, ModelError
from tunefree.core.registry import load
from tunefree.stream import formats, frames, tables
from tunefree.stream.arrays import flattened, to_batch
from tunefree.stream.batch import START, BadRows, Chunk, Position, as_named
from tunefree.stream.files import ESCAPES, LONGEST_LINE, TextFile, display_name, expand, partitions_of
from tunefree.stream.notation import ColumnTypes
from tunefree.stream.tables import Options
from tunefree.stream.text import DELIMITERS, line_after, open_text, plain_size, read_lines

WITHOUT_DELIMITER = ("json", "svmlight", "vw")  # text formats without a delimiter between fields
MOST_LINE_BYTES = 1 << 30  # Arrow's parsers count the bytes of a block in 32 bits
_FIRST_LINE = 1 << 16  # maximum bytes of the first line, by which the format is recognised


def encoder_of(kind: str) -> Any:
    """Return the encoder class for a kind of source. It is imported on demand: the encoder of tables loads slowly."""
    if kind == formats.TABLE:
        return load("tunefree.stream.encoder:TableEncoder")
    if kind not in formats.names():
        raise ModelError(f"the model reads {kind}, and no such format is known; import the module that registers it")
    return load(formats.named(kind).encoder)


@dataclass(frozen=True)
class Source:
    """A source of rows: files of one format ("-" is standard input), or a table in memory.

    ``column_types`` describes how later files write numbers and dates of columns that the model knows. If rows were
    moved, as by a shuffle, ``origin`` maps a file and row number to places in the user's data, and ``known`` is an
    encoder with the columns of the data.
    """

    files: tuple[str, ...]
    format: str | None
    table: Any = None
    delimiter: str | None = None
    column_types: ColumnTypes = ColumnTypes()  # noqa: RUF009 - an immutable tuple
    origin: Callable[[str, int], tuple[str, int]] = as_named
    known: Any = None

    @property
    def kind(self) -> str:
        """The kind of encoder for its chunks: "table", or the name of a text format with a separate encoder."""
        return formats.TABLE if self.format is None else formats.named(self.format).kind

    @property
    def name(self) -> str:
        """The name of the source in messages."""
        return ", ".join(map(display_name, self.files)) if self.files else "the table"

    @property
    def rewindable(self) -> bool:
        """Whether it can be read more than once, unlike a stream such as the rows of a query."""
        return "-" not in self.files and not hasattr(self.table, "__next__")

    def check_rewindable(self, otherwise: str) -> None:
        """Raise a DataError if it cannot be read more than once; ``otherwise`` names an alternative."""
        if not self.rewindable:
            remedy = f"save it to a file{'' if self.files else ' or a table'}, or {otherwise}"
            raise DataError("can be read only once", self.name, remedy=remedy)

    def names_in(self, files: Sequence[str]) -> list[str]:
        """Return the distinct column names of some of its files; for JSON, the names in the first lines."""
        names = dict[str, None]()
        for file in files:
            schema = tables.reader_of(files, str(self.format)).schema(file, Options(self.delimiter))
            names |= dict.fromkeys(flattened(to_batch(schema.empty_table())).schema.names)
        return list(names)

    def chunks(self, start: Position = START, bad: BadRows | None = None, **options: Any) -> Iterator[Any]:
        """Iterate over chunks from a position on, read with :class:`tunefree.stream.tables.Options`."""
        if self.kind != formats.TABLE:
            return read_lines(self.files, start)
        if self.format is None:
            return frames.read_frame(self.table, start, bad=bad, kept=Options(**options).known)
        return tables.read_tables(self.files, self.format, start, bad, delimiter=self.delimiter, **options)

    def sample(self, options: Options) -> Any:
        """Return rows from all over the source, to infer its columns; None if the first chunk is as informative."""
        if self.kind != formats.TABLE or self.format is None:
            return None
        file, options = self.files[0], options._replace(delimiter=self.delimiter)
        rows = tables.reader_of(self.files, self.format).sample(file, options)
        if rows is None:
            return None
        chunk = Chunk(flattened(rows), display_name(file), 1, START)
        return tables.with_partitions(chunk, file, options, BadRows())

    def encoder(self, first: Any, target: str | None, hash_bits: int = 0, **column_options: Any) -> Any:
        """Create an encoder; for a table, with the columns of the first chunk, see ``TableEncoder.infer``."""
        if self.kind == formats.TABLE:
            typed = self.format is None or formats.named(self.format).typed
            return encoder_of(self.kind).infer(first, target, hash_bits=hash_bits, typed=typed, **column_options)
        if any(value for value in column_options.values() if value != ColumnTypes()):
            raise DataError(f"{self.kind} text has no columns to name", self.name, remedy="leave such options out")
        return encoder_of(self.kind)(hash_bits)

    def lengths(self) -> list[int]:
        """Return the lengths of the files, or of the table, in the unit of a position's offset; 0 if unknown."""
        if self.format is None:
            return [_rows_of(self.table)]
        spec = formats.named(self.format)
        length = plain_size if spec.text else load(spec.reader).length
        return [length(file) or 0 for file in self.files]

    def progress(self) -> Callable[[Position], float | None]:
        """Return a function that maps a position to the fraction of the source before it, or to None if unknown."""
        sizes = self.lengths()
        total = sum(sizes)
        if not all(sizes):
            return lambda position: None
        before = [0, *itertools.accumulate(sizes)]
        return lambda position: min(1.0, (before[min(position.file, len(sizes))] + position.offset) / total)

    def places(self, count: int) -> list[Position]:
        """Return up to ``count`` positions spread over the source, the first at its start; none if it is read once."""
        lengths = self.lengths()
        if not self.rewindable or (self.format is None and not lengths[0]):
            return []
        ends, positions = list(itertools.accumulate(lengths)), {START}
        is_text = self.format is not None and formats.named(self.format).text
        for part in range(1, count) if all(lengths) else ():
            goal = ends[-1] * part // count
            index = bisect.bisect_right(ends, goal)
            offset = goal - ends[index] + lengths[index]
            if not is_text:
                positions.add(Position(index, offset, offset))
            elif start := line_after(self.files[index], offset, DELIMITERS if self.format == "csv" else ""):
                positions.add(Position(index, start))
        return sorted(positions)


def open_source(
    data: Any,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    max_line_bytes: int = LONGEST_LINE,
    column_types: ColumnTypes = ColumnTypes(),  # noqa: B008 - an immutable tuple
    is_table: bool = False,
    escape: str | None = None,
) -> Source:
    """Open files or a table in memory as a source of rows.

    Parameters
    ----------
    data : str, path, sequence of them, or a table
        Files, patterns (``*``, ``**``) or directories; "-" is standard input. Or a table: a DataFrame, a dict of
        arrays, a two-dimensional array, or any other input of :func:`tunefree.stream.frames.read_frame`. A source is
        returned unchanged.
    format : str, optional
        One of arrow, csv, json, parquet, svmlight, vw; by default recognised by the extension or the first line.
    delimiter : str, optional
        The delimiter between the fields of a CSV line; guessed by default.
    encoding : str, optional
        The encoding of text, such as cp1252; by default UTF-8, or UTF-16 if the first bytes are its mark.
    max_line_bytes : int, default 64 MiB
        The maximum length of a line of text. A longer line, as in a file without line ends, is an error.
    column_types : ColumnTypes, optional
        The notation of numbers and dates in data to be predicted (``decimal``, ``thousands``, ``na_values``,
        ``date``); inferred by default. For training, the plan has it.
    is_table : bool, default False
        Whether rows are known to have columns, as when a target is named: then text of unknown extension is CSV or
        JSON lines. With a ``delimiter`` it is CSV.
    escape : {"backslash", "quote"}, optional
        The character before a double quote in a quoted CSV value; guessed by default.

    Returns
    -------
    Source

    Raises
    ------
    DataError
        If there is no such file, format or encoding, or the format cannot be determined.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "people.txt"
    ...     _ = path.write_text("1 |f age:39\\n-1 |f age:50\\n")
    ...     open_source(path).format
    'vw'
    """
    if isinstance(data, Source):
        return data
    options = {"format": format, "delimiter": delimiter, "escape": escape, "encoding": encoding}
    passed = [name for name, value in options.items() if value is not None]
    passed += ["max_line_bytes"] if max_line_bytes != LONGEST_LINE else []
    paths = _paths(data)
    if paths is None:
        _refuse(passed, "is for files, and this is a table")
        return Source((), None, data, column_types=column_types)
    if format is not None:
        formats.named(format)
    if not 1 <= max_line_bytes <= MOST_LINE_BYTES:
        raise DataError(f"`max_line_bytes` must lie between 1 and {MOST_LINE_BYTES:,}, not {max_line_bytes:,}")
    if escape is not None and escape not in ESCAPES:
        raise DataError(f"`escape` must be {' or '.join(map(repr, ESCAPES))}, not {escape!r}")
    codec = None if encoding is None else _known_encoding(encoding)
    names = expand(paths)
    files = tuple(
        TextFile(file, encoding=codec, longest_line=max_line_bytes, partitions=partitions, escape=escape)
        for file, partitions in zip(names, partitions_of(names), strict=True)
    )
    delimiter = {r"\t": "\t"}.get(delimiter or "", delimiter)
    spec = formats.named(format) if format else _format_of(files, is_table, delimiter)
    applicable = ["format", "encoding", "max_line_bytes"] if spec.text else ["format"]
    applicable += [] if not spec.text or spec.name in WITHOUT_DELIMITER else ["delimiter", "escape"]
    _refuse([option for option in passed if option not in applicable], f"has no effect on {spec.name} files")
    return Source(files, spec.name, None, delimiter, column_types)


def _refuse(names: list[str], why: str) -> None:
    """Raise a DataError about the first of the parameters that were passed without effect."""
    for name in names:
        raise DataError(f"`{name}` {why}", remedy="leave it out")


def _known_encoding(name: str) -> str:
    try:
        "x".encode(name)  # codecs.lookup alone also accepts codecs of bytes, such as base64
        return codecs.lookup(name).name
    except LookupError:
        remedy = "name one such as cp1252, latin-1, utf-8 or utf-16"
        raise DataError(f"there is no encoding {name!r} of text", remedy=remedy) from None


def _paths(data: Any) -> list[str] | None:
    """Return the paths in the data, or None if it is a table."""
    if isinstance(data, (str, os.PathLike)):
        return [os.fspath(data)]
    if isinstance(data, (list, tuple)) and data and all(isinstance(item, (str, os.PathLike)) for item in data):
        return [os.fspath(item) for item in data]
    return None


def _format_of(files: Sequence[str], is_table: bool, delimiter: str | None) -> formats.Format:
    format = _format_of_first(files[0], is_table, delimiter)
    for file in files[1:]:
        if (formats.by_extension(file) or format) is not format:
            problem = f"{files[0]} is read as {format.name}, and this file has another format"
            raise DataError(problem, file, remedy="give files of one format, or pass `format`")
    return format


def _format_of_first(file: str, is_table: bool, delimiter: str | None) -> formats.Format:
    format = formats.by_extension(file)
    if format is None and not delimiter:
        with closing(open_text(file)) as text:  # peek leaves standard input to be read from its start
            line = bytes(text.peek(_FIRST_LINE)).split(b"\n")[0].decode("utf-8", "replace").strip()
        format = formats.by_line(line)
        if format is not None and is_table and format.kind != formats.TABLE:
            format = None
    if format is None and (delimiter or is_table):
        return formats.named("csv")
    if format is None:
        remedy = f"pass `format`, one of {', '.join(formats.names())}"
        raise DataError("its format cannot be told", file, remedy=remedy)
    return format


def _rows_of(table: Any) -> int:
    """Return the number of rows of a table in memory; 0 for a stream, or if unknown."""
    if isinstance(table, Mapping):
        table = next(iter(table.values()), ())
    can_be_read_again = isinstance(table, Sequence | pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch)
    library = type(table).__module__.split(".")[0]
    # Other objects may be results of a query, which can be read only once.
    return len(table) if can_be_read_again or library in ("numpy", "pandas", "polars") else 0
