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
from tunefree.stream.arrays import cast, of_booleans, of_strings, to_batch, to_booleans
from tunefree.stream.batch import BadRows, Columns, Lines, Position
from tunefree.stream.beginnings import DELIMITERS, delimiter_counts, is_plain_number, look_like_values
from tunefree.stream.booleans import truths
from tunefree.stream.chunks import SEMICOLONS, with_row_numbers
from tunefree.stream.columns import MISSING, Fault, Faults, blank_to_null, not_a_number
from tunefree.stream.contract import Options, TableReader
from tunefree.stream.files import display_name
from tunefree.stream.lines import (
    Beginning,
    check_text,
    count_line_ends,
    not_utf8,
    read_beginning,
    read_lines,
    whole_lines,
)
from tunefree.stream.missing import without_words
from tunefree.stream.notation import EXACT, NULLS, ZEROS, ColumnTypes, codes_in, is_continental
from tunefree.stream.quotes import LINE_END, is_escaped, misfits, quotes_of, rows_in_values, unescape
from tunefree.stream.spread import spread_lines

_NULLS = tuple(space + word for word in (*MISSING, *NULLS) for space in ("", " "))
ROWS_OF_A_GUESS = 1 << 16  # bytes of rows that tell the delimiter
MOST_LABELS = 100  # with leading zeros; a target with more of them is a number
_ILLEGIBLE = "\U0010ffff"  # no letter has this number
_ILLEGIBLE_ERRORS = "tunefree.illegible"
codecs.register_error(_ILLEGIBLE_ERRORS, lambda error: (_ILLEGIBLE, error.end))  # type: ignore[attr-defined]
_TRUE, _FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")
_EXAMPLES = {pa.bool_(): "true or false"}


class Header(NamedTuple):
    """The line of names of one file."""

    names: list[str]  # of the columns, in the order of the file
    delimiter: str  # between fields
    fields: list[str]  # the names as they are in the file
    start: int = 0  # bytes before it
    comments: int = 0  # lines before it that are comments
    escaped: bool = False  # whether backslashes say that quotes belong to values
    is_row: bool = False  # whether each name is a value of its column, too

    @property
    def differs(self) -> bool:
        """Whether a row of these fields is the header again, and nothing else."""
        return len(self.names) > 1 and not self.is_row and not all(map(is_plain_number, self.names))

    def hides(self, types: dict[str, Any]) -> bool:
        """Whether a row of these fields can be read as columns of such types."""
        return all(type in (pa.string(), pa.null()) or is_plain_number(name) for name, type in types.items())


def is_delimited(line: str) -> bool:
    """Whether a first line may be the header of a CSV file: several names, or one."""
    return any(mark in line for mark in ",;\t") or len(line.split()) == 1


def csv_schema(file: str, options: Options) -> Any:
    """Names and types of the columns: numbers, booleans and strings; null where there are no values."""
    beginning, header = _beginning_of(file, options)
    if options.types and (not options.grows or {*header.names} <= {*options.types, *options.as_written}):
        return _schema(header, {}, options)
    return _schema_of(_body(beginning, header, file), header, file, options)[0]


def csv_sample(file: str, options: Options) -> Any:
    """Rows from the beginning of a file, and where it can be read from anywhere also from places all over it."""
    beginning, header = _beginning_of(file, options)
    body = _body(beginning, header, file)
    schema, sample, body = _schema_of(body, header, file, options)
    if sample is None:
        return None
    types = dict(zip(schema.names, schema.types, strict=True))
    texts = {name: type for name, type in types.items() if sample.schema.field(name).type != type == pa.string()}
    written = _parse(body, header, texts, []) if texts else sample  # dates are inferred, but read from strings
    arrays = [
        (written if name in texts else sample).column(name).cast(type, safe=False) for name, type in types.items()
    ]
    return pa.record_batch(
        arrays, schema=schema.with_metadata({SEMICOLONS: b""}) if header.delimiter == ";" else schema
    )


def _body(beginning: Beginning, header: Header, file: str) -> Any:
    """The lines of a sample of a file."""
    below = np.frombuffer(bytearray(beginning.below), np.uint8)
    if header.escaped:
        unescape(below)
    body = whole_lines(below.tobytes(), header.delimiter)
    return _legible(spread_lines(file, body, header.delimiter, header.escaped))


