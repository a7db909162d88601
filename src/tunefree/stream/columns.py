"""Columns of a table become parts of rows: numbers, one-hot codes and words.

Each kind of column converts an Arrow array, whatever its type in this chunk, to the type it had when the encoder was
made (``convert``; a value that does not fit is an error of its row), and then makes parts of rows of it (``parts``).
A missing value (null, NaN, ``?`` or blank) becomes one feature, which says that the column is missing in this row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.compiled.functions import compiled
from tunefree.core.schema import check_header, fields_of
from tunefree.stream.arrays import (
    boolean_array,
    bytes_of,
    is_missing,
    nulled,
    plain_numbers,
    string_array,
    to_booleans,
)
from tunefree.stream.batch import UNLABELLED, BadRows, Chunk, row_numbers, with_row_numbers
from tunefree.stream.keys import as_number, hash_name, hash_strings, missing_key
from tunefree.stream.spellings import DASHES, MISSING, NULLS, SIGNS_OF_MISSING

NA_VALUES = "`na_values` says what stands for a missing one"
_MISSING, SIGNS = string_array(MISSING), string_array(SIGNS_OF_MISSING)

OF_WORDS, RARE_WORD = "values of several words, most of them different", "numbers, but for"  # doubts
LIKE_DATES = "values that look like dates, such as"

QUANTITIES = ("number", "moment", "time")  # kinds of columns of which words may be missing values

Array = Any  # pyarrow.Array: it ships no types
NamesOf = Callable[[np.ndarray], Array]  # the names of the features of some keys, by the places of the keys

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
_OF_LISTS = {"string": "strings", "null": "strings", "number": "numbers"}


def one_by_one(name: Callable[[int], str]) -> NamesOf:
    """The names of features that are made one at a time."""
    return lambda places: string_array([name(k) for k in places.tolist()])


def prefixed_strings(prefix: str, text: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> Array:
    """A prefix followed by parts of a text."""
    front, sizes = np.frombuffer(prefix.encode(), np.uint8), stops - starts
    ends = np.cumsum(sizes + len(front))
    names = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    copy_parts(front, text, starts, sizes, names)
    return array_of_names(names, ends)


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


def array_of_names(text: np.ndarray, ends: np.ndarray) -> Any:
    """Names that lie one after the other in UTF-8, and where each ends, as an Arrow array."""
    buffers = [None, pa.py_buffer(np.append(0, ends).astype(np.int64)), pa.py_buffer(np.ascontiguousarray(text))]
    return pa.Array.from_buffers(pa.large_string(), len(ends), buffers)


class Codes(NamedTuple):
    """One-hot codes of a chunk."""

    places: np.ndarray  # (n,) int32: which key each row holds, -1 for none
    keys: np.ndarray  # (k,) uint64: what the feature is known by
    names: NamesOf  # of the features of the keys

    def numbers(self, rows: np.ndarray) -> np.ndarray:
        """A number for the code of each row, derived from the code's key, so that it does not depend on the rows."""
        return as_number(self.keys[self.places[rows]])

    def without(self, key: int) -> Codes:
        """The codes without the code of a key."""
        is_gone = np.append(self.keys == key, False)  # the last is for place -1
        return self._replace(places=np.where(is_gone[self.places], np.int32(-1), self.places))


class Words(NamedTuple):
    """Words of the texts of some rows, no row holding one twice."""

    counts: np.ndarray  # (n,) int64: how many there are in each row
    keys: np.ndarray  # (words,) uint64
    values: np.ndarray  # (words,) float64
    names: NamesOf  # of the features of the keys


class Bags(NamedTuple):
    """The words of each row of a chunk. They take more memory than texts, so they are asked for piece by piece."""

    sizes: np.ndarray  # (n,) int64: bytes of each row's text, or how many words it has, by which pieces are cut
    row_words: Callable[[int, int], Words]  # of the rows from one to before another

    @classmethod
    def of(cls, words: Words) -> Bags:
        """The bags of words that there are already."""
        ends = np.append(0, np.cumsum(words.counts))

        def row_words(start: int, stop: int) -> Words:
            first, last = ends[start], ends[stop]
            keys, values = words.keys[first:last], words.values[first:last]
            return Words(words.counts[start:stop], keys, values, lambda places: words.names(places + first))

        return cls(words.counts, row_words)


class Observed(NamedTuple):
    """The values of a column of any kind in the rows of a chunk, as the profile of the data counts them."""

    missing: np.ndarray  # (n,) bool
    numbers: np.ndarray | None = None  # (n,) float64, NaN where missing: their range is kept
    values_of: Callable[[np.ndarray], np.ndarray] | None = None  # from rows to numbers whose distribution is compared


