"""Kinds of table columns, and their features: numbers, one-hot codes and words.

A column first converts the Arrow array of a chunk, of any type, to the type of the column in training (``convert``). A
value that does not fit is an error of its row. The column then computes features of the converted values (``parts``).
A missing value (null, NaN, ``?`` or blank) becomes an indicator feature. Later columns are empty in the first chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.compiled.functions import compiled
from tunefree.core.errors import DataError
from tunefree.core.schema import Length, Moment
from tunefree.stream.arrays import (
    DTYPES,
    boolean_array,
    bytes_of,
    cast,
    is_missing,
    nulled,
    number_array,
    plain_numbers,
    string_array,
    strings_of,
    to_booleans,
    to_numpy,
)
from tunefree.stream.batch import UNLABELLED, BadRows, Chunk, row_numbers, with_row_numbers
from tunefree.stream.keys import as_number, category_seed, hash_name, hash_strings, missing_key
from tunefree.stream.notation import Notation, Note, as_iso, dates_in, is_plain_number, likeliest_notation
from tunefree.stream.spellings import DASHES, MISSING, NULLS, SIGNS_OF_MISSING, TRUTHS
from tunefree.stream.words import count_words

NA_VALUES = "`na_values` names the strings for missing values"
_MISSING, SIGNS = string_array(MISSING), string_array(SIGNS_OF_MISSING)

OF_WORDS, RARE_WORD = "values of several words, most of them different", "numbers, but for"  # Category.doubt
LIKE_DATES = "values that look like dates, such as"

TRUTH_WORDS = string_array(TRUTHS)
_BOOLEANS = TRUTH_WORDS[:2]
MICROSECONDS_A_DAY = 86_400_000_000
_MICROSECONDS_AN_HOUR = 3_600_000_000

QUANTITIES = ("number", "moment", "time")  # kinds of columns in which words may be missing values

Array = Any  # pyarrow.Array: it ships no types
NamesOf = Callable[[np.ndarray], Array]  # indices of keys -> names of their features

_FAMILIES: dict[str, tuple[Callable[[Any], bool], ...]] = {
    "null": (pa.types.is_null,),
    "boolean": (pa.types.is_boolean,),
    "number": (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
    "string": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "moment": (pa.types.is_date, pa.types.is_timestamp),
    "time": (pa.types.is_time,),
    "duration": (pa.types.is_duration,),
}
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_LIST_FAMILIES = {"string": "strings", "null": "strings", "number": "numbers"}


def one_by_one(name: Callable[[int], str]) -> NamesOf:
    """Names of features by a function of the index of one key."""
    return lambda indices: string_array([name(k) for k in indices.tolist()])


def prefixed_strings(prefix: str, text: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> Array:
    """Strings of a prefix and the bytes of a text between each start and stop."""
    prefix_bytes, sizes = np.frombuffer(prefix.encode(), np.uint8), stops - starts
    ends = np.cumsum(sizes + len(prefix_bytes))
    names = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    copy_parts(prefix_bytes, text, starts, sizes, names)
    return strings_of(names, ends)


@compiled
def copy_parts(
    front: Annotated[np.ndarray, "uint8[front]"],
    text: Annotated[np.ndarray, "uint8[bytes]"],
    starts: Annotated[np.ndarray, "int64[parts]"],
    sizes: Annotated[np.ndarray, "int64[parts]"],
    written: Annotated[np.ndarray, "uint8[written]"],
) -> None:
    """Copy parts of a text one after the other, each behind the same front."""
    place = 0
    for k in range(len(starts)):
        for i in range(len(front)):
            written[place + i] = front[i]
        place += len(front)
        for i in range(sizes[k]):
            written[place + i] = text[starts[k] + i]
        place += sizes[k]


class Codes(NamedTuple):
    """One-hot codes of a chunk."""

    places: np.ndarray  # (n,) int32: index of each row's key, -1 for none
    keys: np.ndarray  # (k,) uint64: hash keys of the features
    names: NamesOf  # of the features of the keys

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """A number for the code of each row. It is derived from the key, so it does not depend on the rows."""
        return as_number(self.keys[self.places[rows]])


class Words(NamedTuple):
    """The words of the texts of some rows; each occurs once in a row."""

    sizes: np.ndarray  # (n,) int64: number of words in each row
    keys: np.ndarray  # (words,) uint64
    values: np.ndarray  # (words,) float64
    names: NamesOf  # of the features of the keys

    def row_words(self, start: int, stop: int) -> Words:
        """The words of the rows from ``start`` up to ``stop``."""
        first, last = int(self.sizes[:start].sum()), int(self.sizes[:stop].sum())
        keys, values = self.keys[first:last], self.values[first:last]
        return Words(self.sizes[start:stop], keys, values, lambda indices: self.names(indices + first))


class TextWords(NamedTuple):
    """The words of texts. They take more memory than the texts, so they are computed in pieces."""

    sizes: np.ndarray  # (n,) int64: bytes of each text, to choose the pieces
    row_words: Callable[[int, int], Words]  # (start, stop) -> words of these rows


class Observed(NamedTuple):
    """The values of a column of any kind in the rows of a chunk, for the profile of the data."""

    missing: np.ndarray  # (n,) bool
    numbers: np.ndarray | None = None  # (n,) float64, NaN where missing; the profile keeps their range
    values_of: Callable[[np.ndarray], np.ndarray] | None = None  # row indices -> numbers whose distribution is compared


class Parts(NamedTuple):
    """The features that a column adds to the rows of a chunk."""

    numbers: list[np.ndarray]  # (n,) float64 each, 0 where missing
    codes: list[Codes]
    words: Sequence[Words | TextWords]
    observed: Observed | None = None  # None for a later column that the chunk lacks


class Faults(dict[int, tuple[str, str]]):
    """The column and the problem of the first error of each row of a chunk, by row index; and notes on used rows."""

    def __init__(self, options: Collection[str] = ()) -> None:
        super().__init__()
        self.options = options  # parameters of the user that messages may suggest
        self.notes: list[tuple[Note, np.ndarray]] = []  # each with the indices of its rows

    def add(self, rows: np.ndarray | list[int], column: str, problem: Callable[[int], str]) -> None:
        for row in rows:
            self.setdefault(int(row), (column, problem(int(row))))

    def without(self, chunk: Chunk, bad: BadRows) -> Chunk:
        """The chunk without its bad rows. These are reported in their order."""
        numbers = row_numbers(chunk)
        for row, (column, problem) in sorted(self.items()):
            is_unlabelled = problem.startswith(UNLABELLED)
            remedy = "give it one" if is_unlabelled else "correct the row"
            bad.report(problem, chunk.file, int(numbers[row]), column, remedy, is_unlabelled)
        keep = np.ones(len(numbers), bool)
        keep[list(self)] = False
        return chunk._replace(data=with_row_numbers(chunk.data.filter(boolean_array(keep)), numbers[keep]))


@dataclass(eq=False)
class Column:
    """A column of a table. Subclasses are the kinds of columns; their fields are written to model files."""

    kind: ClassVar[str]
    arrow_type: ClassVar[Any] = pa.string()  # the type in which a text source reads the column
    name: str
    # The number, from 1, of the row with its first value if the column came later in the stream; else 0.
    since: int = field(default=0, kw_only=True)

    def state(self) -> dict[str, Any]:
        """The kind and the fields, for the header of a file."""
        return {"kind": self.kind} | written_fields(self)

    def dense_names(self) -> list[str]:
        """Names of the numbers that are columns of dense rows; later columns have none."""
        return [] if self.since else self.names()

    def names(self) -> list[str]:
        """Names of the numeric features of the column."""
        return []

    def code_names(self) -> list[str]:
        """Names of the codes of the column."""
        return [missing_name(self.name)]

    def description(self) -> str:
        """A phrase that describes an unusual notation of the values; else empty."""
        return ""

    def parts(self, values: Any, learning: bool) -> Parts:
        """The features of the column in the rows of a chunk, from its converted values."""
        raise NotImplementedError

    def parts_since(self, values: Any, learning: bool) -> Parts:
        """The features of the column; the numbers of a later column are entries of sparse rows.

        Views do not centre these entries, and scale them like words. A row without the column has no feature.
        """
        if not self.since:
            return self.parts(values, learning)
        if values is None:
            return Parts([], [], [])
        numbers, codes, words, observed = self.parts(values, learning)
        entries = [_entries(name, array) for name, array in zip(self.names(), numbers, strict=True)]
        return Parts([], [part for part in codes if (part.places >= 0).any()], [*entries, *words], observed)

    def missing_codes(self, missing: np.ndarray) -> list[Codes]:
        """Codes of the rows where the column is missing; empty if there are none, and for later columns."""
        if self.since or not missing.any():
            return []
        keys = np.array([missing_key(self.name)], np.uint64)
        indices = np.where(missing, np.int32(0), np.int32(-1))
        return [Codes(indices, keys, one_by_one(lambda k: missing_name(self.name)))]


def written_fields(record: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, for the header of a file."""
    values = {field.name: (getattr(record, field.name), field.default) for field in fields(record)}
    changed = {name: value for name, (value, usual) in values.items() if value != usual}
    return {name: [*value] if isinstance(value, tuple) else value for name, value in changed.items()}