def _schema_of(body: Any, header: Header, file: str, options: Options) -> tuple[Any, Any, Any]:
    """Names and types of the columns, the sample of rows that tells them, and its lines; None if there are no rows."""
    if not body:
        return _schema(header, {}, options), None, body
    sample = _sample(body, header, file)
    if header.hides(dict(zip(header.names, sample.schema.types, strict=True))):
        body = _without_headers(body, header)
        sample = _sample(body or b"\n", header, file)
    types = {field.name: _widened(field.type) for field in sample.schema}
    if not options.types:
        types |= _as_texts(header, sample, options) | _codes(header, sample, body, options)
    return _schema(header, types, options), sample, body


def _schema(header: Header, types: dict[str, Any], options: Options) -> Any:
    known = types | options.types | dict.fromkeys(options.as_written, pa.string())
    return pa.schema([(name, known.get(name, pa.string())) for name in header.names])


def _sample(body: bytes, header: Header, file: str) -> Any:
    """Rows of a sample, with the types that they show."""
    try:
        return _parse(_legible(body), header, {}, [])
    except pa.ArrowInvalid as error:
        raise _unreadable(file, error) from None


def _as_texts(header: Header, sample: Any, options: Options) -> dict[str, Any]:
    """Types of columns that are not to be read as they look: points may stand between thousands, codes be numbers."""
    column_types, changed = options.column_types or ColumnTypes(), {}
    strings = [array for array in sample.columns if array.type == pa.string()]
    if column_types.notation or header.delimiter == ";" or is_continental(map(blank_to_null, strings)):
        changed = {field.name: pa.string() for field in sample.schema if field.type == pa.float64()}
    return changed | dict.fromkeys(set(column_types.as_written(header.names)) & set(header.names), pa.string())


def _codes(header: Header, sample: Any, body: bytes, options: Options) -> dict[str, Any]:
    """Types of columns that look like numbers and are codes, by leading zeros or by digits that float64 loses."""
    zeros, suspects = _has_zeros(body, header.delimiter), []
    for name, array in zip(sample.schema.names, sample.columns, strict=True):
        is_numeric = options.column_types is not None and name in options.column_types.numeric
        is_padded = zeros and pa.types.is_integer(array.type) and not is_numeric
        if is_padded or (_is_long(array) and (name == options.exact or not is_numeric)):
            suspects.append(name)
    if not suspects:
        return {}
    texts = _parse(_legible(body), header, dict.fromkeys(suspects, pa.string()), [])
    codes = {name: codes_in(blank_to_null(texts.column(name))) for name in suspects}
    if codes.get(str(options.exact)) == ZEROS and pc.count_distinct(texts.column(options.exact)).as_py() > MOST_LABELS:
        del codes[str(options.exact)]  # an amount to predict that is filled up with zeros
    types = {name: pa.string() for name, why in codes.items() if why}
    if codes.get(str(options.exact)) == EXACT and pa.types.is_integer(sample.schema.field(options.exact).type):
        types[str(options.exact)] = pa.int64()
    return types


def _is_long(array: Any) -> bool:
    """Whether an array has numbers beyond 2^53, which may be integers that Arrow reads as float64."""
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)) or array.null_count == len(array):
        return False
    ends = pc.min_max(array).as_py()
    return bool(max(-ends["min"], ends["max"]) > 2**53)


def _has_zeros(body: bytes, delimiter: str) -> bool:
    """Whether a field begins with a zero and another digit, or an x."""
    text = np.frombuffer(b"\n" + body + b"\n\n", np.uint8)
    for shift in (0, 1):  # two bytes are looked at in one step
        pairs = text[shift : len(text) - 1 - (len(text) - 1 - shift) % 2].view("<u2")
        for mark in ('\n "' + delimiter).encode():
            after = text[2 * np.flatnonzero(pairs == mark + 256 * ord("0")) + shift + 2]
            if (((after >= ord("0")) & (after <= ord("9"))) | (after | 32 == ord("x"))).any():
                return True
    return False


def csv_columns(file: str, schema: Any, options: Options) -> dict[str, Any]:
    """The columns of a further file. Values are converted to the types of the schema one by one; others have types."""
    names = csv_header(file, options).names
    full_schema = csv_schema(file, options) if set(names) - set(schema.names) else schema
    return {name: pa.null() if name in schema.names else full_schema.field(name).type for name in names}


