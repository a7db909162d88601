"""JSON lines as chunks of a table, parsed by Arrow block by block.

Parsers recurse, and a line of brackets alone would crash the process. The nesting depth is therefore checked first.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from tunefree.core.errors import DataError
from tunefree.core.numbers import MOST
from tunefree.stream.arrays import beyond_doubles, number_array, to_batch
from tunefree.stream.batch import BadRows, Chunk, Position, with_row_numbers
from tunefree.stream.columns import family
from tunefree.stream.files import display_name
from tunefree.stream.notation import is_plain_number
from tunefree.stream.spellings import MISSING, SIGNS_OF_MISSING
from tunefree.stream.tables import Options, TableReader
from tunefree.stream.text import check_text, read_lines, read_sample, whole_lines

MOST_NESTED = 64  # maximum nesting depth of objects and lists
_STEPS = np.zeros(256, np.int8)
_STEPS[[ord("["), ord("{")]], _STEPS[[ord("]"), ord("}")]] = 1, -1
# With the bits set in which brackets differ, every bracket becomes 0x7F; of other bytes only Y, y and _ do.
_BRACKETS, _OTHER_BITS = 0x7F, 0x26
_LINE_END = 10
_SHORT = 1 << 12  # bytes; in a shorter text counting the brackets is faster
_TEXT = re.compile(rb'"(?:[^"\\\n]|\\.)*"')
MOST_TRIED = 100  # lines from which a schema is tried one by one
MOST_SHOWN = 200  # maximum characters of a value in a message
_LONE_NULL = re.compile(rb"(?:\A|[}\n\r])\s*null")  # null between objects, which may crash Arrow
# A quick filter: checks two bytes before each null. It is 28 times as fast, because the pattern starts with a letter.
_PERHAPS_LONE_NULL = re.compile(rb"null(?<![^}\s]null)(?<![^}\s][ \t\f\v]null)")
_MISSING = frozenset((*MISSING, *SIGNS_OF_MISSING))  # missing values in a column of numbers
_TOO_DEEP = "the line is nested too deeply"
_LONE_SURROGATE = "half of a surrogate pair is no letter"
_KINDS: dict[str, tuple[str, tuple[type, ...]]] = {  # description and Python types; a bool is not a number
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "string": ("a string", (str,)),
    "strings": ("a list of strings", (list,)),
    "numbers": ("a list of numbers", (list,)),
    "nested": ("as in the rows before", (list, dict)),
}
_PLAIN: dict[str, set[type]] = {"number": {int, float}, "boolean": {bool}, "string": {str}}


def is_too_deep(data: Any) -> bool:
    """Whether any line of a text (bytes) is nested deeper than MOST_NESTED."""
    data_bytes = np.frombuffer(data, np.uint8)
    if len(data_bytes) < _SHORT and sum(map(bytes(data).count, (b"[", b"{"))) <= MOST_NESTED:
        return False
    if _deepest(data_bytes) <= MOST_NESTED:
        return False
    return _deepest(np.frombuffer(_TEXT.sub(b"", bytes(data)), np.uint8)) > MOST_NESTED


def _deepest(data: np.ndarray) -> int:
    """Return the maximum nesting depth by counting all brackets, including brackets in strings."""
    is_step = (data | _OTHER_BITS) == _BRACKETS  # four times as fast as a lookup table of 256 bytes
    is_step |= data == _LINE_END
    brackets = data[np.flatnonzero(is_step)]
    if len(brackets) <= MOST_NESTED:
        return len(brackets)
    depth, ends = np.cumsum(_STEPS[brackets], dtype=np.int64), brackets == _LINE_END
    before = np.concatenate([[0], depth[ends]])  # depth at the start of each line
    return int((depth - before[np.cumsum(ends)]).max())


def is_json(line: str) -> bool:
    """Whether the first line of a text starts with a JSON object."""
    return line.startswith("{")


def json_schema(file: str, options: Options) -> Any:
    """Infer the names and types of the columns from the first lines."""
    window = read_sample(file)
    check_text(file, window)
    window = window.lstrip()
    if not window:
        raise DataError("the file is empty", display_name(file), remedy="give it one JSON object a line")
    if window.startswith(b"["):
        remedy = "write one object a line (as `jq -c '.[]'` does)"
        raise DataError("this is a JSON array, not JSON lines", display_name(file), remedy=remedy)
    for sample in _samples(whole_lines(window)):
        with suppress(pa.ArrowInvalid, UnicodeDecodeError):  # the parser accepts names that are not UTF-8
            batch = _parse(sample, None)
            fields = [(field, batch.column(field.name)) for field in _extended(pa.schema([]), batch.schema)]
            return pa.schema([(field.name, _exact_type(field.type, array)) for field, array in fields])
    remedy = "give it one JSON object a line, or name its `format`"
    raise DataError("no line of this can be read as JSON", display_name(file), remedy=remedy)


def _samples(window: bytes) -> Iterator[bytes]:
    """Samples to infer a schema from: all lines; valid lines without strings among numbers; single ones of these."""
    yield window
    records = list[dict[str, Any]]()
    for line in window.split(b"\n"):
        with suppress(DataError):
            records.append(_read(line))
    lines = [json.dumps(record).encode() for record in _without_strings(records) if record]
    yield b"\n".join(lines)
    yield from lines[:MOST_TRIED]  # if types still conflict, the types of the first line are used


def _exact_type(inferred: Any, numbers: Any) -> Any:
    """Return the type for some numbers: int64 or string for integers that float64 cannot represent, else float64."""
    if not pa.types.is_float64(inferred):
        return inferred
    if beyond_doubles(numbers):
        return pa.int64()
    is_long = pa.types.is_floating(numbers.type) and pc.any(pc.greater_equal(pc.abs(numbers), 2.0**63)).as_py()
    are_whole = is_long and pc.all(pc.and_(pc.equal(pc.floor(numbers), numbers), pc.is_finite(numbers))).as_py()
    return pa.string() if are_whole else pa.float64()


def json_chunks(file: str, start: Position, schema: Any, options: Options, bad: BadRows) -> Iterator[Chunk]:
    """Iterate over the chunks of one file from a position on."""
    row = start.row + 1
    for lines in read_lines([file], start, options.block_size):
        batch, count = _parse_block(lines, row, schema, bad, options.na_values)
        schema = batch.schema.remove_metadata()
        row += count
        position = Position(0, lines.position.offset, row - 1)
        yield Chunk(batch, lines.file, row - count, position, optional=True)


def read_objects(objects: Sequence[dict[str, Any]], types: dict[str, Any], file: str) -> Chunk:
    """Convert JSON objects to a chunk with the columns of ``types`` and any further keys of the objects."""
    flat = [flattened(record) for record in objects]
    arrays = {}
    for name in dict.fromkeys([*types, *(name for record in flat for name in record)]):
        values = [record.get(name) for record in flat]
        dtype = types[name] if name in types else _type_of(name, values, file)
        if dtype is not None:
            arrays[name] = _array(name, values, dtype, file)
    return Chunk(pa.record_batch(arrays), file, 1, Position())


def flattened(value: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Flatten nested objects; the keys become paths such as ``a.b``."""
    if not path and dict not in map(type, value.values()):
        return value
    flat: dict[str, Any] = {}
    for name, part in value.items():
        flat |= flattened(part, f"{path}{name}.") if isinstance(part, dict) else {path + name: part}
    return flat