def number_key(name: str) -> int:
    """The key of a numeric feature of a later column."""
    return hash_name("number", hash_name(name))


def _entries(name: str, values: np.ndarray) -> Words:
    """Numbers as entries of sparse rows; zeros are left out."""
    present = values[values != 0.0]
    keys = np.full(len(present), number_key(name), np.uint64)
    return Words((values != 0.0).astype(np.int64), keys, present, one_by_one(lambda k: name))


def missing_name(column: str) -> str:
    return f"{column}[missing]"


def string_keys(values: Array, seed: int) -> np.ndarray:
    """The keys of an array of strings; nulls have one too."""
    return hash_strings(*bytes_of(values), seed)


def to_dictionary(array: Array) -> Array:
    """Dictionary-encode. If a dictionary is much longer than the chunk, its unused entries are dropped."""
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


@lru_cache(maxsize=256)
def family(arrow_type: Any) -> str:
    """The family of an Arrow type; a dictionary of numbers, booleans or times is a category."""
    if pa.types.is_dictionary(arrow_type):
        value_family = family(arrow_type.value_type)
        value_family = "nested" if value_family in _LIST_FAMILIES.values() else value_family
        return value_family if value_family in ("string", "nested") else "category"
    if any(test(arrow_type) for test in _LISTS):
        return _LIST_FAMILIES.get(family(arrow_type.value_type), "nested")
    return next((name for name, tests in _FAMILIES.items() if any(test(arrow_type) for test in tests)), "nested")