def csv_chunks(file: str, start: Position, schema: Any, options: Options, bad: BadRows) -> Iterator[Columns]:
    """The chunks of one file from a position on."""
    header = csv_header(file, options)
    types = {name: schema.field(name).type for name in header.names}  # null until there is a value
    row = start.row + 1
    if row == 1:
        _note_beginning(header, file, bad)
    how: dict[str, Any] = {"delimiters": header.delimiter, "header": True, "escaped": header.escaped}
    for lines in read_lines([file], start, options.block_size, **how):
        batch, count = _parse_block(lines, row, header, types, bad)
        row += count
        yield Columns(batch, lines.file, row - count, Position(0, lines.position.offset, row - 1))


def csv_header(file: str, options: Options) -> Header:
    """The first line of a file."""
    return _beginning_of(file, options)[1]


def _beginning_of(file: str, options: Options) -> tuple[Beginning, Header]:
    """How a file begins, and its header."""
    beginning = read_beginning(file, options.delimiter or DELIMITERS)
    header = _header_of(beginning, file, options)
    if b'"' in beginning.header and header.delimiter != options.delimiter:  # after others a quote is a letter
        beginning = read_beginning(file, header.delimiter)
        header = _header_of(beginning, file, options._replace(delimiter=header.delimiter))
    return beginning, header


def _header_of(beginning: Beginning, file: str, options: Options) -> Header:
    check_text(file, beginning.sample)
    try:
        text = beginning.header.decode()
    except UnicodeDecodeError:
        raise not_utf8(file) from None
    if not text.strip():
        remedy = "give it a line of column names and rows below it"
        raise DataError("the file is empty", display_name(file), remedy=remedy)
    delimiter = options.delimiter or beginning.start.separator or _guess_delimiter(text, file, beginning.below)
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\r\n\0"':
        remedy = "give one such as , or ; (`delimiter`)"
        raise DataError(f"the delimiter {delimiter!r} is not one ASCII character", display_name(file), remedy=remedy)
    if "\r" in text and "\n" not in text:
        remedy = "write a line feed at the end of each line, such as by tr '\\r' '\\n'"
        raise DataError("its lines end with carriage returns alone", display_name(file), remedy=remedy)
    try:
        fields = _fields(text, delimiter)
    except csv.Error as error:
        raise _unreadable(file, error) from None
    names = [field.strip() or f"unnamed {place}" for place, field in enumerate(fields, 1)]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        remedy = "rename one of them (the first line must hold the names of the columns)"
        raise DataError("two columns have this name", display_name(file), column=twice, remedy=remedy)
    swallowed = rows_in_values(pa.record_batch([of_strings([field]) for field in fields], fields), delimiter)
    if swallowed:
        problem = f"the name of a column holds {swallowed[0].lines} line ends, and each of its lines looks like a row"
        raise DataError(problem, display_name(file), remedy="correct the double quote that opens in the first line")
    start, below, escape = beginning.start, beginning.below, getattr(file, "escape", None)
    escaped = is_escaped(below, delimiter, len(names)) if escape is None else escape == "backslash"
    is_row = _may_be_row(fields, below, delimiter)
    return Header(names, delimiter, fields, start.size, start.comments, escaped, is_row)


def _may_be_row(fields: list[str], below: bytes, delimiter: str) -> bool:
    """Whether a header may be a row: each of its fields is a value of its column in rows that do not repeat it all."""
    text = below[: below.rfind(b"\n", 0, ROWS_OF_A_GUESS) + 1].decode(errors="replace")
    if not all('"' in field or field in text for field in fields):
        return False
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row != fields]
    columns = list(zip(*(row for row in rows if len(row) == len(fields)), strict=True))
    return bool(columns) and all(field in column for field, column in zip(fields, columns, strict=True))


def _fields(line: str, delimiter: str) -> list[str]:
    return next(csv.reader(io.StringIO(line, newline=""), delimiter=delimiter))


def _without_headers(body: bytes, header: Header) -> bytes:
    """A sample of rows without the lines that repeat the header, as where files were joined."""
    first, last = (field.strip().encode() for field in (header.fields[0], header.fields[-1]))
    if not header.differs or first not in body or last not in body:
        return body
    lines = body.split(b"\n")
    return b"\n".join(line for line in lines if first not in line or last not in line or not _repeats(line, header))


def _repeats(line: bytes, header: Header) -> bool:
    try:
        return _fields(line.decode().removeprefix("\ufeff"), header.delimiter) == header.fields
    except (UnicodeDecodeError, csv.Error, StopIteration):
        return False