def _type_of(name: str, values: list[Any], file: str) -> Any:
    """Infer the type of a column from its first value; None if there is no value."""
    row = next((row for row, value in enumerate(values) if value is not None), 0)
    try:
        arrow_type = _inferred(name, values[row]).type
    except DataError as error:
        raise DataError(error.problem, file, row + 1, error.column, "correct the row") from None
    return None if _is_empty(arrow_type) else _widened(arrow_type)


def _array(name: str, values: list[Any], dtype: Any, file: str) -> Any:
    """Convert values to an array of a type; they are converted one by one only if one of them does not fit."""
    types = {int} if pa.types.is_integer(dtype) else _PLAIN.get(family(dtype), set())  # Arrow would cut 1.5 to 1
    if set(map(type, values)) <= {type(None), *types}:
        with suppress(OverflowError, UnicodeEncodeError):  # integers beyond the range of floats, lone surrogates
            return number_array(np.array(values, np.float64)) if pa.types.is_float64(dtype) else pa.array(values, dtype)
    converted = []
    for row, value in enumerate(values, 1):
        try:
            converted.append(_converted(value, name, dtype))
        except DataError as error:
            raise DataError(error.problem, file, row, name, "correct the row") from None
    return pa.array(converted, dtype)


def _parse_block(lines: Chunk, row: int, schema: Any, bad: BadRows, na_values: Sequence[str]) -> tuple[Any, int]:
    """Parse a block with the columns of a schema and new ones; return the rows, and their number with bad rows."""
    try:
        batch = _parse(lines.data, schema)
        full_schema = _extended(schema, batch.schema)
        if full_schema != schema:
            batch = _parse(lines.data, full_schema)  # Arrow infers dates, which are strings in the schema
        return batch.select(full_schema.names).cast(full_schema), batch.num_rows
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return _good_rows(lines, row, schema, bad, na_values)


