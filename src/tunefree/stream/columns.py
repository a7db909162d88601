"""Columns of a table become parts of rows: numbers, one-hot codes and words.

Each kind of column converts an Arrow array, whatever its type in this chunk, to the type it had when the encoder was
made (``convert``; a value that does not fit is a fault of its row), and then makes parts of rows of it (``parts``).
A missing value (null, NaN, ``?`` or blank) becomes one feature, which says that the column is missing in this row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.core.errors import DataError
from tunefree.stream.arrays import bytes_of, is_missing, of_booleans, of_strings, to_booleans, to_numpy
from tunefree.stream.keys import hash_name, hash_strings
from tunefree.stream.names import NamesOf, one_by_one
from tunefree.stream.notation import Notation, stands_for_missing

UNLABELLED = "the target is missing"
MISSING = ("", "?", "nan", "NaN")  # strings that stand for a missing value, white space around them removed
_MISSING = of_strings(MISSING)
_WORDS = of_strings(("false", "true", "f", "t", "no", "yes", "n", "y", "0", "1"))  # falsehoods and truths in turn
_BOTH = _WORDS[:2]

OF_WORDS, RARE_WORD = "values of several words, most of them different", "numbers, but for"  # doubts

Array = Any  # pyarrow.Array: it ships no types


class Codes(NamedTuple):
    """One-hot codes of a chunk."""

    places: np.ndarray  # (n,) int32: which key each row holds, -1 for none
    keys: np.ndarray  # (k,) uint64: what the feature is known by
    names: NamesOf  # of the features of the keys


class Words(NamedTuple):
    """Words of the texts of some rows, no row holding one twice."""

    counts: np.ndarray  # (n,) int64: how many there are in each row
    keys: np.ndarray  # (words,) uint64
    values: np.ndarray  # (words,) float64
    names: NamesOf  # of the features of the keys


class Bags(NamedTuple):
    """The words of each row of a chunk. They take more memory than texts, so they are asked for piece by piece."""

    sizes: np.ndarray  # (n,) int64: bytes of each row's text, or how many words it has, by which pieces are cut
    of_rows: Callable[[int, int], Words]  # of the rows from one to before another

    @classmethod
    def of(cls, words: Words) -> Bags:
        """The bags of words that there are already."""
        ends = np.append(0, np.cumsum(words.counts))

        def of_rows(start: int, stop: int) -> Words:
            first, last = ends[start], ends[stop]
            own = words.keys[first:last], words.values[first:last]
            return Words(words.counts[start:stop], *own, lambda places: words.names(places + first))

        return cls(words.counts, of_rows)


class Parts(NamedTuple):
    """What a column adds to the rows of a chunk."""

    numbers: list[np.ndarray]  # (n,) float64 each, 0 where it is missing
    codes: list[Codes]
    bags: list[Bags]


class Fault(NamedTuple):
    """Why a row cannot be used."""

    column: str
    problem: str


class Faults(dict[int, Fault]):
    """The first fault of each row of a chunk, by the row's place in the chunk."""

    def add(self, rows: np.ndarray | list[int], column: str, problem: Callable[[int], str]) -> None:
        for row in rows:
            self.setdefault(int(row), Fault(column, problem(int(row))))


class Number:
    """Integers, floats and decimals as they are; durations in days; texts in a notation of numbers.

    Parameters
    ----------
    name : str
    decimal : str, optional
        The decimal mark of numbers that are written as texts; None for plain numbers.
    thousands : str, default=""
        Between their groups of three digits.
    """

    kind: ClassVar[str] = "number"
    families: ClassVar[frozenset[str]] = frozenset({"number", "boolean", "string", "duration", "null"})

    def __init__(self, name: str, decimal: str | None = None, thousands: str = "") -> None:
        self.name = name
        self.notation = None if decimal is None else Notation(decimal, thousands)
        self.missing_key = missing_key(name)

    def names(self) -> list[str]:
        """Names of the numbers that the column adds."""
        return [self.name]

    def code_names(self) -> list[str]:
        """What each of the codes that the column adds tells of a row."""
        return [missing_name(self.name)]

    def arrow_type(self) -> Any:
        """The type to read the column as from a text."""
        return pa.string() if self.notation else pa.float64()

    def options(self) -> dict[str, Any]:
        """What, besides kind and name, makes the column again."""
        return self.notation._asdict() if self.notation else {}

    def told(self) -> str:
        """How the values are written, where it is worth a word."""
        return self.notation.told() if self.notation else ""

    def convert(self, array: Array, faults: Faults) -> np.ndarray:
        values = to_numbers(array, self.name, faults, self.notation)
        infinite = np.isinf(values)
        if infinite.any():
            faults.add(np.flatnonzero(infinite), self.name, lambda row: f"the number is infinite ({values[row]})")
        return values

    def parts(self, values: np.ndarray, learning: bool) -> Parts:
        missing = np.isnan(values)
        if not missing.any():
            return Parts([values], [], [])
        return Parts([np.where(missing, 0.0, values)], [missing_codes(self.name, missing)], [])


