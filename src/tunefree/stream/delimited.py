"""Delimited text (CSV, TSV) as chunks of a table of strings. Arrow parses each block of text."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv

from tunefree.core.errors import DataError
from tunefree.stream.arrays import boolean_array, string_array, to_batch, to_booleans
from tunefree.stream.batch import SEMICOLONS, BadRows, Chunk, Position, with_row_numbers
from tunefree.stream.files import display_name
from tunefree.stream.notation import PLAIN_NUMBER, is_plain_number
from tunefree.stream.quotes import LINE_END, inside_quotes, is_escaped, misfits, unescape
from tunefree.stream.tables import Options, TableReader
from tunefree.stream.text import (
    DELIMITERS,
    Beginning,
    check_text,
    count_line_ends,
    delimiter_counts,
    not_utf8,
    read_beginning,
    read_lines,
    spread_lines,
    whole_lines,
)

MOST_LOOKED_AT = 1000  # values with line ends that are examined in each column of a block
_FEWEST_DELIMITERS = 4  # delimiters in a value without numbers that looks like rows
ROWS_OF_A_GUESS = 1 << 16  # bytes of rows from which the delimiter is inferred
_REPLACEMENT = "\U0010ffff"  # not assigned to any character
_REPLACEMENT_ERRORS = "tunefree.illegible"
codecs.register_error(_REPLACEMENT_ERRORS, lambda error: (_REPLACEMENT, error.end))  # type: ignore[attr-defined]


def look_like_values(fields: list[str]) -> bool:
    """Whether the fields of a header may be a row: half are numbers, not consecutive as years, or most are empty."""
    numbers = [float(field) for field in fields if is_plain_number(field)]
    steps = {after - before for before, after in pairwise(numbers)}
    counting = steps <= {1.0} and all(number.is_integer() for number in numbers)
    return (2 * len(numbers) >= len(fields) and not counting) or 2 * fields.count("") > len(fields)


class Header(NamedTuple):
    """The line of column names of a file."""

    names: list[str]  # of the columns, in the order of the file
    delimiter: str  # between fields
    fields: list[str]  # the names as written in the file
    beginning: Beginning  # of the file
    escaped: bool  # whether quotes after backslashes are part of values
    is_row: bool  # whether the header may be a row: each name is also a value of its column


def is_delimited(line: str) -> bool:
    """Whether a first line may be the header of a CSV file: several names with delimiters, or one name."""
    return any(mark in line for mark in ",;\t") or len(line.split()) == 1


def csv_schema(file: str, options: Options) -> Any:
    """The schema of a file: the names in its header, all of type string."""
    return pa.schema([(name, pa.string()) for name in csv_header(file, options).names])


def csv_sample(file: str, options: Options) -> Any:
    """Rows from the beginning of a file, and from positions all over it if it is seekable."""
    header = csv_header(file, options)
    below = header.beginning.below
    if header.escaped:
        unescaped = np.frombuffer(bytearray(below), np.uint8)
        unescape(unescaped)
        below = unescaped.tobytes()
    body = spread_lines(file, whole_lines(below, header.delimiter), header.delimiter, header.escaped)
    if not body:
        return None
    table = _parsed(body, header, file)[0]
    repeated = _repeats_header(table, header)
    table = table.filter(boolean_array(~repeated)) if repeated.any() else table
    return table.replace_schema_metadata({SEMICOLONS: b""}) if header.delimiter == ";" else table


def csv_chunks(file: str, start: Position, schema: Any, options: Options, bad: BadRows) -> Iterator[Chunk]:
    """The chunks of a file after a position."""
    header, row = csv_header(file, options), start.row
    if row == 0:
        _note_beginning(header, file, bad)
    start = start._replace(offset=max(start.offset, header.beginning.end))
    for lines in read_lines([file], start, options.block_size, delimiters=header.delimiter, escaped=header.escaped):
        table, count = _rows_of(lines, row + 1, header, bad)
        row += count
        yield Chunk(table, lines.file, row - count + 1, Position(0, lines.position.offset, row))


def csv_header(file: str, options: Options) -> Header:
    """The header of a file."""
    beginning = read_beginning(file, options.delimiter or DELIMITERS)
    check_text(file, beginning.sample)
    try:
        text = beginning.header.decode()
    except UnicodeDecodeError:
        raise not_utf8(file) from None
    if not text.strip():
        remedy = "give it a line of column names and rows below it"
        raise DataError("the file is empty", display_name(file), remedy=remedy)
    delimiter = options.delimiter or beginning.separator or _guess_delimiter(text, file, beginning.below)
    if '"' in text and delimiter != options.delimiter:  # it decides where quotes open
        return csv_header(file, options._replace(delimiter=delimiter))
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\r\n\0"':
        remedy = "give one such as , or ; (`delimiter`)"
        raise DataError(f"the delimiter {delimiter!r} is not one ASCII character", display_name(file), remedy=remedy)
    if "\r" in text and "\n" not in text:
        remedy = "write a line feed at the end of each line, such as by tr '\\r' '\\n'"
        raise DataError("its lines end with carriage returns alone", display_name(file), remedy=remedy)
    try:
        fields = next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise _unreadable(file, error) from None
    names = [field.strip() or f"unnamed {number}" for number, field in enumerate(fields, 1)]
    duplicate = next((name for name, count in Counter(names).items() if count > 1), None)
    if duplicate is not None:
        remedy = "rename one of them (the first line must hold the names of the columns)"
        raise DataError("two columns have this name", display_name(file), column=duplicate, remedy=remedy)
    suspects = rows_in_values(pa.record_batch([string_array([field]) for field in fields], fields), delimiter)
    if suspects:
        problem = f"the name of a column holds {suspects[0][2]} line ends, and each of its lines looks like a row"
        raise DataError(problem, display_name(file), remedy="correct the double quote that opens in the first line")
    below, escape = beginning.below, getattr(file, "escape", None)
    escaped = is_escaped(below, delimiter, len(names)) if escape is None else escape == "backslash"
    is_row = _may_be_row(fields, below, delimiter)
    return Header(names, delimiter, fields, beginning, escaped, is_row)


def _may_be_row(fields: list[str], below: bytes, delimiter: str) -> bool:
    """Whether a header may be a row: each field is a value of its column in rows that differ from the header."""
    text = below[: below.rfind(b"\n", 0, ROWS_OF_A_GUESS) + 1].decode(errors="replace")
    if not all('"' in field or field in text for field in fields):
        return False
    rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row != fields]
    columns = list(zip(*(row for row in rows if len(row) == len(fields)), strict=True))
    return bool(columns) and all(field in column for field, column in zip(fields, columns, strict=True))


def _note_beginning(header: Header, file: str, bad: BadRows) -> None:
    if comments := header.beginning.comments:
        bad.note("comments before the header are left out", display_name(file), 0, rows=comments)
    if header.escaped and getattr(file, "escape", None) is None:
        problem = 'quotes after backslashes are read as part of the values, as in "say \\"yes\\""'
        bad.note(problem, display_name(file), 0, rows=0, remedy="`escape='quote'` reads backslashes as letters")
    if header.is_row or look_like_values([field.strip() for field in header.fields]):
        problem, remedy = "the first line is read as names of columns, and may be a row", "else write a line of names"
        bad.note(f"{problem} ({', '.join(header.fields[:4])})", display_name(file), 0, rows=0, remedy=remedy)


def _guess_delimiter(header: str, file: str, below: bytes) -> str:
    """The most frequent delimiter of the header, among those that give most rows as many fields as the header."""
    if "\t" in header and file.lower().split(".gz")[0].endswith((".tsv", ".tab")):
        return "\t"
    rows = np.frombuffer(below[: below.rfind(b"\n", 0, ROWS_OF_A_GUESS) + 1], np.uint8)
    n_rows, counts = np.count_nonzero(rows == LINE_END), delimiter_counts(header)
    n_misfits = {mark: misfits(rows, mark, count + 1) for mark, count in counts.items() if count}
    fitting = [mark for mark, count in n_misfits.items() if 2 * count <= n_rows]
    return max(fitting or counts, key=lambda mark: (counts[mark], -n_misfits.get(mark, 0)))


def _rows_of(lines: Chunk, row: int, header: Header, bad: BadRows) -> tuple[Any, int]:
    """The usable rows of a block of text, and the number of all its rows; the others are reported."""
    is_unclosed = lines.position.row == lines.row and bool(inside_quotes(lines.data, header.delimiter)[-1])
    table, unfit, is_legible = _parsed(b"\n" if is_unclosed else lines.data, header, lines.file)
    repeated = _repeats_header(table, header)
    if is_legible and not (unfit or is_unclosed or repeated.any()):
        if count_line_ends(lines.data) > table.num_rows:  # some line ends are in values
            _note_rows_in_values(table, row + np.arange(table.num_rows), header, lines.file, bad)
        return table, table.num_rows
    count = table.num_rows + len(unfit) + is_unclosed
    indices = np.setdiff1d(np.arange(count - is_unclosed), [misfit.number - 1 for misfit in unfit])
    problems = {} if is_legible else _undecodable_values(table, indices, repeated)
    cut = count if len(lines.data) and lines.data[-1] != LINE_END else None  # number of a row without a line end
    problems |= {misfit.number - 1: (None, _wrong_count(misfit, misfit.number == cut)) for misfit in unfit}
    if is_unclosed:
        problems[0] = None, "a double quote is never closed"
    for index, (column, problem) in sorted(problems.items()):
        bad.report(problem, lines.file, row + index, column)
    for index in indices[repeated].tolist():
        bad.note("a line that repeats the header is left out", lines.file, row + index)
    good = ~repeated & ~np.isin(indices, [*problems])
    numbers = row + indices[good]
    table = with_row_numbers(table.filter(boolean_array(good)), numbers)
    _note_rows_in_values(table, numbers, header, lines.file, bad)
    return table, count


def _parsed(data: Any, header: Header, file: str) -> tuple[Any, list[Any], bool]:
    """A block of text as a batch of strings; the rows with a wrong number of fields; and whether the text is UTF-8."""
    unfit: list[Any] = []

    def leave_out(row: Any) -> str:
        unfit.append(row)
        return "skip"

    with suppress(pa.ArrowInvalid):
        return _parse(data, header), unfit, True
    text = bytes(data).decode(errors=_REPLACEMENT_ERRORS).encode()  # Arrow passes only UTF-8 to the handler
    try:
        return _parse(text, header, leave_out), unfit, text == bytes(data)
    except pa.ArrowInvalid as error:
        raise _unreadable(file, error) from None


def _parse(data: Any, header: Header, leave_out: Callable[[Any], str] | None = None) -> Any:
    """A block of text as one record batch of strings; ``leave_out`` handles rows with a wrong number of fields."""
    table = arrow_csv.open_csv(  # read_csv starts a thread for each block
        pa.BufferReader(pa.py_buffer(data)),
        read_options=arrow_csv.ReadOptions(column_names=header.names, block_size=len(data) + 1, use_threads=False),
        parse_options=arrow_csv.ParseOptions(
            delimiter=header.delimiter, newlines_in_values=True, invalid_row_handler=leave_out
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(header.names, pa.string()), null_values=[""], strings_can_be_null=True
        ),
    ).read_all()
    return to_batch(table)


def _repeats_header(table: Any, header: Header) -> np.ndarray:
    """A mask of the rows of a block that repeat the header, such as in concatenated files."""
    can_repeat = len(header.names) > 1 and not header.is_row and not all(map(is_plain_number, header.names))
    same = np.full(table.num_rows, can_repeat)
    named_columns = [column for column, field in enumerate(header.fields) if field.strip()]
    for column in reversed(named_columns):
        if same.any():
            field, array = header.fields[column], table.column(column)
            is_name = pc.equal(array, string_array([field])[0])
            if column == 0:
                is_name = pc.or_(is_name, pc.equal(array, string_array([f"\ufeff{field}"])[0]))  # a byte-order mark
            same &= to_booleans(is_name)
    return same


def _undecodable_values(table: Any, indices: np.ndarray, repeated: np.ndarray) -> dict[int, tuple[str | None, str]]:
    """The column and the problem of the first value of each row that is not UTF-8, by the index of the row."""
    problems: dict[int, tuple[str | None, str]] = {}
    for name, array in zip(table.schema.names, table.columns, strict=True):
        for row in np.flatnonzero(to_booleans(pc.match_substring(array, _REPLACEMENT)) & ~repeated).tolist():
            value = array[row].as_py().replace(_REPLACEMENT, "\ufffd")
            problem = f"{value!r} is not text in UTF-8 (`encoding` names another)"
            problems.setdefault(int(indices[row]), (name, problem))
    return problems


def _note_rows_in_values(table: Any, numbers: np.ndarray, header: Header, file: str, bad: BadRows) -> None:
    """Note values whose lines look like rows; ``numbers`` are the row numbers in the file."""
    for row, column, lines in rows_in_values(table, header.delimiter):
        problem = "a quoted value holds line ends, each of which looks like the end of a whole row"
        bad.note(problem, file, int(numbers[row]), column, lines, "correct its double quotes")


def rows_in_values(table: Any, delimiter: str) -> list[tuple[int, str, int]]:
    """Values whose lines all look like rows: row index, column name and number of line ends of each."""
    suspects, are_numbers = [], list[bool]()
    for column, array in enumerate(table.columns):
        for row in np.flatnonzero(to_booleans(pc.match_substring(array, "\n")))[:MOST_LOOKED_AT].tolist():
            lines = [line.split(delimiter) for line in array[row].as_py().split("\n")]
            are_numbers = are_numbers or _are_numbers(table)
            if _are_rows(lines, column, are_numbers):
                suspects.append((row, table.schema.names[column], len(lines) - 1))
    return suspects


def _are_numbers(table: Any) -> list[bool]:
    """For each column, whether most of its values are numbers."""
    strings = (array.cast(pa.string())[:MOST_LOOKED_AT].drop_null() for array in table.columns)
    matches = (pc.match_substring_regex(values, PLAIN_NUMBER) for values in strings)
    return [2 * (pc.sum(matching).as_py() or 0) > len(matching) for matching in matches]


def _are_rows(lines: Sequence[list[str]], column: int, are_numbers: Sequence[bool]) -> bool:
    """Whether the lines of a value in a column have the fields of rows, with numbers in the same columns."""
    n, more = len(are_numbers), len(lines) - 1
    if n < 2 or [len(line) for line in lines] != [n - column, *[n] * (more - 1), column + 1]:
        return False
    fields = [*chain.from_iterable(lines)][1:-1]  # of the next columns, and then again from the first one on
    numbers = [field.strip() for k, field in enumerate(fields, column + 1) if are_numbers[k % n]]
    if not all(not number or is_plain_number(number) for number in numbers):
        return False
    return any(numbers) or more * (n - 1) >= _FEWEST_DELIMITERS


def _wrong_count(row: Any, is_cut: bool) -> str:
    fields = f"{row.actual_columns} field{'s' if row.actual_columns != 1 else ''}"
    quote = " (a double quote may be left open)" if "\n" in row.text else ""
    quote = quote or (r" (`escape='backslash'` keeps double quotes after backslashes)" if '\\"' in row.text else "")
    which = "last line is cut off: it" if is_cut and row.actual_columns < row.expected_columns else "row"
    return f"the {which} has {fields}, the header {row.expected_columns}{quote}"


def _unreadable(file: str, error: Exception | str) -> DataError:
    remedy = "check the file, or name its `format`"
    return DataError(f"this cannot be read as CSV ({error})", display_name(file), remedy=remedy)


DELIMITED = TableReader(csv_schema, csv_chunks, sample=csv_sample)
