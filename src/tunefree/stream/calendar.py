"""Dates, timestamps and times of day: one-hot calendar fields and elapsed time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.core.errors import DataError
from tunefree.core.schema import Moment
from tunefree.stream.arrays import cast, is_missing, text_at, to_numpy
from tunefree.stream.columns import (
    NA_VALUES,
    Array,
    Codes,
    Column,
    Faults,
    Observed,
    Parts,
    blank_to_null,
    decoded,
    family,
    missing_name,
    one_by_one,
    words_of,
)
from tunefree.stream.keys import hash_name
from tunefree.stream.notation import as_iso, dates_in

MICROSECONDS_A_DAY = 86_400_000_000
_MICROSECONDS_AN_HOUR = 3_600_000_000
_DATE = r"^\s*\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?"
_TIME = r"^(([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?|(0?\d|1[012]):[0-5]\d(:[0-5]\d)? ?[AaPp][Mm])$"
_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)"
_MIXED = "mixed"


class Instants(NamedTuple):
    """Microseconds since 1970."""

    absolute: np.ndarray  # (n,) int64: UTC, or as written where no time zone is known
    local: np.ndarray  # (n,) int64: in local time
    missing: np.ndarray  # (n,) bool


class Timestamp(Column):
    """Dates and timestamps: year, month, day of week and hour one-hot; days since the stream's first as a number.

    Texts are parsed here: they may mix dates with and without a time. The calendar fields are those of a time zone,
    where the timestamps carry one; dates have no hours. ``origin`` is the stream's first timestamp, once it has been
    seen. ``format`` is that of texts, as strptime has it; ISO 8601 if None. Some words stand for a missing date.
    """

    kind: ClassVar[str] = "moment"

    def __init__(
        self,
        name: str,
        zone: str | None = None,
        hours: bool = True,
        origin: Moment = None,
        format: str | None = None,
        na_values: Sequence[str] = (),
    ) -> None:
        self.name, self.zone, self.hours, self.origin, self.format = name, zone, hours, origin, format
        self.na_values = tuple(na_values)

    @property
    def families(self) -> frozenset[str]:
        """The families of Arrow types that it converts: with a format also numbers, such as 20240312."""
        return frozenset({"moment", "string", "null"} | ({"number"} if self.format is not None else set()))

    def names(self) -> list[str]:
        return [f"{self.name}[days]"]

    def code_names(self) -> list[str]:
        return [*(f"{self.name}[{field}]" for field in self._field_names()), missing_name(self.name)]

    def options(self) -> dict[str, Any]:
        options = {"zone": self.zone, "hours": self.hours, "origin": self.origin}
        return options | ({} if self.format is None else {"format": self.format}) | words_of(self.na_values)

    def description(self) -> str:
        return self.format or ""

    def convert(self, array: Array, faults: Faults) -> Instants:
        strings = decoded(array)
        if self.format is not None and family(strings.type) in ("string", "number"):
            strings = strings.cast(pa.string(), safe=False)
            moments, failed = dates_in(blank_to_null(strings), self.format)
        else:
            moments, failed = cast(*_to_timestamps(blank_to_null(strings), self.zone))
            if failed and family(strings.type) == "string":
                moments, failed = cast(*_to_timestamps(as_iso(blank_to_null(strings)), self.zone))
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
        codes = [calendar_codes(self.name, part, values, here) for part, values in self._fields(moments.local)]
        # Later rows have later dates: a range of them says something, a comparison of distributions does not.
        observed = Observed(moments.missing, np.where(here, moments.absolute / MICROSECONDS_A_DAY, np.nan))
        return Parts([days], [*codes, *self.missing_codes(moments.missing)], [], observed)

    def _field_names(self) -> list[str]:
        return ["year", "month", "weekday", *(["hour"] if self.hours else [])]

    def _fields(self, local: np.ndarray) -> list[tuple[str, np.ndarray]]:
        months = local.view("M8[us]").astype("M8[M]").view(np.int64)  # since January 1970
        weekdays = (local // MICROSECONDS_A_DAY + 3) % 7 + 1  # 1 is Monday
        fields = [months // 12 + 1970, months % 12 + 1, weekdays, hour_of(local)]
        return list(zip(self._field_names(), fields, strict=False))


class TimeOfDay(Column):
    """Times of day: the hour one-hot, and hours since midnight as a number."""

    kind: ClassVar[str] = "time"
    families: ClassVar[frozenset[str]] = frozenset({"time", "string", "null"})

    def __init__(self, name: str, na_values: Sequence[str] = ()) -> None:
        self.name, self.na_values = name, tuple(na_values)

    def names(self) -> list[str]:
        return [f"{self.name}[hours]"]

    def code_names(self) -> list[str]:
        return [f"{self.name}[hour]", missing_name(self.name)]

    def options(self) -> dict[str, Any]:
        return words_of(self.na_values)

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
    """Times of day, some of which may be written with AM or PM."""
    if not pc.any(pc.match_substring_regex(times, "[Mm]$")).as_py():
        return times
    formats = ("%I:%M:%S %p", "%I:%M %p")
    read = pc.coalesce(*(pc.strptime(times, format=format, unit="s", error_is_null=True) for format in formats))
    return pc.coalesce(pc.strftime(read, format="%H:%M:%S"), times)


def hour_of(local: np.ndarray) -> np.ndarray:
    return local % MICROSECONDS_A_DAY // _MICROSECONDS_AN_HOUR


def calendar_codes(column: str, part: str, values: np.ndarray, here: np.ndarray) -> Codes:
    """One-hot codes of integers, in the rows that have one."""
    distinct, index = _distinct(values[here])
    seed = hash_name(part, hash_name(column))
    keys = np.array([hash_name(str(value), seed) for value in distinct], np.uint64)
    places = np.full(len(values), -1, np.int32)
    places[here] = index
    return Codes(places, keys, one_by_one(lambda k: f"{column}[{part}={distinct[k]}]"))


def looks_like_dates(strings: Array) -> bool:
    """Whether all strings, trimmed, are dates or timestamps as ISO 8601 writes them, all with or all without a zone."""
    present = strings.drop_null()
    if not len(present) or not re.match(_DATE, text_at(present, 0)):  # Arrow would compile each pattern anew
        return False
    present = as_iso(present)
    zone = zone_of(present)
    return zone is not _MIXED and not cast(*_to_timestamps(present, zone))[1]


def looks_like_times(strings: Array) -> bool:
    """Whether all strings, trimmed, are times of day, HH:MM or HH:MM:SS with decimals or without."""
    present = strings.drop_null()
    if not len(present) or not re.match(_TIME, text_at(present, 0)):
        return False
    return pc.all(pc.match_substring_regex(present, _TIME)).as_py()


def zone_of(strings: Array) -> str | None:
    """The time zone in which to read ISO timestamps: UTC where they are written with an offset."""
    strings = as_iso(strings)
    for zone, pattern in ((None, _DATE + "$"), ("UTC", _DATE + _ZONE + "$")):
        if pc.all(pc.match_substring_regex(strings, pattern)).as_py():
            return zone
    return _MIXED


def _to_timestamps(array: Array, zone: str | None) -> tuple[Array, Any, bool]:
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


def _distinct(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values and the place of each among them; without a sort where they lie close together."""
    if not len(values) or np.ptp(values) > 4096:
        return np.unique(values, return_inverse=True)
    least = values.min()
    present = np.bincount(values - least) > 0
    return np.flatnonzero(present) + least, (np.cumsum(present) - 1)[values - least]
