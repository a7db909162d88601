"""Notations of numbers and dates in texts: decimal commas, thousands separators, currency signs, date formats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.core.schema import DecimalMark
from tunefree.stream.arrays import is_missing, nulled, string_array, text_at, to_booleans, to_numpy
from tunefree.stream.spellings import SIGNS_OF_MISSING

ZEROS, EXACT = "leading zeros", "whole numbers beyond 2^53"  # why digits are codes, not numbers
MOST_WORDS = 3  # different ones in a column of numbers or dates that are read as missing values
_MOST_OF_WORDS = 0.01  # share of the values
_SIGNS = string_array(SIGNS_OF_MISSING)
MANY_NUMBERS = 20  # different ones, and at least a fifth of the values, are not codes
_FIRST = 64  # strings of a column that are examined before all others
_DIGIT = re.compile(r"\d")
_WHOLE = re.compile(r"^(?:[+-]?\d+|0[xX][\da-fA-F]+)$")
_SPACES = " \u00a0\u202f\u2009"
_APOSTROPHES = "'\u2019"
_SIGNS_OF_MONEY = r"[$€£¥₹₽₩₺₫₪₱฿₦]|(?:US|A|C|NZ|HK|S|R)\$|Rs\.?|kr\.?|Kč|zł|Ft|Fr\.|RM"
_CODES_OF_MONEY = "USD|EUR|GBP|CHF|JPY|INR|CNY|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|KRW|SGD|HKD|TRY|RUB"
_CURRENCY = f"(?:{_SIGNS_OF_MONEY}|{_CODES_OF_MONEY})"
_SCALES = {"[kK]": "e3", "M": "e6", "B": "e9"}  # thousands, millions and billions
_UNIT = re.compile(r"[+\u2212-]?[\d.,'\u2019\s]*\d[.,]?(\s?(?:[^\W\d_](?:[^\W\d_]|[/°·]){0,9}|°\w?)[23]?)")
PLAIN_NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"
_PLAIN_NUMBER = re.compile(PLAIN_NUMBER[1:-1])
_SIGN = "[+\u2212-]"
_SIGN_BEHIND = "[\u2212-]"
_TIMES = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
_CLOCKS = ("", *(mark + time for time in _TIMES for mark in (" ", ", ")), " %I.%M.%S %p")  # the last is Oracle's
_DAYS_FIRST = ("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y", "%d.%m.%y", "%d/%m/%y")
_MONTHS_FIRST = ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y")
_OTHERS = (
    *("%Y/%m/%d", "%Y.%m.%d", "%Y-%m-%d", "%d %b %Y", "%d-%b-%Y", "%d/%b/%Y", "%d-%b-%y", "%d %b %y", "%d %B %Y"),
    *("%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%a, %d %b %Y"),
)
_OF_PROGRAMS = ("%a %b %d %H:%M:%S %Y", "%d/%b/%Y:%H:%M:%S")  # C's asctime, and web server logs
_FIELDS = dict.fromkeys(("%d", "%m", "%H", "%I"), r"\d{1,2}") | dict.fromkeys(("%y", "%M", "%S"), r"\d\d")
_FIELDS |= {"%Y": r"\d{4}", "%p": "[AaPp][Mm]", "%a": "[A-Za-z]{3}", "%b": "[A-Za-z]{3}", "%B": "[A-Za-z]{3,9}"}
_YEAR = r"\b(?:19|20)\d\d\b"
_DAY = r"(?i)\d:\d\d|\d[./-]\d{1,2}[./-]\d|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b"
_UTC = r" ?(?:UTC|GMT|Z|[+-]00:?00)$"
_OFFSET = r"(:\d\d(?:\.\d+)?) ([+-]\d\d(?::?\d\d)?)$"
_ENDS_OF_UTC, _LONGEST_ISO = ("C", "T", " Z"), 26  # letters of a date with six digits of fractions
_FRACTION = r"(\d[:.]\d\d[:.]\d\d)[.,]\d+"


def is_plain_number(text: str) -> bool:
    """Whether a text is a number with a decimal point and without separators."""
    return _PLAIN_NUMBER.fullmatch(text) is not None


class Notation(NamedTuple):
    """The notation of numbers in strings: decimal mark, thousands separator and unit."""

    decimal: DecimalMark = "."
    thousands: str = ""  # between groups of three digits; a space matches all kinds of spaces
    unit: str = ""  # after each number

    def fits(self, strings: Any) -> np.ndarray:
        """A mask of the trimmed strings that are numbers in this notation."""
        if len(strings) <= _FIRST:  # Arrow compiles the pattern at each call
            pattern = re.compile(_pattern(*self), re.ASCII)
            return np.array([text is not None and bool(pattern.fullmatch(text)) for text in strings.to_pylist()], bool)
        return to_booleans(pc.match_substring_regex(strings, _pattern(*self)))

    def fits_all(self, strings: Any) -> bool:
        """Whether all strings are numbers in this notation; stops after the first strings if one of them is not."""
        return bool(self.fits(strings[:_FIRST]).all() and (len(strings) <= _FIRST or self.fits(strings).all()))

    def numbers(self, strings: Any) -> Any:
        """The strings as float64; each string fits the notation or is null."""
        plain = pc.replace_substring_regex(strings, '^="(.*)"$', r"\1")
        negative = rf"^(?:{_CURRENCY})?[{_SPACES}]?\((.*)\)$|^(.*){_SIGN_BEHIND}$"
        plain = pc.replace_substring_regex(plain, negative, r"-\1\2")
        unit_pattern = rf"|{re.escape(self.unit)}$" if self.unit else ""
        plain = pc.replace_substring_regex(plain, rf"{_CURRENCY}{unit_pattern}|[%{_SPACES}{_APOSTROPHES}]", "")
        for scale, power in _SCALES.items():
            plain = pc.replace_substring_regex(plain, f"{scale}$", power)
        plain = pc.replace_substring(plain, "\u2212", "-")
        if self.thousands in (".", ",", "_"):
            plain = pc.replace_substring(plain, self.thousands, "")
        return pc.replace_substring(plain, self.decimal, ".").cast(pa.float64())

    def text(self, number: float) -> str:
        """A number in this notation."""
        return repr(number).replace(".", self.decimal) + self.unit

    def description(self) -> str:
        """A phrase that shows the notation by an example."""
        return f"as 1{self.thousands}234{self.decimal}5{self.unit}"


ENGLISH = (Notation(".", ","), Notation(".", ""), Notation(".", " "), Notation(".", "'"), Notation(".", "_"))
PLAIN = Notation()
CONTINENTAL = (Notation(",", "."), Notation(",", ""), Notation(",", " "), Notation(",", "'"))


@cache
def _pattern(decimal: str, thousands: str, unit: str) -> str:
    point = re.escape(decimal)
    group = f"[{_SPACES}]" if thousands == " " else f"[{_APOSTROPHES}]" if thousands == "'" else re.escape(thousands)
    indian = r"[1-9]\d?(?:,\d\d)+,\d{3}|" if thousands == "," else ""
    whole = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|{indian}\d+)" if thousands else r"\d+"
    number = rf"(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"
    space = f"[{_SPACES}]?"
    scale = "" if unit else f"(?:{'|'.join(_SCALES)})?"
    currency, suffix = f"(?:{_CURRENCY}{space})?", f"{scale}(?:{space}(?:{_CURRENCY}|%))?{re.escape(unit)}"
    signed = f"{_SIGN}?{currency}{_SIGN}?{number}{suffix}"
    unsigned = f"{currency}{number}{suffix}"
    return rf'^(?:{signed}|="{signed}"|{_CURRENCY}?{space}\({unsigned}\)|{unsigned}{_SIGN_BEHIND})$'


def missing_words(strings: Any) -> tuple[str, ...]:
    """Up to three words without digits, such as ``unknown``, among strings with digits; empty if there are more.

    They are at most 1 % of the strings, or at most half if the other strings are too many to be codes. Signs of a
    missing value are included, and are not limited in number.
    """
    present = strings.drop_null()
    if not _DIGIT.search("".join(present[:_FIRST].to_pylist())):
        return ()
    counted = pc.value_counts(present)
    values = counted.field("values")
    is_odd = pc.or_(pc.invert(pc.match_substring_regex(values, r"\d")), pc.is_in(values, value_set=_SIGNS))
    words = {str(word["values"]): int(word["counts"]) for word in counted.filter(is_odd).to_pylist()}
    rare = {word: count for word, count in words.items() if word not in SIGNS_OF_MISSING}
    is_many = are_many(len(values) - len(words), len(present) - sum(words.values()))
    most = 0.5 if is_many else _MOST_OF_WORDS
    if len(rare) > MOST_WORDS or sum(rare.values()) > most * len(present):
        return ()
    return tuple(sorted(words))


def are_many(different: int, strings: int) -> bool:
    """Whether ``different`` strings are too many to be codes: 20 at least, and a fifth of all."""
    return different >= MANY_NUMBERS and 5 * different >= strings


def notation_of(
    strings: Any, continental: bool = False, known: Sequence[Notation] = (), is_bare: bool = True
) -> Notation | None:
    """The notation in which all strings are numbers, or None; for ``is_bare`` whole numbers only a ``known`` notation.

    As in all functions here, strings are trimmed, and none is null or means a missing value.
    """
    possible = _possible(strings, known)
    if not known and possible and is_bare and pc.all(pc.match_substring_regex(strings, r"^[+-]?\d+$")).as_py():
        return None
    candidates = sorted(possible, key=lambda notation: continental and notation.decimal == ".")
    return next((notation for notation in candidates if notation.fits_all(strings)), None)


def _possible(strings: Any, known: Sequence[Notation] = ()) -> list[Notation]:
    """Notations, ``known`` ones if any, in which the first string is a number; Python caches patterns, unlike Arrow."""
    example = text_at(strings, 0) if len(strings) else ""
    unit = unit_of(example)
    if not known and codes_in(string_array([example.removesuffix(unit).removeprefix('="').removesuffix('"')])):
        return []
    notations = [notation._replace(unit=unit) for notation in known or (*ENGLISH, *CONTINENTAL)]
    return [notation for notation in notations if _DIGIT.search(example) and re.match(_pattern(*notation), example)]


def unit_of(text: str) -> str:
    """The word after a number, with any space before it, unless it is a currency or a scale; else an empty string."""
    unit = _UNIT.fullmatch(text)
    known = rf"\s?(?:{_CURRENCY}|{'|'.join(_SCALES)})"
    return "" if unit is None or re.fullmatch(known, unit[1]) else unit[1]


def codes_in(strings: Any) -> str:
    """Why whole numbers are codes: leading zeros, or more digits than float64 has; empty if they are not."""
    if not len(strings) or not _WHOLE.match(text_at(strings, 0)):
        return ""
    zeros = strings.filter(pc.starts_with(strings, "0"))
    has_zeros = len(zeros) > 0 and pc.max(pc.binary_length(zeros)).as_py() > 1
    is_long = pc.max(lengths := pc.binary_length(strings)).as_py() > 15
    if not (has_zeros or is_long) or not pc.all(pc.match_substring_regex(strings, _WHOLE.pattern)).as_py():
        return ""
    if has_zeros:
        return ZEROS
    long = strings.filter(pc.greater(lengths, 15)).to_pylist()  # a comparison with a number imports pandas
    return EXACT if any(abs(int(text)) > 2**53 for text in long) else ""


def likeliest_notation(
    strings: Any, continental: bool = False, usual: Notation | None = None, known: Sequence[Notation] = ()
) -> Notation:
    """The notation, a ``known`` one if any, in which most strings are numbers; of equally likely ones the ``usual``."""
    if usual is not None and usual.fits_all(strings):
        return usual
    candidates = sorted(known or (*ENGLISH, *CONTINENTAL), key=lambda notation: continental and notation.decimal == ".")
    unit = unit_of(text_at(strings, 0)) if len(strings) else ""
    candidates += [notation._replace(unit=unit) for notation in candidates if unit]
    candidates = candidates if usual is None else [usual, *candidates]
    values, counts = pc.value_counts(strings.filter(pc.match_substring_regex(strings, r"\d"))).flatten()
    counts = to_numpy(counts, 0)
    return max(candidates, key=lambda notation: int(counts[notation.fits(values)].sum()))


def is_continental(columns: Iterable[Any], semicolons: bool = False) -> bool:
    """Whether the decimal mark of columns of strings is a comma.

    It is if one of them allows no other mark. If fields are separated by semicolons, it is unless one requires a point.
    """
    pointed = False
    for strings in columns:
        marks = decimal_marks(strings)
        if marks == {","}:
            return True
        pointed |= marks == {"."}
    return semicolons and not pointed


def decimal_marks(strings: Any) -> set[str]:
    """The decimal marks of the notations in which all strings are numbers."""
    return {notation.decimal for notation in _possible(strings) if notation.fits_all(strings)}


def date_format_of(strings: Any, days_first: bool = False) -> str | None:
    """The strptime format in which all strings are dates, months first unless ``days_first``; None if there is none."""
    example = text_at(strings, 0) if len(strings) else ""  # this string excludes most formats
    if not _DIGIT.search(example):
        return None
    first, second = (_DAYS_FIRST, _MONTHS_FIRST) if days_first else (_MONTHS_FIRST, _DAYS_FIRST)
    clocks = _CLOCKS if ":" in example or example.upper().endswith("M") else _CLOCKS[:1]
    known = (*(day + clock for clock in clocks for day in (*first, *second, *_OTHERS)), *_OF_PROGRAMS)
    example = re.sub(_UTC, "", re.sub(_FRACTION, r"\1", example))
    for format in (format for format in known if re.match(_date_pattern(format), example)):
        if not dates_in(strings[:_FIRST], format)[1] and not dates_in(strings, format)[1]:
            return format
    return None


def other_order(strings: Any, format: str) -> str | None:
    """The format with days and months exchanged if all strings are dates in it too; else None."""
    other = format.translate({ord("d"): "m", ord("m"): "d"})
    is_known = other.startswith((*_DAYS_FIRST, *_MONTHS_FIRST))
    return other if is_known and not dates_in(strings, other)[1] else None


def look_nearly_like_dates(strings: Any) -> bool:
    """Whether most strings seem to be dates in any format: a year, and a time, a day or a month."""
    present = strings[: 16 * _FIRST]
    counts = [pc.sum(pc.match_substring_regex(present, pattern)).as_py() or 0 for pattern in (_YEAR, _DAY)]
    return min(counts) > 0.9 * len(present)


def dates_in(strings: Any, format: str) -> tuple[Any, list[int]]:
    """Timestamps of dates in a format, without fractions and ``UTC``; and indices of strings that do not match."""
    if "S" in format:
        strings = pc.replace_substring_regex(strings, _FRACTION, r"\1")
    if not format.endswith(("UTC", "GMT", "Z", "z")):
        strings = pc.replace_substring_regex(strings, _UTC, "")
    moments = pc.strptime(strings, format=format, unit="us", error_is_null=True)
    fits = ~is_missing(moments)
    if fits.any():
        fits &= to_booleans(pc.match_substring_regex(strings, _date_pattern(format)))
    failed = ~fits & ~is_missing(strings)
    return nulled(moments, ~fits), np.flatnonzero(failed).tolist()


def has_hours(format: str) -> bool:
    """Whether a date format includes a time of day."""
    return "%H" in format or "%I" in format


def as_iso(strings: Any) -> Any:
    """Dates in nearly ISO 8601, rewritten for Arrow: at most six digits of fractions, and Z for UTC."""
    odd_masks = [
        pc.greater(pc.binary_length(strings), _LONGEST_ISO),
        *(pc.ends_with(strings, end) for end in _ENDS_OF_UTC),
        *(pc.match_substring(strings, sign) for sign in (" +", " -")),
    ]
    if not any(pc.any(mask).as_py() for mask in odd_masks):
        return strings
    for pattern, iso in ((_OFFSET, r"\1\2"), (r"(\.\d{6})\d+", r"\1"), (_UTC, "Z")):
        strings = pc.replace_substring_regex(strings, pattern, iso)
    return strings


@cache
def _date_pattern(format: str) -> str:
    escaped = re.escape(format).replace(r"\%", "%").replace(r"\ ", " ")
    return "^" + re.sub(r"%[A-Za-z]", lambda field: _FIELDS.get(field[0], ".+"), escaped) + "$"


class Note(NamedTuple):
    """A note on the rows of a file."""

    column: str
    problem: str
    remedy: str


class ColumnTypes(NamedTuple):
    """Types of columns that a user declares, so that they are not inferred.

    The ``decimal`` mark and the ``thousands`` separator of numbers that are written as texts; ``na_values`` that mean a
    missing value, in addition to the usual ones; columns that are ``numeric`` or ``categorical``; and columns of dates,
    each optionally followed by ``=FORMAT``.
    """

    decimal: str | None = None
    thousands: str | None = None
    na_values: Sequence[str] = ()
    numeric: Sequence[str] = ()
    categorical: Sequence[str] = ()
    date: Sequence[str] = ()

    @property
    def notations(self) -> list[Notation]:
        """The notations of numbers that agree with the declared marks; empty if none is declared."""
        if self.decimal is not None and self.thousands is not None:
            return [Notation(self.decimal, self.thousands)]
        if self.decimal is not None:
            return [notation for notation in (*ENGLISH, *CONTINENTAL) if notation.decimal == self.decimal]
        return [notation for notation in (*ENGLISH, *CONTINENTAL) if notation.thousands == self.thousands]

    def dates(self, names: Sequence[str]) -> dict[str, str | None]:
        """The declared formats of columns of dates, by name; names may contain equal signs."""
        formats: dict[str, str | None] = {}
        for text in self.date:
            before, percent, fields = text.partition("%")
            name, equals, sign = before.rpartition("=")  # a format may begin with a bracket
            formats |= {text: None} if text in names or not (percent and equals) else {name: sign + percent + fields}
        return formats