def missing_strings(values: Array, words: Sequence[str] = ()) -> np.ndarray:
    """A mask of strings that are missing values, including the given words."""
    known = string_array((*MISSING, *words)) if words else _MISSING
    return to_booleans(pc.is_in(values, value_set=known)) | is_missing(values)


def blank_to_null(array: Array, words: Sequence[str] = ()) -> Array:
    """Trimmed strings, null where they are missing values or one of the words; other arrays unchanged."""
    if family(array.type) != "string":
        return array
    trimmed = pc.utf8_trim_whitespace(array.cast(pa.string()))
    return nulled(trimmed, missing_strings(trimmed, words))


def without(array: Any, na_values: Sequence[str]) -> Any:
    """The array with nulls in place of some strings or numbers."""
    kind = family(array.type)
    if not na_values or kind not in ("string", "number"):
        return array
    array = decoded(array)
    if kind == "string":
        is_na = pc.is_in(pc.utf8_trim_whitespace(array), value_set=string_array(na_values).cast(array.type))
    else:
        numbers = [float(text) for text in na_values if is_plain_number(text)]
        is_na = pc.is_in(array.cast(pa.float64(), safe=False), value_set=pa.array(numbers, pa.float64()))
    return nulled(array, is_na)


def without_words(array: Array, column: str, na_values: Sequence[str], faults: Faults) -> Array:
    """Strings of numbers or dates, null where they are signs of missing ones or words; words and dashes are noted."""
    return _without_words(array, column, (*SIGNS_OF_MISSING, *na_values), faults, {*DASHES, *na_values})