def _parse(data: Any, schema: Any) -> Any:
    if _PERHAPS_LONE_NULL.search(data) and _LONE_NULL.search(data):
        raise pa.ArrowInvalid("null is no object")
    if is_too_deep(data):
        raise pa.ArrowInvalid(_TOO_DEEP)
    table = arrow_json.read_json(
        pa.BufferReader(pa.py_buffer(data)),
        read_options=arrow_json.ReadOptions(block_size=len(data) + 1, use_threads=False),
        parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer"),
    )
    batch = to_batch(table)
    batch.validate(full=True)  # the parser accepts strings that are not UTF-8
    return batch


def _widened(arrow_type: Any) -> Any:
    """Widen an inferred type: numbers become floats, dates become strings, and fields of nulls are left out."""
    if pa.types.is_struct(arrow_type):
        return pa.struct([(field.name, _widened(field.type)) for field in arrow_type if not _is_empty(field.type)])
    if pa.types.is_list(arrow_type):
        return pa.list_(_widened(arrow_type.value_type))
    kind = family(arrow_type)
    return arrow_type if kind in {"boolean", "nested"} else pa.float64() if kind == "number" else pa.string()


def _extended(schema: Any, sampled: Any) -> Any:
    """Extend a schema, or the fields of a struct, by new columns, except columns with only nulls."""
    types_by_name = {field.name: field.type for field in schema}
    for field in sampled:
        known = types_by_name.get(field.name)
        if known is None and not _is_empty(field.type):
            types_by_name[field.name] = _widened(field.type)
        elif known is not None and pa.types.is_struct(known) and pa.types.is_struct(field.type):
            types_by_name[field.name] = pa.struct([*_extended(known, field.type)])
    return pa.schema(list(types_by_name.items()))


def _is_empty(arrow_type: Any) -> bool:
    """Whether a type is uninformative: nulls, lists of nulls, or objects with only such fields."""
    if pa.types.is_struct(arrow_type):
        return all(_is_empty(field.type) for field in arrow_type)
    return pa.types.is_null(arrow_type.value_type if pa.types.is_list(arrow_type) else arrow_type)