class Parts(NamedTuple):
    """The features that a column adds to the rows of a chunk."""

    numbers: list[np.ndarray]  # (n,) float64 each, 0 where it is missing
    codes: list[Codes]
    bags: list[Bags]
    observed: Observed | None = None  # None of a column that came later, in a chunk without it


class Fault(NamedTuple):
    """Why a row cannot be used."""

    column: str
    problem: str


class WordForMissing(NamedTuple):
    """A word that is taken for a missing value."""

    word: str
    column: str
    is_quantity: bool  # whether the column holds numbers or dates
    first: int  # place in the chunk of its first row
    rows: int


class Faults(dict[int, Fault]):
    """The first error of each row of a chunk, by its place in the chunk; and words taken for missing values."""

    def __init__(self, names_columns: bool = False) -> None:
        super().__init__()
        self.missing: list[WordForMissing] = []
        self.names_columns = names_columns

    def add(self, rows: np.ndarray | list[int], column: str, problem: Callable[[int], str]) -> None:
        for row in rows:
            self.setdefault(int(row), Fault(column, problem(int(row))))

    def without(self, chunk: Chunk, bad: BadRows) -> Chunk:
        """The chunk without its bad rows, which are reported in their order."""
        numbers = row_numbers(chunk)
        for row in sorted(self):
            report = bad.report_unlabelled if self[row].problem.startswith(UNLABELLED) else bad.report
            report(self[row].problem, chunk.file, int(numbers[row]), self[row].column)
        keep = np.ones(len(numbers), bool)
        keep[list(self)] = False
        return chunk._replace(data=with_row_numbers(chunk.data.filter(boolean_array(keep)), numbers[keep]))

    def note_all(self, bad: BadRows, file: str, numbers: np.ndarray) -> None:
        """Count the rows whose words were taken for missing values; ``numbers`` has the rows' numbers in the file."""
        for note in self.missing:
            remedy = f"`categorical={note.column!r}` makes it a category" if bad.names_columns else ""
            # One line is enough for all columns of texts.
            column, where = (note.column, "") if note.is_quantity else (None, " in columns of texts")
            problem = f"{note.word!r} is taken for a missing value{where}"
            bad.note(problem, file, int(numbers[note.first]), column, note.rows, remedy)


@dataclass(eq=False)
class Column:
    """A column of a table; subclasses are its kinds, whose fields are written to model files."""

    kind: ClassVar[str]
    arrow_type: ClassVar[Any] = pa.string()  # as which to read the column from a text
    name: str
    # Number of the row that has its first value, from 1, of one that came later in a stream.
    since: int = field(default=0, kw_only=True)

    def state(self) -> dict[str, Any]:
        """The kind, and the fields as the header of a file has them."""
        return {"kind": self.kind} | written_fields(self)

    def dense_names(self) -> list[str]:
        """Names of the numbers that are columns of dense rows; numbers of columns that came later are not."""
        return [] if self.since else self.names()

    def names(self) -> list[str]:
        """Names of the numbers that the column adds."""
        return []

    def code_names(self) -> list[str]:
        """Names of the codes that the column adds to a row."""
        return [missing_name(self.name)]

    def description(self) -> str:
        """A phrase on the notation of the values, where it is unusual."""
        return ""

    def parts(self, values: Any, learning: bool) -> Parts:
        """The features that the column adds to the rows of a chunk, from its converted values."""
        raise NotImplementedError

    def parts_since(self, values: Any, learning: bool) -> Parts:
        """The features of a column that may have come later: its numbers are entries of sparse rows.

        Views do not centre them, and they share their unit with the words. A row without the column has no feature.
        """
        if not self.since:
            return self.parts(values, learning)
        if values is None:
            return Parts([], [], [])
        numbers, codes, bags, observed = self.parts(values, learning)
        present = [part.without(missing_key(self.name)) for part in codes]
        entries = [Bags.of(_entries(name, array)) for name, array in zip(self.names(), numbers, strict=True)]
        return Parts([], [part for part in present if (part.places >= 0).any()], [*entries, *bags], observed)

    def missing_codes(self, missing: np.ndarray) -> list[Codes]:
        """Codes of the rows in which it is missing; none if there are none."""
        if not missing.any():
            return []
        keys = np.array([missing_key(self.name)], np.uint64)
        places = np.where(missing, np.int32(0), np.int32(-1))
        return [Codes(places, keys, one_by_one(lambda k: missing_name(self.name)))]


def written_fields(record: Any) -> dict[str, Any]:
    """The fields of a dataclass that differ from their defaults, for the header of a file."""
    values = {field.name: (getattr(record, field.name), field.default) for field in fields(record)}
    changed = {name: value for name, (value, usual) in values.items() if value != usual}
    return {name: [*value] if isinstance(value, tuple) else value for name, value in changed.items()}