def without_nulls(array: Array, column: str, kept: Collection[str], faults: Faults) -> Array:
    """Strings of a text source, which has no nulls, with nulls in place of words such as NA; these are noted."""
    words = [word for word in NULLS if word not in kept]
    if pa.types.is_dictionary(array.type) and family(array.type) == "string":
        values = pc.utf8_trim_whitespace(array.dictionary.cast(pa.string()))
        if not pc.any(pc.is_in(values, value_set=string_array(words))).as_py():
            return array
    return _without_words(array, column, words, faults)


def _without_words(
    array: Array, column: str, words: Sequence[str], faults: Faults, odd: Collection[str] | None = None
) -> Array:
    """Strings with nulls in place of ``words``; only ``odd`` ones are noted, or all if that is None."""
    if family(array.type) != "string":
        return array
    strings = blank_to_null(decoded(array))
    is_word = pc.is_in(strings, value_set=string_array(words))
    if not pc.any(is_word).as_py():
        return strings
    remedy = f"`categorical={column!r}` makes it a category" if "categorical" in faults.options else ""
    named, where = (column, "") if odd is not None else ("", " in columns of texts")  # all of these share one note
    for word in pc.unique(strings.filter(is_word)).to_pylist():
        if odd is None or word in odd:
            note = Note(named, f"{word!r} is taken for a missing value{where}", remedy)
            faults.notes.append((note, np.flatnonzero(to_booleans(pc.equal(strings, word)))))
    return nulled(strings, is_word)


def to_numbers(array: Array, column: str, faults: Faults, notation: Notation | None = None, *hints: str) -> np.ndarray:
    """Float64, NaN where the array is missing; values that are no numbers are errors of their rows, with ``hints``."""
    array = decoded(array)
    if notation is None and family(array.type) == "string":
        numbers = plain_numbers(array)
        array = without_words(array, column, (), faults) if numbers is None else numbers
    if array.type in DTYPES:
        numbers = to_numpy(array, 0).astype(np.float64, copy=False)
        return np.where(is_missing(array), np.nan, numbers) if array.null_count else numbers
    if notation is not None and family(array.type) == "string":
        strings = blank_to_null(array, SIGNS_OF_MISSING)
        fits = notation.fits(strings)
        failed_rows = np.flatnonzero(~fits & ~is_missing(strings))
        faults.add(failed_rows, column, lambda row: not_a_number(strings[row].as_py(), *hints))
        array = notation.numbers(nulled(strings, ~fits))
    if pa.types.is_duration(array.type):
        units = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[array.type.unit] * 86400.0
        return to_numbers(array.cast(pa.int64()), column, faults) / units
    numbers, failed = cast(blank_to_null(array), pa.float64())
    faults.add(failed, column, lambda row: not_a_number(array[row].as_py(), *hints))
    return to_numpy(numbers, np.nan)


def not_a_number(value: str, *hints: str) -> str:
    """The error message for a text in a column of numbers, with options that may help."""
    fits = likeliest_notation(string_array([value])).fits(string_array([value]))[0]
    hint = "`decimal` and `thousands` say how numbers are written" if fits else NA_VALUES
    return f"{value!r} is not a number ({', '.join([hint, *hints])})"


@dataclass(eq=False)
class Number(Column):
    """Integers, floats and decimals; durations in days; texts in a notation, by default plain numbers."""

    kind: ClassVar[str] = "number"
    families: ClassVar[frozenset[str]] = frozenset({"number", "boolean", "string", "duration", "null"})
    notation: Notation | None = None
    na_values: Sequence[str] = ()

    def names(self) -> list[str]:
        return [self.name]

    @property
    def arrow_type(self) -> Any:
        return pa.string() if self.notation or self.na_values else pa.float64()

    def description(self) -> str:
        return self.notation.description() if self.notation else ""

    def convert(self, array: Array, faults: Faults) -> np.ndarray:
        is_named = "categorical" in faults.options
        hints = [f"`categorical={self.name!r}` takes the column for categories"] if is_named else []
        if self.notation or self.na_values:
            array = without_words(array, self.name, self.na_values, faults)
        values = to_numbers(array, self.name, faults, self.notation, *hints)
        infinite = np.isinf(values)
        if infinite.any():
            faults.add(np.flatnonzero(infinite), self.name, lambda row: f"the number is infinite ({values[row]})")
        return values

    def parts(self, values: np.ndarray, learning: bool) -> Parts:
        missing = np.isnan(values)
        numbers = np.where(missing, 0.0, values) if missing.any() else values
        return Parts([numbers], self.missing_codes(missing), [], Observed(missing, values, values.__getitem__))


