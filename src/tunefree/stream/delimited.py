"""Delimited text (CSV, TSV) as chunks of a table, parsed by Arrow block by block."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from tunefree.core.errors import DataError
from tunefree.stream.arrays import beyond_doubles, of_booleans, of_strings, to_batch, to_booleans
from tunefree.stream.batch import BadRows, Columns, Lines, Position
from tunefree.stream.chunks import with_row_numbers
from tunefree.stream.columns import (
    MISSING,
    Fault,
    Faults,
    cast,
    not_a_number,
    without_words,
)
from tunefree.stream.contract import Options, TableReader
from tunefree.stream.files import display_name
from tunefree.stream.lines import (
    Beginning,
    check_text,
    not_utf8,
    read_beginning,
    read_lines,
    whole_lines,
)
from tunefree.stream.notation import ColumnTypes, is_continental
from tunefree.stream.spread import spread_lines

NULLS = tuple(
    space + word
    for word in (*MISSING, "NA", "N/A", "n/a", "#N/A", "NAN", "null", "NULL", "Null", "None", "-nan", "-NaN", "<NA>")
    for space in ("", " ")
)
_NULLS = of_strings(NULLS)
_ILLEGIBLE = "\U0010ffff"  # no letter has this number
_ILLEGIBLE_ERRORS = "tunefree.illegible"
codecs.register_error(_ILLEGIBLE_ERRORS, lambda error: (_ILLEGIBLE, error.end))  # type: ignore[attr-defined]
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
_DELIMITERS = ",;\t|"
_EXAMPLES = {
    pa.bool_(): "true or false",
    pa.string(): "text in UTF-8",
}


class Header(NamedTuple):
    """The first line of one file."""

    names: list[str]  # of the columns, in the order of the file
    delimiter: str  # between fields


def is_delimited(line: str) -> bool:
    """Whether a first line may be the header of a CSV file: several names, or one."""
    return any(mark in line for mark in ",;\t") or len(line.split()) == 1


def csv_schema(file: str, options: Options) -> Any:
    """Names and types of the columns: numbers, booleans and strings; null where there are no values."""
    beginning = read_beginning(file, quoted=True)
    header = _header_of(beginning, file, options)
    if options.types and (not options.grows or {*header.names} <= {*options.types, *options.as_written}):
        return _schema(header, {}, options)
    return _schema_of(_body(beginning, file), header, file, options)[0]


def csv_sample(file: str, options: Options) -> Any:
    """Rows from the beginning of a file, and where it can be read from anywhere also from places all over it."""
    beginning = read_beginning(file, quoted=True)
    header = _header_of(beginning, file, options)
    body = _body(beginning, file)
    schema, sample = _schema_of(body, header, file, options)
    if sample is None:
        return None
    types = dict(zip(schema.names, schema.types, strict=True))
    texts = {name: type for name, type in types.items() if sample.schema.field(name).type != type == pa.string()}
    written = _parse(body, header, texts, []) if texts else sample  # dates are inferred, but read from strings
    arrays = [
        (written if name in texts else sample).column(name).cast(type, safe=False) for name, type in types.items()
    ]
    return pa.record_batch(arrays, schema=schema)


def _body(beginning: Beginning, file: str) -> Any:
    """The lines of a sample of a file."""
    start = beginning.sample.find(b"\n", len(beginning.header)) + 1  # the header may hold line ends
    body = whole_lines(beginning.sample[start:] if start else b"", quoted=True)
    return _legible(spread_lines(file, body))


def _schema_of(body: Any, header: Header, file: str, options: Options) -> tuple[Any, Any]:
    """Names and types of the columns, and the sample of rows that tells them; None if there are none."""
    if not body:
        return _schema(header, {}, options), None
    try:
        sample = _parse(body, header, {}, [])
    except pa.ArrowInvalid as error:
        raise _unreadable(file, error) from None
    found = {field.name: _widened(field.type) for field in sample.schema}
    return _schema(header, found if options.types else found | _as_texts(header, sample, options), options), sample


def _schema(header: Header, found: dict[str, Any], options: Options) -> Any:
    known = found | options.types | dict.fromkeys(options.as_written, pa.string())
    return pa.schema([(name, known.get(name, pa.string())) for name in header.names])


def _as_texts(header: Header, sample: Any, options: Options) -> dict[str, Any]:
    """Types of columns that are not to be read as they look: points may stand between thousands, codes be numbers."""
    given, changed = options.given or ColumnTypes(), {}
    strings = [array for array in sample.columns if array.type == pa.string()]
    if given.notation or is_continental(pc.utf8_trim_whitespace(array) for array in strings):
        changed = {field.name: pa.string() for field in sample.schema if field.type == pa.float64()}
    if options.exact in sample.schema.names and beyond_doubles(sample.column(options.exact)):
        changed[options.exact] = pa.int64()
    return changed | dict.fromkeys(set(given.as_written(header.names)) & set(header.names), pa.string())


def csv_columns(file: str, schema: Any, options: Options) -> dict[str, Any]:
    """The columns of a further file. Values are converted to the types of the schema one by one; others have types."""
    names = csv_header(file, options).names
    own = csv_schema(file, options) if set(names) - set(schema.names) else schema
    return {name: pa.null() if name in schema.names else own.field(name).type for name in names}


def csv_chunks(file: str, start: Position, schema: Any, options: Options, bad: BadRows) -> Iterator[Columns]:
    """The chunks of one file from a position on."""
    header = csv_header(file, options)
    types = {name: schema.field(name).type for name in header.names}  # null until there is a value
    row = start.row + 1
    for lines in read_lines([file], start, options.block_size, quoted=True, header=True):
        batch, count = _parse_block(lines, row, header, types, bad)
        row += count
        yield Columns(batch, lines.file, row - count, Position(0, lines.position.offset, row - 1))


def csv_header(file: str, options: Options) -> Header:
    """The first line of a file."""
    return _header_of(read_beginning(file, quoted=True), file, options)


def _header_of(beginning: Beginning, file: str, options: Options) -> Header:
    check_text(file, beginning.sample)
    try:
        text = beginning.header.decode()
    except UnicodeDecodeError:
        raise not_utf8(file) from None
    if not text.strip():
        remedy = "give it a line of column names and rows below it"
        raise DataError("the file is empty", display_name(file), remedy=remedy)
    delimiter = options.delimiter or beginning.separator or _guess_delimiter(text, file)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\r\n\0"':
        remedy = "give one such as , or ; (--delimiter)"
        raise DataError(f"the delimiter {delimiter!r} is not one ASCII character", display_name(file), remedy=remedy)
    try:
        fields = [field.strip() for field in next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))]
    except csv.Error as error:
        raise _unreadable(file, error) from None
    if not fields:  # a carriage return alone ends a line for whoever reads names, and none for whoever reads rows
        raise _unreadable(file, "its first line begins with a carriage return alone")
    names = [field or f"unnamed {place}" for place, field in enumerate(fields, 1)]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        remedy = "rename one of them (the first line must hold the names of the columns)"
        raise DataError("two columns have this name", display_name(file), column=twice, remedy=remedy)
    return Header(names, delimiter)


def _widened(found: Any) -> Any:
    """Integers may be followed by fractions, dates by timestamps: the encoder reads these from strings."""
    if pa.types.is_boolean(found) or pa.types.is_null(found):
        return found
    return pa.float64() if pa.types.is_integer(found) or pa.types.is_floating(found) else pa.string()


def _guess_delimiter(header: str, file: str) -> str:
    counts = {delimiter: header.count(delimiter) for delimiter in _DELIMITERS}
    if "\t" in header and file.lower().split(".gz")[0].endswith((".tsv", ".tab")):
        return "\t"
    return max(counts, key=lambda delimiter: counts[delimiter])


def _parse_block(lines: Lines, row: int, header: Header, types: dict[str, Any], bad: BadRows) -> tuple[Any, int]:
    """The rows of a block of text, and how many rows it holds with the bad ones."""
    try:
        table = _parse(lines.data, header, types)
        if not _open_quote(lines.data, table):
            return _settled(table, types), table.num_rows
    except pa.ArrowInvalid:
        pass  # some row is bad
    return _good_rows(lines, row, header, types, bad)


def _settled(table: Any, types: dict[str, Any]) -> Any:
    """A block of which columns without a type get that of their first value, as further rows do then."""
    for place, (name, type) in enumerate(types.items()):
        if pa.types.is_null(type):
            strings = table.column(name)
            types[name] = to = _type_of_first(strings)
            table = table.set_column(place, name, pa.nulls(len(strings)) if pa.types.is_null(to) else strings.cast(to))
    return table


def _type_of_first(strings: Any) -> Any:
    """The type that the first of some strings shows; null if there is none."""
    present = strings.drop_null()[:1]
    if not len(present):
        return pa.null()
    value = pc.utf8_trim_whitespace(present)
    return next((to for to in (pa.float64(), pa.bool_()) if not cast(value, to)[1]), pa.string())


def _parse(
    data: Any, header: Header, types: dict[str, Any], unfit: list[Any] | None = None, nulls: tuple[str, ...] = NULLS
) -> Any:
    """Parse a block of text as one record batch.

    Rows with a wrong number of fields are left out and listed in ``unfit``, where the block must be :func:`_legible`;
    without such a list they are an error.
    """

    def note(row: Any) -> str:
        assert unfit is not None
        unfit.append(row)
        return "skip"

    table = arrow_csv.open_csv(  # read_csv would make a thread for each block
        pa.BufferReader(pa.py_buffer(data)),
        read_options=arrow_csv.ReadOptions(column_names=header.names, block_size=len(data) + 1, use_threads=False),
        parse_options=arrow_csv.ParseOptions(
            delimiter=header.delimiter, newlines_in_values=True, invalid_row_handler=None if unfit is None else note
        ),
        convert_options=arrow_csv.ConvertOptions(
            include_columns=list(types),  # all if there are none
            column_types={name: pa.string() if pa.types.is_null(type) else type for name, type in types.items()},
            null_values=nulls,
            strings_can_be_null=bool(nulls),
            true_values=_TRUE,
            false_values=_FALSE,
        ),
    ).read_all()
    return to_batch(table)


def _legible(data: Any) -> Any:
    """The text, if it is UTF-8; else with a letter that stands for what is not, since Arrow lists only texts."""
    text = bytes(data)
    try:
        text.decode()
        return data
    except UnicodeDecodeError:
        return text.decode(errors=_ILLEGIBLE_ERRORS).encode()


def _open_quote(data: np.ndarray, table: Any) -> bool:
    """Whether a double quote that is never closed has joined lines."""
    if np.count_nonzero(data == ord('"')) % 2 == 0 or not table.num_rows:
        return False
    last = table.slice(table.num_rows - 1).to_pylist()[0].values()
    return any("\\n" in repr(value) for value in last)  # of strings and bytes alike


def _good_rows(lines: Lines, row: int, header: Header, types: dict[str, Any], bad: BadRows) -> tuple[Any, int]:
    """Find the bad rows of a block, report them, and parse the others."""
    unfit: list[Any] = []
    data, binary = _legible(lines.data), dict.fromkeys(header.names, pa.binary())
    raw = _parse(data, header, binary, unfit, nulls=())
    if not unfit and data is not lines.data:
        raw = _parse(lines.data, header, binary, nulls=())
    count = raw.num_rows + len(unfit)
    places = np.setdiff1d(np.arange(count), [wrong.number - 1 for wrong in unfit])
    faults = Faults()
    if _open_quote(lines.data, raw):
        faults.add([raw.num_rows - 1], header.names[-1], lambda _: "a double quote is never closed")
    for name in (name for name, type in types.items() if pa.types.is_null(type)):
        types[name] = _type_of_first(_without_nulls(cast(raw.column(name), pa.string(), safe=True)[0]))
    arrays = [_converted(raw.column(name), name, types[name], faults, bad) for name in header.names]
    problems: dict[int, Fault] = {int(places[place]): fault for place, fault in faults.items()}
    problems |= {wrong.number - 1: Fault("", _wrong_count(wrong)) for wrong in unfit}
    for place in sorted(problems):
        bad.report(problems[place].problem, lines.file, row + place, problems[place].column or None)
    faults.note_all(bad, lines.file, row + places)
    good = np.ones(raw.num_rows, bool)
    good[list(faults)] = False
    batch = pa.record_batch(arrays, names=header.names).filter(of_booleans(good))
    return with_row_numbers(batch, row + places[good]), count


def _converted(raw: Any, name: str, to: Any, faults: Faults, bad: BadRows) -> Any:
    text, failed = cast(raw, pa.string(), safe=True)
    failed += np.flatnonzero(to_booleans(pc.match_substring(text, _ILLEGIBLE))).tolist()
    faults.add(failed, name, lambda row: f"{_shown(raw[row].as_py())} is not {_EXAMPLES[pa.string()]}")
    text = _without_nulls(text)
    if to == pa.string():
        return text
    if pa.types.is_null(to):
        return pa.nulls(len(text))
    is_number = to == pa.float64()
    values, failed = cast(without_words(text, name, (), faults) if is_number else pc.utf8_trim_whitespace(text), to)
    hints = [f"--categorical {name} takes the column for categories"] if bad.names_columns else []
    other = f"is not {_EXAMPLES.get(to, to)}" + "".join(f" ({hint})" for hint in hints)
    texts = {row: text[row].as_py() for row in failed}
    faults.add(failed, name, lambda row: not_a_number(texts[row], *hints) if is_number else f"{texts[row]!r} {other}")
    return values


def _without_nulls(text: Any) -> Any:
    return pc.if_else(pc.is_in(text, value_set=_NULLS), pa.nulls(len(text), pa.string()), text)


def _shown(value: bytes) -> str:
    mark = _ILLEGIBLE.encode()
    return repr(value.replace(mark, "\ufffd".encode()).decode() if mark in value else value)


def _wrong_count(row: Any) -> str:
    fields = f"{row.actual_columns} field{'s' if row.actual_columns != 1 else ''}"
    quote = " (a double quote may be left open)" if "\n" in row.text else ""
    return f"the row has {fields}, the header {row.expected_columns}{quote}"


def _unreadable(file: str, error: Exception | str) -> DataError:
    return DataError(
        f"this cannot be read as CSV ({error})", display_name(file), remedy="check the file, or name its --format"
    )


DELIMITED = TableReader(csv_schema, csv_columns, csv_chunks, sample=csv_sample)