class Category:
    """Strings, categories: one-hot.

    Parameters
    ----------
    name : str
    numbers : bool, default=False
        Whether numbers, dates and times may be categories too.
    doubt : (str, str), optional
        What lets the values look like something else than categories, and such a value, or nothing.
    """

    kind: ClassVar[str] = "category"
    families: frozenset[str] = frozenset({"string", "category", "boolean", "null"})

    def __init__(self, name: str, numbers: bool = False, doubt: Sequence[str] = ()) -> None:
        self.name, self.numbers, self.doubt = name, numbers, tuple(doubt)
        if numbers:
            self.families = self.families | {"number", "moment", "time", "duration"}
        self.seed = hash_name("=", hash_name(name))
        self.missing_key = missing_key(name)

    def names(self) -> list[str]:
        return []

    def code_names(self) -> list[str]:
        return [self.name]

    def arrow_type(self) -> Any:
        return pa.string()

    def options(self) -> dict[str, Any]:
        return ({"numbers": True} if self.numbers else {}) | ({"doubt": [*self.doubt]} if self.doubt else {})

    def told(self) -> str:
        return ""

    def convert(self, array: Array, faults: Faults) -> tuple[np.ndarray, Array]:
        """The place of each row's category in the list of the chunk's categories, and the list."""
        encoded = to_dictionary(array)
        values = pc.utf8_trim_whitespace(encoded.dictionary.cast(pa.string()))
        index = to_numpy(encoded.indices.cast(pa.int32()), -1)
        gone = missing_strings(values)
        if gone.any():
            index = np.append(np.where(gone, -1, np.arange(len(gone))), -1)[index].astype(np.int32)
        return index, values

    def parts(self, converted: tuple[np.ndarray, Array], learning: bool) -> Parts:
        index, values = converted
        keys = np.append(string_keys(values, self.seed), np.uint64(self.missing_key))
        index = np.where(index < 0, np.int32(len(values)), index)
        return Parts([], [Codes(index, keys, one_by_one(lambda k: self._feature(values, k)))], [])

    def _feature(self, values: Array, k: int) -> str:
        return missing_name(self.name) if k == len(values) else f"{self.name}={values[k].as_py()}"


class Boolean(Category):
    """Booleans: one-hot.

    Parameters
    ----------
    name : str
    words : bool, default=False
        Whether they are written as words, such as yes and no, beside which other values are categories.
    """

    kind: ClassVar[str] = "boolean"

    def __init__(self, name: str, words: bool = False) -> None:
        super().__init__(name)
        self.words = words

    def arrow_type(self) -> Any:
        return pa.string() if self.words else pa.bool_()

    def options(self) -> dict[str, Any]:
        return {"words": True} if self.words else {}

    def convert(self, array: Array, faults: Faults) -> tuple[np.ndarray, Array]:
        if family(array.type) == "boolean":
            return to_numpy(array.cast(pa.int32()), -1), _BOTH
        index, values = super().convert(array, faults)
        encoded = truths(values).dictionary_encode()
        index = np.append(to_numpy(encoded.indices, -1), np.int32(-1))[index]
        if not self.words:
            known = np.append(to_booleans(pc.is_in(encoded.dictionary, value_set=_BOTH)), True)  # the last is missing
            wrong = np.flatnonzero(~known[index])
            faults.add(wrong, self.name, lambda row: f"{decoded(array)[row].as_py()!r} is neither true nor false")
        return index, encoded.dictionary