def _note_beginning(header: Header, file: str, bad: BadRows) -> None:
    if header.comments:
        bad.note("comments before the header are left out", display_name(file), 0, rows=header.comments)
    if header.escaped and getattr(file, "escape", None) is None:
        problem = 'quotes after backslashes are read as part of the values, as in "say \\"yes\\""'
        bad.note(problem, display_name(file), 0, rows=0, remedy="`escape='quote'` reads backslashes as letters")
    if header.is_row or look_like_values([field.strip() for field in header.fields]):
        problem, remedy = "the first line is read as names of columns, and may be a row", "else write a line of names"
        bad.note(f"{problem} ({', '.join(header.fields[:4])})", display_name(file), 0, rows=0, remedy=remedy)


def _widened(arrow_type: Any) -> Any:
    """Integers may be followed by fractions, dates by timestamps: the encoder reads these from strings."""
    if pa.types.is_boolean(arrow_type) or pa.types.is_null(arrow_type):
        return arrow_type
    return pa.float64() if pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type) else pa.string()


def _guess_delimiter(header: str, file: str, below: bytes) -> str:
    """The delimiter that the header has most often, of those by which most rows have as many fields as the header."""
    if "\t" in header and file.lower().split(".gz")[0].endswith((".tsv", ".tab")):
        return "\t"
    rows = np.frombuffer(below[: below.rfind(b"\n", 0, ROWS_OF_A_GUESS) + 1], np.uint8)
    n_rows, counts = np.count_nonzero(rows == LINE_END), delimiter_counts(header)
    wrong = {mark: misfits(rows, mark, count + 1) for mark, count in counts.items() if count}
    fitting = [mark for mark, count in wrong.items() if 2 * count <= n_rows]
    return max(fitting or counts, key=lambda mark: (counts[mark], -wrong.get(mark, 0)))


def _parse_block(lines: Lines, row: int, header: Header, types: dict[str, Any], bad: BadRows) -> tuple[Any, int]:
    """The rows of a block of text, and how many rows it holds with the bad ones."""
    try:
        table = _parse(lines.data, header, types)
        is_repeated = header.hides(types) and len(_repeated(table, header)) > 0
        if not (is_repeated or _ends_inside(lines, header)):
            if count_line_ends(lines.data) > table.num_rows:
                _note_swallowed(table, np.arange(row, row + table.num_rows), header, lines.file, bad)
            return _settled(table, types), table.num_rows
    except pa.ArrowInvalid:
        pass  # some row is bad
    return _good_rows(lines, row, header, types, bad)


def _ends_inside(lines: Lines, header: Header) -> bool:
    """Whether a block ends within quotes, which only one of a single line does."""
    return lines.position.row == lines.row and quotes_of(lines.data, header.delimiter).ends_inside


def _settled(table: Any, types: dict[str, Any]) -> Any:
    """A block of which columns without a type get that of their first value, as further rows do then."""
    for place, (name, type) in enumerate(types.items()):
        if pa.types.is_null(type):
            strings = _without_nulls(table.column(name))
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


def _repeated(table: Any, header: Header) -> np.ndarray:
    """Places of the rows of a block that are the header again, as far as columns of strings show."""
    texts = [
        (array, field)
        for array, field in zip(table.columns, header.fields, strict=True)
        if pa.types.is_binary(array.type) or (pa.types.is_string(array.type) and field.strip())
    ]
    same = np.full(table.num_rows, header.differs and bool(texts))
    for array, field in reversed(texts):  # the first may have a byte-order mark
        if not same.any():
            break
        same &= to_booleans(pc.is_in(array, value_set=of_strings([field, f"\ufeff{field}"]).cast(array.type)))
    return np.flatnonzero(same)