def restored_fields(record: Any, written: Any, where: str = "encoder") -> dict[str, Any]:
    """The fields of a dataclass from the header of a file, which may have more; a ModelError if they are others."""
    fields: dict[str, Any] = check_header(written, fields_of(record), where)
    return fields


def number_key(name: str) -> int:
    """The key of a number of a column that came later."""
    return hash_name("number", hash_name(name))


def _entries(name: str, values: np.ndarray) -> Words:
    """Numbers as entries of sparse rows; those that are 0 are none."""
    present = values[values != 0.0]
    keys = np.full(len(present), number_key(name), np.uint64)
    return Words((values != 0.0).astype(np.int64), keys, present, one_by_one(lambda k: name))


def missing_name(column: str) -> str:
    return f"{column}[missing]"


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


@lru_cache(maxsize=256)
def family(arrow_type: Any) -> str:
    """The family of an Arrow type; a dictionary of numbers, booleans or times is a category."""
    if pa.types.is_dictionary(arrow_type):
        value_family = family(arrow_type.value_type)
        value_family = "nested" if value_family in _OF_LISTS.values() else value_family
        return value_family if value_family in ("string", "nested") else "category"
    if any(test(arrow_type) for test in _LISTS):
        return _OF_LISTS.get(family(arrow_type.value_type), "nested")
    return next((name for name, tests in _FAMILIES.items() if any(test(arrow_type) for test in tests)), "nested")


def as_numbers(array: Array, column: str, faults: Faults) -> Array:
    """Strings as plain numbers, if all are such; else without signs of missing ones. Other arrays as they are."""
    if family(array.type) != "string":
        return array
    numbers = plain_numbers(decoded(array))
    if numbers is None:
        array = without_words(array, column, (), faults)
        numbers = plain_numbers(array)
    return array if numbers is None else numbers


def missing_strings(values: Array, words: Sequence[str] = ()) -> np.ndarray:
    """A mask of strings that are missing values, including the given words."""
    known = string_array((*MISSING, *words)) if words else _MISSING
    return to_booleans(pc.is_in(values, value_set=known)) | is_missing(values)


def blank_to_null(array: Array, words: Sequence[str] = ()) -> Array:
    """Trimmed strings, null where they are missing values or one of some words; other arrays unchanged."""
    if family(array.type) != "string":
        return array
    trimmed = pc.utf8_trim_whitespace(array.cast(pa.string()))
    return nulled(trimmed, boolean_array(missing_strings(trimmed, words)))


def without(array: Any, na_values: Sequence[str]) -> Any:
    """The array; null where it holds one of some values, be it a string or a number."""
    kind = family(array.type)
    if not na_values or kind not in ("string", "number"):
        return array
    array = decoded(array)
    if kind == "string":
        gone = pc.is_in(pc.utf8_trim_whitespace(array), value_set=string_array(na_values).cast(array.type))
    else:
        numbers = [float(text) for text in na_values if is_number(text)]
        gone = pc.is_in(array.cast(pa.float64(), safe=False), value_set=pa.array(numbers, pa.float64()))
    return nulled(array, gone)


def is_number(text: str) -> bool:
    """Whether a text is a finite number as programs write it."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def without_signs(strings: Array) -> Array:
    """Strings; null where a sign says that a number or a date is missing."""
    return nulled(strings, pc.is_in(strings, value_set=SIGNS))


def without_words(array: Array, column: str, na_values: Sequence[str], faults: Faults) -> Array:
    """Strings of numbers or dates, null where a sign or a word of the column says so; words and dashes are noted."""
    return _without(array, column, (*SIGNS_OF_MISSING, *na_values), faults, {*DASHES, *na_values})


def without_nulls(array: Array, column: str, kept: Collection[str], faults: Faults) -> Array:
    """Strings of text that does not tell them from nulls, null where a word such as NA says so, which is noted."""
    words = [word for word in NULLS if word not in kept]
    if pa.types.is_dictionary(array.type) and family(array.type) == "string":
        values = pc.utf8_trim_whitespace(array.dictionary.cast(pa.string()))
        if not pc.any(pc.is_in(values, value_set=string_array(words))).as_py():
            return array
    return _without(array, column, words, faults)


def _without(
    array: Array, column: str, words: Sequence[str], faults: Faults, odd: Collection[str] | None = None
) -> Array:
    """Strings, null where they are one of ``words``; words among numbers and dates are noted if they are ``odd``."""
    if family(array.type) != "string":
        return array
    strings = blank_to_null(decoded(array))
    gone = pc.is_in(strings, value_set=string_array(words))
    if not pc.any(gone).as_py():
        return strings
    for word in pc.unique(strings.filter(gone)).to_pylist():
        if odd is None or word in odd:
            places = np.flatnonzero(to_booleans(pc.equal(strings, word)))
            faults.missing.append(WordForMissing(word, column, odd is not None, int(places[0]), len(places)))
    return nulled(strings, gone)