def truths(strings: Array) -> Array:
    """Strings without white space around them; true and false for words that say so.

    Examples
    --------
    >>> truths(pa.array(["Yes", "F", "perhaps", None])).to_pylist()
    ['true', 'false', 'perhaps', None]
    """
    words = pc.index_in(pc.utf8_lower(strings), value_set=_WORDS)
    return pc.coalesce(_BOTH.take(pc.bit_wise_and(words, 1)), strings)


def looks_like_booleans(strings: Array) -> bool:
    """Whether strings are words for true and false, both of them.

    Examples
    --------
    >>> looks_like_booleans(pa.array(["Yes", "no", None])), looks_like_booleans(pa.array(["Y", "N", "U"]))
    (True, False)
    """
    words = pc.index_in(pc.utf8_lower(strings.slice(0, 1)), value_set=_WORDS)
    if words.null_count > strings.slice(0, 1).null_count:
        return False
    places = {*pc.index_in(pc.utf8_lower(pc.unique(strings).drop_null()), value_set=_WORDS).to_pylist()}
    return any(places <= pair and len({place % 2 for place in places}) == 2 for pair in ({0, 1, 2, 3}, {4, 5, 6, 7}))


def missing_key(column: str) -> int:
    """The key of the feature that says that a column is missing."""
    return hash_name("missing", hash_name(column))


def missing_name(column: str) -> str:
    return f"{column}[missing]"


def missing_codes(column: str, missing: np.ndarray) -> Codes:
    """Codes of the rows in which a column is missing."""
    keys = np.array([missing_key(column)], np.uint64)
    return Codes(np.where(missing, np.int32(0), np.int32(-1)), keys, one_by_one(lambda k: missing_name(column)))


def missing_strings(values: Array) -> np.ndarray:
    """Which strings are missing values."""
    return to_booleans(pc.is_in(values, value_set=_MISSING)) | is_missing(values)


def string_keys(values: Array, seed: int) -> np.ndarray:
    """The keys of an array of strings; nulls have one too."""
    return hash_strings(*bytes_of(values), seed)


def to_dictionary(array: Array) -> Array:
    """Dictionary-encode; a dictionary with many more entries than the chunk has rows is cut to those in use."""
    if not pa.types.is_dictionary(array.type):
        return (array.cast(pa.string()) if family(array.type) != "string" else array).dictionary_encode()
    if len(array.dictionary) > max(len(array), 1024):
        return decoded(array).dictionary_encode()
    return array


def decoded(array: Array) -> Array:
    """The array without dictionary encoding."""
    if not pa.types.is_dictionary(array.type):
        return array
    values = array.dictionary
    return (values.cast(pa.string()) if pa.types.is_string_view(values.type) else values).take(array.indices)


def blank_to_null(array: Array) -> Array:
    """Strings without white space around them, null where they are missing values; other arrays as they are."""
    if family(array.type) != "string":
        return array
    trimmed = pc.utf8_trim_whitespace(array.cast(pa.string()))
    gone = missing_strings(trimmed)
    return pc.if_else(of_booleans(gone), pa.nulls(len(trimmed), pa.string()), trimmed) if gone.any() else trimmed


def to_numbers(array: Array, column: str, faults: Faults, notation: Notation | None = None) -> np.ndarray:
    """Float64, NaN where the array is missing; what is not a number becomes a fault of its row.

    Parameters
    ----------
    array : pyarrow.Array
    column : str
        For messages.
    faults : Faults
    notation : Notation, optional
        How numbers are written in strings; plainly if None.
    """
    array = decoded(array)
    if notation is not None and family(array.type) == "string":
        strings = blank_to_null(array)
        here = notation.fits(strings)
        wrong = np.flatnonzero(~here & ~stands_for_missing(strings))
        remedy = "--na-values says what stands for a missing one"
        faults.add(wrong, column, lambda row: f"{strings[row].as_py()!r} is not a number ({remedy})")
        array = notation.numbers(pc.if_else(of_booleans(here), strings, pa.nulls(len(strings), pa.string())))
    if pa.types.is_duration(array.type):
        units = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[array.type.unit] * 86400.0
        return to_numbers(array.cast(pa.int64()), column, faults) / units
    numbers, failed = cast(blank_to_null(array), pa.float64())
    faults.add(failed, column, lambda row: f"{array[row].as_py()!r} is not a number")
    return to_numpy(numbers, np.nan)