@dataclass(eq=False)
class Category(Column):
    """Strings and categories, one-hot; with ``numbers`` also numbers and dates. ``doubt``: why it may be another."""

    kind: ClassVar[str] = "category"
    numbers: bool = False
    doubt: Sequence[str] = ()

    @property
    def families(self) -> frozenset[str]:
        others = {"number", "moment", "time", "duration"} if self.numbers else set()
        return frozenset({"string", "category", "boolean", "null", *others})

    def code_names(self) -> list[str]:
        return [self.name]

    def convert(self, array: Array, faults: Faults) -> tuple[np.ndarray, Array]:
        """The index of each row's category in the chunk's categories, -1 for none, and these categories."""
        encoded = to_dictionary(array)
        values = pc.utf8_trim_whitespace(encoded.dictionary.cast(pa.string()))
        index = to_numpy(encoded.indices.cast(pa.int32()), -1)
        missing = missing_strings(values)
        if missing.any():
            index = np.append(np.where(missing, -1, np.arange(len(missing))), -1)[index].astype(np.int32)
        return index, values

    def parts(self, converted: tuple[np.ndarray, Array], learning: bool) -> Parts:
        index, values = converted
        missing = index < 0
        index = index if self.since else np.where(missing, np.int32(len(values)), index)
        keys = np.append(string_keys(values, category_seed(self.name)), np.uint64(missing_key(self.name)))

        def names(indices: np.ndarray) -> Array:
            category_names = _feature_names(self.name, values.take(number_array(indices, indices == len(values))))
            return pc.coalesce(category_names, string_array([missing_name(self.name)])[0])

        codes = Codes(index, keys, names)
        return Parts([], [codes], [], Observed(missing, None, codes.numbers))


def _feature_names(column: str, strings: Array) -> Array:
    """The names of the features of a column's strings."""
    prefix, separator = string_array([f"{column}=", ""])  # to convert Python strings, Arrow would import pandas
    return pc.binary_join_element_wise(prefix, strings, separator)


@dataclass(eq=False)
class Boolean(Category):
    """Booleans, one-hot. With ``words``, such as yes and no, any other values are further categories."""

    kind: ClassVar[str] = "boolean"
    words: bool = False

    @property
    def arrow_type(self) -> Any:
        return pa.string() if self.words else pa.bool_()

    def convert(self, array: Array, faults: Faults) -> tuple[np.ndarray, Array]:
        if family(array.type) == "boolean":
            return to_numpy(array.cast(pa.int32()), -1), _BOOLEANS
        index, values = super().convert(array, faults)
        words = pc.index_in(pc.utf8_lower(values), value_set=TRUTH_WORDS)
        encoded = pc.coalesce(_BOOLEANS.take(pc.bit_wise_and(words, 1)), values).dictionary_encode()
        index = np.append(to_numpy(encoded.indices, -1), np.int32(-1))[index]
        if not self.words:
            known = np.append(to_booleans(pc.is_in(encoded.dictionary, value_set=_BOOLEANS)), True)  # for missing ones
            wrong_rows = np.flatnonzero(~known[index])
            faults.add(wrong_rows, self.name, lambda row: f"{decoded(array)[row].as_py()!r} is neither true nor false")
        return index, encoded.dictionary


class Instants(NamedTuple):
    """Microseconds since 1970."""

    absolute: np.ndarray  # (n,) int64: in UTC, or as written if the time zone is unknown
    local: np.ndarray  # (n,) int64: in local time
    missing: np.ndarray  # (n,) bool