def _good_rows(lines: Chunk, row: int, schema: Any, bad: BadRows, na_values: Sequence[str]) -> tuple[Any, int]:
    """Parse a block line by line, and report bad lines."""
    texts = [text for text in lines.data.tobytes().split(b"\n") if text.strip()]
    good, numbers = [], []
    for number, text in enumerate(texts, row):
        try:
            record = _read(text)
            known = {*schema.names}
            new_items = (item for item in record.items() if item[0] not in known or isinstance(item[1], dict))
            fields = _extended(schema, pa.schema([_inferred(name, value) for name, value in new_items]))
            good.append(
                {field.name: _converted(record.get(field.name), field.name, field.type, na_values) for field in fields}
            )
        except DataError as error:
            bad.report(error.problem, lines.file, number, error.column)
            continue
        schema = fields
        numbers.append(number)
    arrays = [pa.array([record.get(field.name) for record in good], field.type) for field in schema]
    batch = pa.record_batch(arrays, schema=schema)
    return with_row_numbers(batch, np.array(numbers, np.int64)), len(texts)


def _inferred(name: str, value: Any) -> Any:
    """Infer the field of a column from its first value; raise a DataError if it has no single type."""
    try:
        return pa.field(name, pa.infer_type([value]))
    except UnicodeEncodeError:  # in the value or the name
        raise DataError(_LONE_SURROGATE, column=ascii(name)) from None
    except (pa.ArrowException, OverflowError):
        raise DataError(f"{shown(value)} is not of one type", column=name) from None


def _converted(value: Any, name: str, dtype: Any, na_values: Sequence[str] = ()) -> Any:
    """Convert a value to a type, or raise a DataError. As in CSV, strings may be numbers."""
    expected, kinds = _KINDS["nested" if pa.types.is_struct(dtype) else family(dtype)]
    if value is None:
        return None
    if isinstance(value, str) and pa.types.is_floating(dtype):
        value = value.strip()
        if value in _MISSING or value in na_values:
            return None
        value = float(value) if is_plain_number(value) else value
    if pa.types.is_string(dtype) and type(value) is int and abs(value) >= 2**53:
        return str(value)  # an identifier, whose digits must be kept
    fits = isinstance(value, kinds) and isinstance(value, bool) == (bool in kinds)
    if not fits or isinstance(value, dict) != pa.types.is_struct(dtype):
        raise DataError(f"{shown(value)} is not {expected}", column=name)
    if isinstance(value, dict):
        return {member.name: _converted(value.get(member.name), name, member.type, na_values) for member in dtype}
    if isinstance(value, list):
        return [_converted(item, name, dtype.value_type, na_values) for item in value]
    if pa.types.is_integer(dtype) and not (isinstance(value, int) and abs(value) < 2**63):
        raise DataError(f"{shown(value)} is not a whole number of 64 bits", column=name)
    if pa.types.is_floating(dtype):
        return float(value) if abs(value) <= MOST else math.inf if value > 0 else -math.inf
    if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise DataError(_LONE_SURROGATE, column=name)
    return value


def _read(text: bytes) -> dict[str, Any]:
    """Parse the object of a line, or raise a DataError."""
    if is_too_deep(text):
        raise DataError(_TOO_DEEP)
    try:
        record = _DECODER.decode(text.decode(json.detect_encoding(text), "surrogatepass"))
    except UnicodeDecodeError:
        raise DataError("the line is not text in UTF-8") from None
    except ValueError as error:
        raise DataError(f"the line is not JSON ({error})") from None
    if not isinstance(record, dict):
        raise DataError("the line is not a JSON object")
    return record


def shown(value: Any) -> str:
    """Format a value for a message: a string by ``repr``, any other value as JSON."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=repr)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _without_strings(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Replace strings by None in columns with more numbers than strings that are not numbers."""
    words, numbers = Counter[str](), Counter[str]()
    for name, value in (item for record in records for item in record.items()):
        words[name] += isinstance(value, str) and not (value.strip() in _MISSING or is_plain_number(value.strip()))
        numbers[name] += type(value) in (int, float)
    mixed = {name for name, count in numbers.items() if words[name] < count}
    return [
        {name: None if name in mixed and isinstance(value, str) else value for name, value in record.items()}
        for record in records
    ]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a name appears twice")
    return record


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)
JSON_LINES = TableReader(json_schema, json_chunks, optional=True)