def _parse(
    data: Any, header: Header, types: dict[str, Any], unfit: list[Any] | None = None, nulls: tuple[str, ...] = _NULLS
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
            strings_can_be_null=False,  # the encoder tells which words of a column are missing values
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


def _good_rows(lines: Lines, row: int, header: Header, types: dict[str, Any], bad: BadRows) -> tuple[Any, int]:
    """Find the bad rows of a block, report them, and parse the others."""
    unfit: list[Any] = []
    is_open = _ends_inside(lines, header)
    lines = lines._replace(data=lines.data[:0]) if is_open else lines
    data, binary = _legible(lines.data if len(lines.data) else b"\n"), dict.fromkeys(header.names, pa.binary())
    raw = _parse(data, header, binary, unfit, nulls=())
    if not unfit and len(lines.data) and data is not lines.data:
        raw = _parse(lines.data, header, binary, nulls=())
    count = raw.num_rows + len(unfit)
    places = np.setdiff1d(np.arange(count), [wrong.number - 1 for wrong in unfit])
    faults = Faults()
    repeated = _repeated(raw, header)
    rows = np.setdiff1d(np.arange(raw.num_rows), repeated)
    for name in (name for name, type in types.items() if pa.types.is_null(type)):
        types[name] = _type_of_first(_without_nulls(cast(raw.column(name).take(rows), pa.string(), safe=True)[0]))
    arrays = [_converted(raw.column(name), name, types[name], faults, bad) for name in header.names]
    good = np.ones(raw.num_rows, bool)
    good[[*faults, *repeated]] = False
    cut = count if len(lines.data) and lines.data[-1] != LINE_END else None  # number of the row without a line end
    problems = {int(places[place]): fault for place, fault in faults.items() if place not in repeated}
    problems |= {wrong.number - 1: Fault("", _wrong_count(wrong, wrong.number == cut)) for wrong in unfit}
    if is_open:
        problems[count] = Fault("", "a double quote is never closed")
    for place in sorted(problems):
        bad.report(problems[place].problem, lines.file, row + place, problems[place].column or None)
    for place in places[repeated].tolist():
        bad.note("a line that repeats the header is left out", lines.file, row + place)
    faults.note_all(bad, lines.file, row + places)
    batch = pa.record_batch(arrays, names=header.names)
    _note_swallowed(batch, row + places, header, lines.file, bad)
    return with_row_numbers(batch.filter(of_booleans(good)), row + places[good]), count + is_open


def _note_swallowed(table: Any, numbers: np.ndarray, header: Header, file: str, bad: BadRows) -> None:
    """Count lines in values that look like rows; ``numbers`` has the numbers of the rows in the file."""
    for place, column, lines in rows_in_values(table, header.delimiter):
        problem = "a quoted value holds line ends, each of which looks like that of a whole row"
        bad.note(problem, file, int(numbers[place]), column, lines, "correct its double quotes")


def _converted(raw: Any, name: str, to: Any, faults: Faults, bad: BadRows) -> Any:
    text, failed = cast(raw, pa.string(), safe=True)
    failed += np.flatnonzero(to_booleans(pc.match_substring(text, _ILLEGIBLE))).tolist()
    faults.add(failed, name, lambda row: f"{_shown(raw[row].as_py())} is not text in UTF-8 (`encoding` names another)")
    if to == pa.string():
        return text
    text = _without_nulls(text)
    if pa.types.is_null(to):
        return pa.nulls(len(text))
    is_number, plain = to == pa.float64(), pc.utf8_trim_whitespace(text)
    written = without_words(text, name, (), faults) if is_number else truths(plain) if to == pa.bool_() else plain
    values, failed = cast(written, to)
    hints = [f"`categorical={name!r}` takes the column for categories"] if bad.names_columns else []
    other = f"is not {_EXAMPLES.get(to, to)}" + "".join(f" ({hint})" for hint in hints)
    texts = {row: text[row].as_py() for row in failed}
    faults.add(failed, name, lambda row: not_a_number(texts[row], *hints) if is_number else f"{texts[row]!r} {other}")
    return values


def _without_nulls(text: Any) -> Any:
    return pc.if_else(pc.is_in(text, value_set=of_strings(_NULLS)), pa.nulls(len(text), pa.string()), text)


def _shown(value: bytes) -> str:
    mark = _ILLEGIBLE.encode()
    return repr(value.replace(mark, "\ufffd".encode()).decode() if mark in value else value)


def _wrong_count(row: Any, is_cut: bool) -> str:
    fields = f"{row.actual_columns} field{'s' if row.actual_columns != 1 else ''}"
    quote = " (a double quote may be left open)" if "\n" in row.text else ""
    quote = quote or (r" (`escape='backslash'` keeps double quotes after backslashes)" if '\\"' in row.text else "")
    which = "last line is cut off: it" if is_cut and row.actual_columns < row.expected_columns else "row"
    return f"the {which} has {fields}, the header {row.expected_columns}{quote}"


def _unreadable(file: str, error: Exception | str) -> DataError:
    return DataError(
        f"this cannot be read as CSV ({error})", display_name(file), remedy="check the file, or name its `format`"
    )


DELIMITED = TableReader(csv_schema, csv_columns, csv_chunks, sample=csv_sample)