@dataclass(eq=False)
class Timestamp(Column):
    """Dates and timestamps: year, month, day of week and hour one-hot; days since the stream's first as a number.

    Calendar fields are in the local time of ``zone``; dates have no ``hours``. ``origin`` is the first timestamp of the
    stream, None before it. ``format`` is the strptime format of texts; ISO 8601 if None.
    """

    kind: ClassVar[str] = "moment"
    zone: str | None = None
    hours: bool = True
    origin: Moment = None
    format: str | None = None
    na_values: Sequence[str] = ()

    @property
    def families(self) -> frozenset[str]:
        """The families of Arrow types that can be converted; with a format also numbers, such as 20240312."""
        return frozenset({"moment", "string", "null"} | ({"number"} if self.format is not None else set()))

    def names(self) -> list[str]:
        return [f"{self.name}[days]"]

    def code_names(self) -> list[str]:
        return [*(f"{self.name}[{field}]" for field in self._field_names()), missing_name(self.name)]

    def description(self) -> str:
        return self.format or ""

    def convert(self, array: Array, faults: Faults) -> Instants:
        strings = decoded(without_words(array, self.name, self.na_values, faults))
        if self.format is not None and family(strings.type) in ("string", "number"):
            strings = strings.cast(pa.string(), safe=False)
            moments, failed = dates_in(blank_to_null(strings), self.format)
        else:
            moments, failed = to_timestamps(strings, self.zone)
            if failed and family(strings.type) == "string":
                moments, failed = to_timestamps(as_iso(strings), self.zone)
        expected = f"date or timestamp with{'out' if self.zone is None else ''} a time zone"
        faults.add(failed, self.name, lambda row: f"{_as_text(strings, row)} is no {expected} ({NA_VALUES})")
        return Instants(_integers(moments), _integers(self._local(moments)), is_missing(moments))

    def _local(self, moments: Array) -> Array:
        """Moments in the local time of the zone."""
        if self.zone is None:
            return moments
        try:
            return pc.local_timestamp(moments.cast(pa.timestamp("us", self.zone)))
        except (pa.ArrowInvalid, UnicodeEncodeError) as error:
            raise DataError(f"its time zone is not known ({error})", column=self.name) from None

    def parts(self, moments: Instants, learning: bool) -> Parts:
        present = ~moments.missing
        if learning and self.origin is None and present.any():
            self.origin = int(moments.absolute[present.argmax()])
        since = moments.absolute - (self.origin or 0)
        days = np.where(present & (self.origin is not None), since / MICROSECONDS_A_DAY, 0.0)
        codes = [calendar_codes(self.name, part, values, present) for part, values in self._calendar(moments.local)]
        # Later rows have later dates, so their range is informative, but a comparison of distributions is not.
        observed = Observed(moments.missing, np.where(present, moments.absolute / MICROSECONDS_A_DAY, np.nan))
        return Parts([days], [*codes, *self.missing_codes(moments.missing)], [], observed)

    def _field_names(self) -> list[str]:
        return ["year", "month", "weekday", *(["hour"] if self.hours else [])]

    def _calendar(self, local: np.ndarray) -> list[tuple[str, np.ndarray]]:
        months = local.view("M8[us]").astype("M8[M]").view(np.int64)  # since January 1970
        weekdays = (local // MICROSECONDS_A_DAY + 3) % 7 + 1  # 1 is Monday
        fields = [months // 12 + 1970, months % 12 + 1, weekdays, hour_of(local)]
        return list(zip(self._field_names(), fields, strict=False))


@dataclass(eq=False)
class TimeOfDay(Column):
    """Times of day: the hour one-hot, and hours since midnight as a number."""

    kind: ClassVar[str] = "time"
    families: ClassVar[frozenset[str]] = frozenset({"time", "string", "null"})
    na_values: Sequence[str] = ()

    def names(self) -> list[str]:
        return [f"{self.name}[hours]"]

    def code_names(self) -> list[str]:
        return [f"{self.name}[hour]", missing_name(self.name)]

    def convert(self, array: Array, faults: Faults) -> Instants:
        times = decoded(without_words(array, self.name, self.na_values, faults))
        if pa.types.is_time(times.type):
            microseconds = times.cast(pa.time64("us"), safe=False).cast(pa.int64())
        else:
            dated = pc.utf8_replace_slice(_in_24_hours(times.cast(pa.string())), 0, 0, "1970-01-01 ")
            parsed, failed = cast(dated, pa.timestamp("us"))
            faults.add(failed, self.name, lambda row: f"{_as_text(times, row)} is no time of day ({NA_VALUES})")
            microseconds = parsed.cast(pa.int64())
        values = _integers(microseconds)
        return Instants(values, values, is_missing(microseconds))

    def parts(self, times: Instants, learning: bool) -> Parts:
        present = ~times.missing
        codes = [calendar_codes(self.name, "hour", hour_of(times.local), present), *self.missing_codes(times.missing)]
        hours = times.local / _MICROSECONDS_AN_HOUR
        return Parts([np.where(present, hours, 0.0)], codes, [], Observed(times.missing, None, hours.__getitem__))


def _in_24_hours(times: Array) -> Array:
    """Times of day in 24-hour notation; times with AM or PM are converted."""
    if not pc.any(pc.match_substring_regex(times, "[Mm]$")).as_py():
        return times
    formats = ("%I:%M:%S %p", "%I:%M %p")
    read = pc.coalesce(*(pc.strptime(times, format=format, unit="s", error_is_null=True) for format in formats))
    return pc.coalesce(pc.strftime(read, format="%H:%M:%S"), times)


def hour_of(local: np.ndarray) -> np.ndarray:
    return local % MICROSECONDS_A_DAY // _MICROSECONDS_AN_HOUR


def calendar_codes(column: str, part: str, values: np.ndarray, present: np.ndarray) -> Codes:
    """One-hot codes of integers, for the rows where they are present."""
    present_values, seed = values[present], hash_name(part, hash_name(column))
    smallest = present_values.min(initial=0)
    occurs = np.bincount(present_values - smallest) > 0  # faster than a sort
    distinct = np.flatnonzero(occurs) + smallest
    keys = np.array([hash_name(str(value), seed) for value in distinct], np.uint64)
    indices = np.full(len(values), -1, np.int32)
    indices[present] = (np.cumsum(occurs) - 1)[present_values - smallest]
    return Codes(indices, keys, one_by_one(lambda k: f"{column}[{part}={distinct[k]}]"))


def to_timestamps(array: Array, zone: str | None) -> tuple[Array, list[int]]:
    """Cast an array as :func:`cast`. Nanoseconds are truncated; all else must fit."""
    if family(array.type) != "moment":
        return cast(array, pa.timestamp("us", None if zone is None else "UTC"), safe=True)
    is_timestamp = pa.types.is_timestamp(array.type)
    if is_timestamp and array.type.tz is not None:
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    return cast(array, pa.timestamp("us"), safe=not (is_timestamp and array.type.unit == "ns"))


def _as_text(array: Array, row: int) -> str:
    """An element as text, also if it is outside the range of Python."""
    is_text = pa.types.is_string(array.type)
    return repr(array[row].as_py()) if is_text else str(array[row : row + 1].cast(pa.string())[0])


def _integers(array: Array) -> np.ndarray:
    return to_numpy(array.cast(pa.int64()), 0)


class Text(Column):
    """Texts: words and pairs of neighbouring words (:mod:`tunefree.stream.words`), with the value log(1 + count)."""

    kind: ClassVar[str] = "text"
    families: ClassVar[frozenset[str]] = frozenset({"string", "category", "null"})

    def convert(self, array: Array, faults: Faults) -> Array:
        return blank_to_null(decoded(array).cast(pa.string()))

    def parts(self, texts: Array, learning: bool) -> Parts:
        missing = is_missing(texts)
        texts = texts.fill_null("")
        sizes = np.diff(bytes_of(texts)[0]).astype(np.int64)
        words = TextWords(sizes, lambda start, stop: self._words(texts[start:stop]))
        return Parts([], self.missing_codes(missing), [words], Observed(missing))

    def _words(self, texts: Array) -> Words:
        counted = count_words(*bytes_of(texts), hash_name("#", hash_name(self.name)))
        starts, stops = counted.places.T
        return Words(
            np.diff(counted.ends, prepend=0),
            counted.keys,
            np.log1p(counted.counts),
            lambda k: prefixed_strings(f"{self.name}=", counted.text, starts[k], stops[k]),
        )


class Items(NamedTuple):
    """The concatenated items of the lists of a chunk."""

    rows: np.ndarray  # (items,) int64: row index of each, ascending
    places: np.ndarray  # (items,) int64: its index in its list
    values: Any  # (items,) pyarrow.Array
    missing: np.ndarray  # (n,) bool: rows without a list


class Bag(Column):
    """Lists of strings: each string is a feature of value log2(1 + count), 1 if it occurs once."""

    kind: ClassVar[str] = "bag"
    families: ClassVar[frozenset[str]] = frozenset({"strings", "null"})
    arrow_type: ClassVar[Any] = pa.list_(pa.string())

    def convert(self, array: Array, faults: Faults) -> Items:
        items = items_of(array.cast(self.arrow_type))
        strings = blank_to_null(items.values)
        present = ~is_missing(strings)
        return Items(items.rows[present], items.places[present], strings.drop_null(), items.missing)

    def parts(self, items: Items, learning: bool) -> Parts:
        encoded = items.values.dictionary_encode()
        strings, index = encoded.dictionary, to_numpy(encoded.indices, -1).astype(np.int64)
        _, first, counts = np.unique(items.rows * len(strings) + index, return_index=True, return_counts=True)
        order = np.argsort(first)  # by first occurrence, as the order of the dictionary depends on the chunk
        positions, n_rows = first[order], len(items.missing)
        keys = string_keys(strings, hash_name("[]", hash_name(self.name)))[index[positions]]
        n_words = np.bincount(items.rows[positions], minlength=n_rows)
        words = Words(
            n_words,
            keys,
            np.log2(1.0 + counts[order]),
            lambda k: _feature_names(self.name, strings.take(number_array(index[positions[k]]))),
        )
        return Parts([], self.missing_codes(items.missing), [words], Observed(items.missing))


@dataclass(eq=False)
class Vector(Column):
    """Lists of numbers: the first ``width`` numbers are dense columns, later ones are entries of sparse rows."""

    kind: ClassVar[str] = "vector"
    families: ClassVar[frozenset[str]] = frozenset({"numbers", "null"})
    arrow_type: ClassVar[Any] = pa.list_(pa.float64())
    width: Length = 0

    def names(self) -> list[str]:
        return [self._name_at(position) for position in range(self.width)]

    def convert(self, array: Array, faults: Faults) -> Items:
        items = items_of(array.cast(self.arrow_type))
        values = to_numpy(items.values, np.nan)
        faults.add(items.rows[np.isinf(values)], self.name, lambda row: "a number of the list is infinite")
        known = ~np.isnan(values)
        return Items(items.rows[known], items.places[known], values[known], items.missing)

    def parts(self, items: Items, learning: bool) -> Parts:
        numbers, dense = np.zeros((self.width, len(items.missing))), items.places < self.width
        numbers[items.places[dense], items.rows[dense]] = items.values[dense]
        sparse = ~dense & (items.values != 0.0)
        indices, seed = items.places[sparse], hash_name("[number]", hash_name(self.name))
        keys = np.array([hash_name(str(k), seed) for k in range(indices.max(initial=-1) + 1)], np.uint64)
        counts = np.bincount(items.rows[sparse], minlength=len(items.missing))
        words = Words(counts, keys[indices], items.values[sparse], one_by_one(lambda k: self._name_at(int(indices[k]))))
        parts = [words] if len(indices) else []
        return Parts([*numbers], self.missing_codes(items.missing), parts, Observed(items.missing))

    def _name_at(self, position: int) -> str:
        return f"{self.name}[{position}]"


def items_of(lists: Array) -> Items:
    """The items of an array of lists."""
    lengths = to_numpy(pc.list_value_length(lists), 0).astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    rows = np.repeat(np.arange(len(lists)), lengths)
    return Items(rows, np.arange(len(rows)) - starts[rows], pc.list_flatten(lists), is_missing(lists))


COLUMN_KINDS: dict[str, type[Column]] = {
    kind.kind: kind for kind in (Number, Category, Boolean, Timestamp, TimeOfDay, Text, Bag, Vector)
}
