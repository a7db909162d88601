"""Kinds of columns: numbers, categories, dates and times, texts and lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.core.errors import DataError
from tunefree.core.schema import Length, Moment
from tunefree.stream.arrays import bytes_of, cast, is_missing, number_array, string_array, to_booleans, to_numpy
from tunefree.stream.columns import (
    NA_VALUES,
    QUANTITIES,
    Array,
    Bags,
    Codes,
    Column,
    Faults,
    Observed,
    Parts,
    Words,
    as_numbers,
    blank_to_null,
    decoded,
    family,
    missing_name,
    missing_strings,
    one_by_one,
    prefixed_strings,
    string_keys,
    to_dictionary,
    without_words,
)
from tunefree.stream.keys import category_seed, hash_name, missing_key
from tunefree.stream.notation import Notation, as_iso, dates_in, to_numbers
from tunefree.stream.spellings import TRUTHS
from tunefree.stream.words import count_words

TRUTH_WORDS = string_array(TRUTHS)
_BOTH = TRUTH_WORDS[:2]
MICROSECONDS_A_DAY = 86_400_000_000
_MICROSECONDS_AN_HOUR = 3_600_000_000


@dataclass(eq=False)
class Number(Column):
    """Integers, floats, decimals; durations in days; texts in a notation, or plain numbers without one."""

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
        hints = [f"`categorical={self.name!r}` takes the column for categories"] if faults.names_columns else []
        values = to_numbers(array, self.name, faults, self.notation, *hints)
        infinite = np.isinf(values)
        if infinite.any():
            faults.add(np.flatnonzero(infinite), self.name, lambda row: f"the number is infinite ({values[row]})")
        return values

    def parts(self, values: np.ndarray, learning: bool) -> Parts:
        missing = np.isnan(values)
        observed, codes = Observed(missing, values, values.__getitem__), self.missing_codes(missing)
        return Parts([np.where(missing, 0.0, values) if codes else values], codes, [], observed)


@dataclass(eq=False)
class Category(Column):
    """Strings, categories: one-hot; if ``numbers``, also numbers and dates. ``doubt`` has why they seem others."""

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
        """The place of each row's category in the list of the chunk's categories, -1 for none, and the list."""
        encoded = to_dictionary(array)
        values = pc.utf8_trim_whitespace(encoded.dictionary.cast(pa.string()))
        index = to_numpy(encoded.indices.cast(pa.int32()), -1)
        gone = missing_strings(values)
        if gone.any():
            index = np.append(np.where(gone, -1, np.arange(len(gone))), -1)[index].astype(np.int32)
        return index, values

    def parts(self, converted: tuple[np.ndarray, Array], learning: bool) -> Parts:
        index, values = converted
        missing = index < 0
        index = np.where(missing, np.int32(len(values)), index)
        keys = np.append(string_keys(values, category_seed(self.name)), np.uint64(missing_key(self.name)))

        def names(places: np.ndarray) -> Array:
            known = _named(self.name, values.take(number_array(places, places == len(values))))
            return pc.coalesce(known, string_array([missing_name(self.name)])[0])

        codes = Codes(index, keys, names)
        return Parts([], [codes], [], Observed(missing, None, codes.numbers))


def _named(column: str, strings: Array) -> Array:
    """The names of features of the strings of a column."""
    front, nothing = string_array([f"{column}=", ""])  # of Python's strings Arrow would make scalars by pandas
    return pc.binary_join_element_wise(front, strings, nothing)


@dataclass(eq=False)
class Boolean(Category):
    """Booleans: one-hot. If they are ``words``, such as yes and no, other values beside them are categories."""

    kind: ClassVar[str] = "boolean"
    words: bool = False

    @property
    def arrow_type(self) -> Any:
        return pa.string() if self.words else pa.bool_()

    def convert(self, array: Array, faults: Faults) -> tuple[np.ndarray, Array]:
        if family(array.type) == "boolean":
            return to_numpy(array.cast(pa.int32()), -1), _BOTH
        index, values = super().convert(array, faults)
        words = pc.index_in(pc.utf8_lower(values), value_set=TRUTH_WORDS)
        encoded = pc.coalesce(_BOTH.take(pc.bit_wise_and(words, 1)), values).dictionary_encode()
        index = np.append(to_numpy(encoded.indices, -1), np.int32(-1))[index]
        if not self.words:
            known = np.append(to_booleans(pc.is_in(encoded.dictionary, value_set=_BOTH)), True)  # the last is missing
            wrong = np.flatnonzero(~known[index])
            faults.add(wrong, self.name, lambda row: f"{decoded(array)[row].as_py()!r} is neither true nor false")
        return index, encoded.dictionary


def converted(column: Any, array: Array | None, faults: Faults) -> Any:
    """The converted values of a column; words stand for missing numbers and dates where plain ones do not fit."""
    if array is None:  # of a column that came later
        return None
    if column.kind not in QUANTITIES or family(array.type) != "string":
        return column.convert(array, faults)
    if column.kind == Number.kind and not (column.na_values or column.notation):
        return column.convert(as_numbers(array, column.name, faults), faults)
    return column.convert(without_words(array, column.name, column.na_values, faults), faults)


class Instants(NamedTuple):
    """Microseconds since 1970."""

    absolute: np.ndarray  # (n,) int64: UTC, or as written where no time zone is known
    local: np.ndarray  # (n,) int64: in local time
    missing: np.ndarray  # (n,) bool


@dataclass(eq=False)
class Timestamp(Column):
    """Dates and timestamps: year, month, day of week and hour one-hot; days since the stream's first as a number.

    The calendar fields are those of the ``zone``; dates have no ``hours``. ``origin`` is the stream's first timestamp,
    once it has been seen. ``format`` is that of texts, as strptime has it; ISO 8601 if None.
    """

    kind: ClassVar[str] = "moment"
    zone: str | None = None
    hours: bool = True
    origin: Moment = None
    format: str | None = None
    na_values: Sequence[str] = ()

    @property
    def families(self) -> frozenset[str]:
        """The families of Arrow types that it converts: with a format also numbers, such as 20240312."""
        return frozenset({"moment", "string", "null"} | ({"number"} if self.format is not None else set()))

    def names(self) -> list[str]:
        return [f"{self.name}[days]"]

    def code_names(self) -> list[str]:
        return [*(f"{self.name}[{field}]" for field in self._field_names()), missing_name(self.name)]

    def description(self) -> str:
        return self.format or ""

    def convert(self, array: Array, faults: Faults) -> Instants:
        strings = decoded(array)
        if self.format is not None and family(strings.type) in ("string", "number"):
            strings = strings.cast(pa.string(), safe=False)
            moments, failed = dates_in(blank_to_null(strings), self.format)
        else:
            moments, failed = cast(*to_timestamps(blank_to_null(strings), self.zone))
            if failed and family(strings.type) == "string":
                moments, failed = cast(*to_timestamps(as_iso(blank_to_null(strings)), self.zone))
        faults.add(failed, self.name, lambda row: f"{_shown(strings, row)} is no date or timestamp ({NA_VALUES})")
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
        here = ~moments.missing
        if learning and self.origin is None and here.any():
            self.origin = int(moments.absolute[here.argmax()])
        since = moments.absolute - (self.origin or 0)
        days = np.where(here & (self.origin is not None), since / MICROSECONDS_A_DAY, 0.0)
        codes = [calendar_codes(self.name, part, values, here) for part, values in self._calendar(moments.local)]
        # Later rows have later dates: a range of them says something, a comparison of distributions does not.
        observed = Observed(moments.missing, np.where(here, moments.absolute / MICROSECONDS_A_DAY, np.nan))
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
        strings = decoded(array)
        times = blank_to_null(strings)
        if pa.types.is_time(times.type):
            microseconds = times.cast(pa.time64("us"), safe=False).cast(pa.int64())
        else:
            dated = pc.utf8_replace_slice(_by_24_hours(times.cast(pa.string())), 0, 0, "1970-01-01 ")
            parsed, failed = cast(dated, pa.timestamp("us"))
            faults.add(failed, self.name, lambda row: f"{_shown(strings, row)} is no time of day ({NA_VALUES})")
            microseconds = parsed.cast(pa.int64())
        values = _integers(microseconds)
        return Instants(values, values, is_missing(microseconds))

    def parts(self, times: Instants, learning: bool) -> Parts:
        here = ~times.missing
        codes = [calendar_codes(self.name, "hour", hour_of(times.local), here), *self.missing_codes(times.missing)]
        hours = times.local / _MICROSECONDS_AN_HOUR
        return Parts([np.where(here, hours, 0.0)], codes, [], Observed(times.missing, None, hours.__getitem__))


def _by_24_hours(times: Array) -> Array:
    """Times of day in the 24-hour notation; times with AM or PM are converted."""
    if not pc.any(pc.match_substring_regex(times, "[Mm]$")).as_py():
        return times
    formats = ("%I:%M:%S %p", "%I:%M %p")
    read = pc.coalesce(*(pc.strptime(times, format=format, unit="s", error_is_null=True) for format in formats))
    return pc.coalesce(pc.strftime(read, format="%H:%M:%S"), times)


def hour_of(local: np.ndarray) -> np.ndarray:
    return local % MICROSECONDS_A_DAY // _MICROSECONDS_AN_HOUR


def calendar_codes(column: str, part: str, values: np.ndarray, here: np.ndarray) -> Codes:
    """One-hot codes of integers, in the rows that have one."""
    distinct, index = np.unique(values[here], return_inverse=True)
    seed = hash_name(part, hash_name(column))
    keys = np.array([hash_name(str(value), seed) for value in distinct], np.uint64)
    places = np.full(len(values), -1, np.int32)
    places[here] = index
    return Codes(places, keys, one_by_one(lambda k: f"{column}[{part}={distinct[k]}]"))


def to_timestamps(array: Array, zone: str | None) -> tuple[Array, Any, bool]:
    """Arguments of :func:`cast`. Nanoseconds are cut off; all else must fit."""
    finer = pa.types.is_timestamp(array.type) and array.type.unit == "ns"
    aware = pa.types.is_timestamp(array.type) and array.type.tz is not None
    if pa.types.is_timestamp(array.type) or pa.types.is_date(array.type):
        return array.cast(pa.timestamp(array.type.unit, "UTC")) if aware else array, pa.timestamp("us"), not finer
    return array, pa.timestamp("us", None if zone is None else "UTC"), True


def _shown(array: Array, row: int) -> str:
    """An element as text, in whatever range it lies."""
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
        bags = Bags(sizes, lambda start, stop: self._words(texts[start:stop]))
        return Parts([], self.missing_codes(missing), [bags], Observed(missing))

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
    """The items of the lists of a chunk, one list after the other."""

    rows: np.ndarray  # (items,) int64: the row of each, ascending
    places: np.ndarray  # (items,) int64: its place in its list
    values: Any  # (items,) pyarrow.Array
    missing: np.ndarray  # (n,) bool: rows without a list


class Bag(Column):
    """Lists of strings: each string is a feature of value log2(1 + count), which is 1 if the list holds it once."""

    kind: ClassVar[str] = "bag"
    families: ClassVar[frozenset[str]] = frozenset({"strings", "null"})
    arrow_type: ClassVar[Any] = pa.list_(pa.string())

    def convert(self, array: Array, faults: Faults) -> Items:
        items = items_of(array.cast(self.arrow_type))
        strings = blank_to_null(items.values)
        here = ~is_missing(strings)
        return Items(items.rows[here], items.places[here], strings.drop_null(), items.missing)

    def parts(self, items: Items, learning: bool) -> Parts:
        encoded = items.values.dictionary_encode()
        strings, index = encoded.dictionary, to_numpy(encoded.indices, -1).astype(np.int64)
        _, first, counts = np.unique(items.rows * len(strings) + index, return_index=True, return_counts=True)
        order = np.argsort(first)  # as the lists have them: the order of the dictionary depends on the chunk
        at, n = first[order], len(items.missing)
        keys = string_keys(strings, hash_name("[]", hash_name(self.name)))[index[at]]
        in_rows = np.bincount(items.rows[at], minlength=n)
        words = Words(
            in_rows,
            keys,
            np.log2(1.0 + counts[order]),
            lambda k: _named(self.name, strings.take(number_array(index[at[k]]))),
        )
        return Parts([], self.missing_codes(items.missing), [Bags.of(words)], Observed(items.missing))


@dataclass(eq=False)
class Vector(Column):
    """Lists of numbers: the first ``width`` places are dense columns, numbers at later ones entries of sparse rows."""

    kind: ClassVar[str] = "vector"
    families: ClassVar[frozenset[str]] = frozenset({"numbers", "null"})
    arrow_type: ClassVar[Any] = pa.list_(pa.float64())
    width: Length = 0

    def names(self) -> list[str]:
        return [self._at(place) for place in range(self.width)]

    def convert(self, array: Array, faults: Faults) -> Items:
        items = items_of(array.cast(self.arrow_type))
        values = to_numpy(items.values, np.nan)
        faults.add(items.rows[np.isinf(values)], self.name, lambda row: "a number of the list is infinite")
        known = ~np.isnan(values)
        return Items(items.rows[known], items.places[known], values[known], items.missing)

    def parts(self, items: Items, learning: bool) -> Parts:
        numbers, dense = np.zeros((self.width, len(items.missing))), items.places < self.width
        numbers[items.places[dense], items.rows[dense]] = items.values[dense]
        further = ~dense & (items.values != 0.0)
        places, seed = items.places[further], hash_name("[number]", hash_name(self.name))
        keys = np.array([hash_name(str(place), seed) for place in range(places.max(initial=-1) + 1)], np.uint64)
        in_rows = np.bincount(items.rows[further], minlength=len(items.missing))
        words = Words(in_rows, keys[places], items.values[further], one_by_one(lambda k: self._at(int(places[k]))))
        bags = [Bags.of(words)] if len(places) else []
        return Parts([*numbers], self.missing_codes(items.missing), bags, Observed(items.missing))

    def _at(self, place: int) -> str:
        return f"{self.name}[{place}]"


def items_of(lists: Array) -> Items:
    """The items of an array of lists."""
    lengths = to_numpy(pc.list_value_length(lists), 0).astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    rows = np.repeat(np.arange(len(lists)), lengths)
    return Items(rows, np.arange(len(rows)) - starts[rows], pc.list_flatten(lists), is_missing(lists))
