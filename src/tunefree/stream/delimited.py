"""Delimited text (CSV, TSV) as chunks of a table, parsed by Arrow block by block."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from tunefree.core.errors import DataError
from tunefree.stream.arrays import of_booleans, of_strings
from tunefree.stream.batch import BadRows, Columns, Lines, Position
from tunefree.stream.columns import MISSING, Fault, Faults, cast, with_row_numbers
from tunefree.stream.lines import open_text, read_header, read_lines

NULLS = tuple(
    space + word
    for word in (*MISSING, "NA", "N/A", "n/a", "#N/A", "NAN", "null", "NULL", "Null", "None", "-nan", "-NaN", "<NA>")
    for space in ("", " ")
)
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
_DELIMITERS = ",;\t|"
_BLOCK_SIZE = 1 << 21
_SAMPLE = 1 << 20  # bytes at the start of the first file from which the types of columns are found
_EXAMPLES = {pa.float64(): "a number", pa.bool_(): "true or false", pa.string(): "text in UTF-8"}


class Options(NamedTuple):
    """How to read a table."""

    delimiter: str | None = None  # between the fields of a line; guessed from the header if None
    types: dict[str, Any] = {}  # noqa: RUF012 - of columns known before; the others' are found in the first file
    chunk_rows: int | None = None  # of columnar files
    block_size: int = _BLOCK_SIZE  # bytes of text


class Header(NamedTuple):
    """Names of the columns of one file, in its order, and what lies between its fields."""

    names: list[str]
    delimiter: str


def csv_schema(file: str, options: Options) -> Any:
    """Names and types of the columns: numbers, booleans and strings; a column of nulls only is taken for strings."""
    header = csv_header(file, options)
    window = sample(file)
    start = window.find(b"\n", len(read_header(file, quoted=True))) + 1  # the header may hold line ends
    body = whole_lines(window[start:] if start else b"")
    found = {}
    if body:
        unfit: list[int] = []
        try:
            found = {field.name: field.type for field in _parse(body, header, {}, unfit).schema}
        except pa.ArrowInvalid as error:
            raise _garbage(file, error) from None
    types = {name: options.types.get(name, _widened(found.get(name, pa.string()))) for name in header.names}
    return pa.schema(list(types.items()))


def csv_chunks(
    file: str, number: int, begin: Position, schema: Any, options: Options, bad: BadRows
) -> Iterator[Columns]:
    """The chunks of one file."""
    header = csv_header(file, options)
    types = {name: schema.field(name).type for name in header.names}
    start = Position(0, begin.offset, begin.row)
    row = begin.row + 1
    for lines in read_lines([file], start, options.block_size, quoted=True, header=True):
        batch, count = _columns(lines, row, header, types, bad)
        row += count
        yield Columns(batch, lines.file, row - count, Position(number, lines.position.offset, row - 1))


def csv_header(file: str, options: Options) -> Header:
    """The first line of a file."""
    check_text(file)
    line = read_header(file, quoted=True)
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise _not_unicode(file) from None
    if not text.strip():
        raise DataError("the file is empty", shown(file), remedy="give it a line of column names and rows below it")
    delimiter = options.delimiter or _guess_delimiter(text, file)
    fields = [field.strip() for field in next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))]
    names = [field or f"unnamed {place}" for place, field in enumerate(fields, 1)]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        remedy = "rename one of them (the first line must hold the names of the columns)"
        raise DataError("two columns have this name", shown(file), column=twice, remedy=remedy)
    return Header(names, delimiter)


def sample(file: str) -> bytes:
    """The first bytes of a text, which stay to be read; without a byte-order mark."""
    text = open_text(file)
    try:
        return text.peek(_SAMPLE).tobytes().removeprefix(b"\xef\xbb\xbf") if text.offset == 0 else b""
    finally:
        text.close()


def check_text(file: str) -> None:
    """Refuse what is no text."""
    start = sample(file)[:4096]
    if start.startswith((b"PAR1", b"ARROW1")):
        remedy = "give it its own extension, or pass --format"
        raise DataError("this is a Parquet or Arrow file, not text", shown(file), remedy=remedy)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in start:
        raise _not_unicode(file)


def whole_lines(window: bytes) -> bytes:
    """A window of text up to its last line end outside quotes; all of it where the text ends sooner."""
    if len(window) < _SAMPLE // 2:
        return window
    end = len(window)
    while end > 0:
        end = window.rfind(b"\n", 0, end)
        if end > 0 and window.count(b'"', 0, end) % 2 == 0:
            return window[: end + 1]
    return window


def shown(file: str) -> str:
    return "standard input" if file == "-" else file


def _widened(found: Any) -> Any:
    """Integers may be followed by fractions, dates by timestamps: the encoder reads these from strings."""
    if pa.types.is_boolean(found):
        return found
    return pa.float64() if pa.types.is_integer(found) or pa.types.is_floating(found) else pa.string()


def _guess_delimiter(header: str, file: str) -> str:
    counts = {delimiter: header.count(delimiter) for delimiter in _DELIMITERS}
    if "\t" in header and file.lower().split(".gz")[0].endswith((".tsv", ".tab")):
        return "\t"
    return max(counts, key=lambda delimiter: counts[delimiter])


def _columns(lines: Lines, row: int, header: Header, types: dict[str, Any], bad: BadRows) -> tuple[Any, int]:
    """The rows of a block of text, and how many rows it holds with the bad ones."""
    unfit: list[int] = []
    try:
        table = _parse(lines.data, header, types, unfit)
        if not unfit and not _open_quote(lines.data, table):
            return table, table.num_rows
    except pa.ArrowInvalid:
        pass  # looked into below
    return _examined(lines, row, header, types, bad)


def _parse(data: Any, header: Header, types: dict[str, Any], unfit: list[Any], nulls: tuple[str, ...] = NULLS) -> Any:
    """Parse a block of text as one record batch; rows with a wrong number of fields are left out and listed."""

    def note(row: Any) -> str:
        unfit.append(row)
        return "skip"

    table = arrow_csv.read_csv(
        pa.BufferReader(pa.py_buffer(data)),
        read_options=arrow_csv.ReadOptions(column_names=header.names, block_size=len(data) + 1, use_threads=False),
        parse_options=arrow_csv.ParseOptions(
            delimiter=header.delimiter, newlines_in_values=True, invalid_row_handler=note
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types,
            null_values=nulls,
            strings_can_be_null=bool(nulls),
            true_values=_TRUE,
            false_values=_FALSE,
        ),
    )
    return as_batch(table)


def as_batch(table: Any) -> Any:
    """A table as one record batch."""
    arrays = [column.combine_chunks() for column in table.columns]
    arrays = [array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array for array in arrays]
    return pa.record_batch(arrays, schema=table.schema)


def _open_quote(data: np.ndarray, table: Any) -> bool:
    """Whether a quote that nobody closed has swallowed lines."""
    if np.count_nonzero(data == ord('"')) % 2 == 0 or not table.num_rows:
        return False
    last = table.slice(table.num_rows - 1).to_pylist()[0].values()
    return any("\\n" in repr(value) for value in last)  # of strings and bytes alike


def _examined(lines: Lines, row: int, header: Header, types: dict[str, Any], bad: BadRows) -> tuple[Any, int]:
    """Find the bad rows of a block, report them, and parse the others."""
    unfit: list[Any] = []
    raw = _parse(lines.data, header, dict.fromkeys(header.names, pa.binary()), unfit, nulls=())
    count = raw.num_rows + len(unfit)
    places = np.setdiff1d(np.arange(count), [wrong.number - 1 for wrong in unfit])
    faults = Faults()
    if _open_quote(lines.data, raw):
        faults.add([raw.num_rows - 1], header.names[-1], lambda _: "a double quote is never closed")
    arrays = [_converted(raw.column(name), name, types[name], faults) for name in header.names]
    problems: dict[int, Fault] = {int(places[place]): fault for place, fault in faults.items()}
    problems |= {wrong.number - 1: Fault("", _miscounted(wrong)) for wrong in unfit}
    for place in sorted(problems):
        bad.report(problems[place].problem, lines.file, row + place, problems[place].column or None)
    good = np.ones(raw.num_rows, bool)
    good[list(faults)] = False
    batch = pa.record_batch(arrays, names=header.names).filter(of_booleans(good))
    return with_row_numbers(batch, row + places[good]), count


def _converted(raw: Any, name: str, to: Any, faults: Faults) -> Any:
    text, failed = cast(raw, pa.string(), safe=True)
    faults.add(failed, name, lambda row: f"{raw[row].as_py()!r} is not {_EXAMPLES[pa.string()]}")
    text = pc.if_else(pc.is_in(text, value_set=of_strings(NULLS)), pa.nulls(len(text), pa.string()), text)
    if to == pa.string():
        return text
    values, failed = cast(pc.utf8_trim_whitespace(text), to)
    faults.add(failed, name, lambda row: f"{text[row].as_py()!r} is not {_EXAMPLES.get(to, to)}")
    return values


def _miscounted(row: Any) -> str:
    fields = f"{row.actual_columns} field{'s' if row.actual_columns != 1 else ''}"
    quote = " (a double quote may be left open)" if "\n" in row.text else ""
    return f"the row has {fields}, the header {row.expected_columns}{quote}"


def _not_unicode(file: str) -> DataError:
    return DataError("this is not text in UTF-8", shown(file), remedy="convert it to UTF-8, or name its --format")


def _garbage(file: str, error: Exception) -> DataError:
    return DataError(
        f"this cannot be read as CSV ({error})", shown(file), remedy="check the file, or name its --format"
    )