def valid_utf8(array: Array, column: str, faults: Faults) -> Array:
    """The array; strings that are not UTF-8 become null and faults of their rows."""
    if family(array.type) != "string":
        return array
    try:
        array.validate(full=True)
        return array
    except pa.ArrowInvalid:
        strings, failed = cast(decoded(array).cast(pa.binary()), pa.string(), safe=True)
    faults.add(failed, column, lambda row: "the text is not UTF-8")
    return strings


def cast(array: Array, to: Any, safe: bool = False) -> tuple[Array, list[int]]:
    """Cast; elements that do not fit become null and their places are listed."""
    try:
        return array.cast(to, safe=safe), []
    except pa.ArrowInvalid:
        failed = _unfit(array, to, safe, 0)
    mask = np.zeros(len(array), bool)
    mask[failed] = True
    return pc.if_else(of_booleans(mask), pa.nulls(len(array), array.type), array).cast(to, safe=safe), failed


def _unfit(array: Array, to: Any, safe: bool, start: int) -> list[int]:
    """Places of the elements that cannot be cast, found by halving."""
    try:
        array.cast(to, safe=safe)
        return []
    except pa.ArrowInvalid:
        if len(array) == 1:
            return [start]
        half = len(array) // 2
        return _unfit(array[:half], to, safe, start) + _unfit(array[half:], to, safe, start + half)


_FAMILIES: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("null", pa.types.is_null),
    ("boolean", pa.types.is_boolean),
    ("number", pa.types.is_integer),
    ("number", pa.types.is_floating),
    ("number", pa.types.is_decimal),
    ("string", pa.types.is_string),
    ("string", pa.types.is_large_string),
    ("string", pa.types.is_string_view),
    ("moment", pa.types.is_date),
    ("moment", pa.types.is_timestamp),
    ("time", pa.types.is_time),
    ("duration", pa.types.is_duration),
)


_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_OF_LISTS = {"string": "strings", "null": "strings", "number": "numbers"}


@cache
def family(arrow_type: Any) -> str:
    """The family of an Arrow type; a dictionary of numbers, booleans or times is a category.

    Lists of strings or numbers have families of their own; lists of nothing count as lists of strings.

    Examples
    --------
    >>> family(pa.int8()), family(pa.large_string()), family(pa.list_(pa.int8())), family(pa.struct([]))
    ('number', 'string', 'numbers', 'nested')
    """
    if pa.types.is_dictionary(arrow_type):
        of_values = family(arrow_type.value_type)
        of_values = "nested" if of_values in _OF_LISTS.values() else of_values
        return of_values if of_values in ("string", "nested") else "category"
    if any(test(arrow_type) for test in _LISTS):
        return _OF_LISTS.get(family(arrow_type.value_type), "nested")
    return next((name for name, test in _FAMILIES if test(arrow_type)), "nested")


def row_numbers(chunk: Any) -> np.ndarray:
    """Numbers of the rows of a chunk in its file; a chunk whose bad rows were left out carries them."""
    carried = (chunk.table.schema.metadata or {}).get(_ROWS)
    if carried is not None:
        return np.frombuffer(carried, np.int64)
    return np.arange(chunk.row, chunk.row + chunk.table.num_rows, dtype=np.int64)


def with_row_numbers(table: Any, numbers: np.ndarray) -> Any:
    """The record batch, carrying the numbers of its rows."""
    return table.replace_schema_metadata({_ROWS: numbers.astype(np.int64).tobytes()})


_ROWS = b"tunefree.row_numbers"


def unsupported_type(name: str, arrow_type: Any, file: str) -> DataError:
    """The error for a column of a type that has no features."""
    return DataError(
        f"columns of type {arrow_type} cannot be used", file, column=name, remedy=f"pass --ignore {name!r}"
    )
