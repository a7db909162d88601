"""JSON lines as chunks of a table, parsed by Arrow block by block."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from tunefree.core.errors import DataError
from tunefree.core.numbers import MOST
from tunefree.stream.arrays import beyond_doubles, to_batch
from tunefree.stream.batch import BadRows, Columns, Lines, Position
from tunefree.stream.columns import family, with_row_numbers
from tunefree.stream.contract import Options, TableReader
from tunefree.stream.files import display_name
from tunefree.stream.lines import check_text, read_lines, read_sample, whole_lines

MOST_TRIED = 100  # of the first lines, for a schema
MOST_SHOWN = 200  # letters of a value in a message

_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "number": ("a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "string": ("a string", lambda value: isinstance(value, str)),
    "nested": ("as in the rows before", lambda value: isinstance(value, list | dict)),
}


def is_json(line: str) -> bool:
    """Whether a first line starts an object."""
    return line.startswith("{")


def json_schema(file: str, options: Options) -> Any:
    """Names and types of the columns, from the first lines: numbers, booleans, strings, and nested ones as they are.

    A column of nulls only is taken for strings; what is absent from the first lines is ignored later.
    """
    check_text(file)
    window = read_sample(file).lstrip()
    if not window:
        raise DataError("the file is empty", display_name(file), remedy="give it one JSON object a line")
    if window.startswith(b"["):
        remedy = "write one object a line (as `jq -c '.[]'` does)"
        raise DataError("this is a JSON array, not JSON lines", display_name(file), remedy=remedy)
    try:
        sample = _parse(whole_lines(window, quoted=False), None)
        found = sample.schema
        if options.exact is not None and options.exact in found.names and beyond_doubles(sample.column(options.exact)):
            options = options._replace(types={options.exact: pa.int64()} | options.types)
    except (pa.ArrowInvalid, UnicodeDecodeError):
        found = _schema_of_good_lines(whole_lines(window, quoted=False), file)
    return pa.schema([(field.name, options.types.get(field.name, _widened(field.type))) for field in found])


def json_columns(file: str, schema: Any, options: Options) -> dict[str, Any]:
    """The columns of a further file. Its objects may lack names and have others, but not all of them."""
    found = {field.name: field.type for field in json_schema(file, options)}
    if not found.keys() & set(schema.names):
        return found
    return {name: found.get(name, pa.null()) for name in schema.names}


def json_chunks(file: str, start: Position, schema: Any, options: Options, bad: BadRows) -> Iterator[Columns]:
    """The chunks of one file from a position on."""
    check_text(file)
    row = start.row + 1
    for lines in read_lines([file], start, options.block_size):
        batch, count = _parse_block(lines, row, schema, bad)
        row += count
        yield Columns(batch, lines.file, row - count, Position(0, lines.position.offset, row - 1))


def read_objects(lines: Lines, schema: Any, bad: BadRows) -> Columns:
    """The objects of some lines as a chunk with the columns of a schema; what they have beside is left out."""
    return Columns(_parse_block(lines, lines.row, schema, bad)[0], lines.file, lines.row, lines.position)


def _parse_block(lines: Lines, row: int, schema: Any, bad: BadRows) -> tuple[Any, int]:
    try:
        batch = _parse(lines.data, schema)
        return batch.select(schema.names), batch.num_rows
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return _good_rows(lines, row, schema, bad)


def _parse(data: Any, schema: Any) -> Any:
    table = arrow_json.read_json(
        pa.BufferReader(pa.py_buffer(data)),
        read_options=arrow_json.ReadOptions(block_size=len(data) + 1, use_threads=False),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"
        ),
    )
    batch = to_batch(table)
    batch.validate(full=True)  # the parser lets strings pass that are not UTF-8
    return batch


def _widened(found: Any) -> Any:
    kind = family(found)
    if kind in {"boolean", "nested"}:
        return found
    return pa.float64() if kind == "number" else pa.string()


def _good_rows(lines: Lines, row: int, schema: Any, bad: BadRows) -> tuple[Any, int]:
    """Read a block line by line, report the bad ones, and keep the others."""
    texts = [text for text in lines.data.tobytes().split(b"\n") if text.strip()]
    good, numbers = [], []
    for number, text in enumerate(texts, row):
        values, column, problem = _read(text, schema)
        if problem:
            bad.report(problem, lines.file, number, column)
        else:
            good.append(values)
            numbers.append(number)
    arrays = [pa.array([values[place] for values in good], field.type) for place, field in enumerate(schema)]
    batch = pa.record_batch(arrays, schema=schema)
    return with_row_numbers(batch, np.array(numbers, np.int64)), len(texts)


def _read(text: bytes, schema: Any) -> tuple[list[Any], str | None, str]:
    """The values of the columns on a line, or the column in question (if it is one) and the problem."""
    try:
        record = json.loads(text, object_pairs_hook=_unique)
    except UnicodeDecodeError:
        return [], None, "the line is not text in UTF-8"
    except RecursionError:
        return [], None, "the line is nested too deeply"
    except ValueError as error:
        return [], None, f"the line is not JSON ({error})"
    if not isinstance(record, dict):
        return [], None, "the line is not a JSON object"
    values = []
    for field in schema:
        value = record.get(field.name)
        expected, fits = _KINDS[family(field.type)]
        if value is not None and not fits(value):
            return [], field.name, f"{_shown(value)} is not {expected}"
        try:
            values.append(_as_type(value, field.type))
        except UnicodeEncodeError:
            return [], field.name, "half of a surrogate pair is no letter"
        except (pa.ArrowException, OverflowError, TypeError):  # what is nested has types too
            return [], field.name, f"{_shown(value)} is not {_KINDS['nested'][0]}"
    return values, None, ""


def _as_type(value: Any, arrow_type: Any) -> Any:
    """A value as Arrow takes it for a column of a type; raises what Arrow raises where it does not fit."""
    if value is not None and pa.types.is_floating(arrow_type):
        return float(value) if abs(value) <= MOST else math.copysign(math.inf, value)
    if family(arrow_type) == "number" or family(arrow_type) == "nested":
        pa.array([value], arrow_type)
    elif isinstance(value, str):
        value.encode()
    return value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _schema_of_good_lines(window: bytes, file: str) -> Any:
    """The schema of those of the first lines that can be read; the bad ones are reported when they are read."""
    lines = [line for line in window.split(b"\n") if _object(line)]
    for sample in (b"\n".join(lines), *lines[:MOST_TRIED]):  # where types differ, those of the first line hold
        try:
            if sample:
                return _parse(sample, None).schema
        except (pa.ArrowInvalid, UnicodeDecodeError):
            pass
    remedy = "give it one JSON object a line, or name its --format"
    raise DataError("no line of this can be read as JSON", display_name(file), remedy=remedy)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a name appears twice")
    return record


JSON_LINES = TableReader(json_schema, json_columns, json_chunks)
