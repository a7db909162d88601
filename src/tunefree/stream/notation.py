"""Notations of numbers and dates in texts: decimal commas, thousands separators, currency signs, dates by hand.

A column of strings is guessed to be written in a notation if all its values are. Signs that stand for a missing value,
such as a dash, fit every notation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.stream.arrays import is_missing, of_booleans, of_strings, text_at, to_booleans

# Beside what is missing everywhere, in columns of numbers and dates.
DASHES = ("-", "--", "---", "\u2013", "\u2014", ".", "..", "*")
SIGNS_OF_MISSING = (
    *DASHES,
    *("NA", "N/A", "n/a", "n.a.", "N.A.", "#N/A", "null", "NULL", "Null", "None", "none", "<NA>"),
)
_SIGNS = of_strings(SIGNS_OF_MISSING)
MOST_WORDS = 3  # beside numbers or dates, that are taken for missing ones
_MOST_OF_WORDS = 0.01  # of the values
_FIRST = 64  # strings of a column that are looked at before all others
_FEW = 8  # of these, by Python
_DIGIT = re.compile(r"\d")
_WHOLE = re.compile(r"^(?:[+-]?\d+|0[xX][\da-fA-F]+)$")
_SPACES = " \u00a0\u202f"
_APOSTROPHES = "'\u2019"
_CURRENCY = r"(?:[$€£¥₹]|USD|EUR|GBP|CHF|JPY)"
PLAIN_NUMBER = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"
_SIGN = "[+\u2212-]"
_CLOCKS = ("", " %H:%M", " %H:%M:%S")
_DAYS_FIRST = ("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y", "%d.%m.%y", "%d/%m/%y")
_MONTHS_FIRST = ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y")
_OTHERS = ("%Y/%m/%d", "%Y.%m.%d", "%d %b %Y", "%d-%b-%Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y")
_FIELDS = {"%d": r"\d{1,2}", "%m": r"\d{1,2}", "%Y": r"\d{4}", "%y": r"\d\d", "%H": r"\d{1,2}", "%M": r"\d\d"} | {
    "%S": r"\d\d",
    "%b": "[A-Za-z]{3}",
    "%B": "[A-Za-z]{3,9}",
}


class Notation(NamedTuple):
    """How numbers are written.

    Examples
    --------
    >>> Notation(",", ".").numbers(pa.array(["1.234,50 €", "-7 %", "–", None])).to_pylist()
    [1234.5, -7.0, None, None]
    """

    decimal: str = "."
    thousands: str = ""  # between groups of three digits; a space stands for all spaces

    def fits(self, strings: Any) -> np.ndarray:
        """Which strings without white space around them are numbers in this notation."""
        return to_booleans(pc.match_substring_regex(strings, _pattern(*self)))

    def fits_all(self, strings: Any) -> bool:
        """Whether all of them are; few are looked at where the first are not."""
        return bool(self.fits(strings[:_FIRST]).all() and (len(strings) <= _FIRST or self.fits(strings).all()))

    def numbers(self, strings: Any) -> Any:
        """The numbers; what is none must be null, or a sign of a missing value, and becomes null."""
        present = _without_signs(strings)
        plain = pc.replace_substring_regex(present, rf"{_CURRENCY}|[%{_SPACES}{_APOSTROPHES}]", "")
        plain = pc.replace_substring(plain, "\u2212", "-")
        if self.thousands in (".", ","):
            plain = pc.replace_substring(plain, self.thousands, "")
        return pc.replace_substring(plain, self.decimal, ".").cast(pa.float64())

    def description(self) -> str:
        """The notation by an example."""
        return f"as 1{self.thousands}234{self.decimal}5"


ENGLISH = (Notation(".", ","), Notation(".", ""), Notation(".", " "), Notation(".", "'"))
PLAIN = Notation()
CONTINENTAL = (Notation(",", "."), Notation(",", ""), Notation(",", " "), Notation(",", "'"))


@cache
def _pattern(decimal: str, thousands: str) -> str:
    point = re.escape(decimal)
    group = f"[{_SPACES}]" if thousands == " " else f"[{_APOSTROPHES}]" if thousands == "'" else re.escape(thousands)
    whole = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d+)" if thousands else r"\d+"
    number = rf"(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"
    space = f"[{_SPACES}]?"
    return rf"^{_SIGN}?(?:{_CURRENCY}{space})?{_SIGN}?{number}(?:{space}(?:{_CURRENCY}|%))?$"


def stands_for_missing(strings: Any) -> np.ndarray:
    """Which strings are null, or signs of a missing number or date."""
    return to_booleans(pc.is_in(strings, value_set=_SIGNS)) | is_missing(strings)


def missing_words(strings: Any) -> tuple[str, ...]:
    """Up to three words such as ``unknown`` in at most 1 % of some strings, all others of which hold digits.

    Signs of a missing value may be as many as they are, and are among the words; nothing if there are more words.

    Examples
    --------
    >>> missing_words(pa.array(["7", "8"] * 100 + ["unknown", "-", "-"])), missing_words(pa.array(["7", "a", "b"]))
    (('-', 'unknown'), ())
    """
    present = strings.drop_null()
    if not _DIGIT.search("".join(present[:_FIRST].to_pylist())):
        return ()
    odd = present.filter(pc.invert(pc.match_substring_regex(present, r"\d")))
    words = {str(word["values"]): int(word["counts"]) for word in pc.value_counts(odd).to_pylist()}
    rare = {word: count for word, count in words.items() if word not in SIGNS_OF_MISSING}
    if len(rare) > MOST_WORDS or sum(rare.values()) > _MOST_OF_WORDS * len(present):
        return ()
    return tuple(sorted(words))


def _without_signs(strings: Any) -> Any:
    """Strings; null where a sign says that the value is missing."""
    gone = stands_for_missing(strings)
    return pc.if_else(of_booleans(gone), pa.nulls(len(strings), pa.string()), strings) if gone.any() else strings


def notation_of(strings: Any, continental: bool = False, known: Notation | None = None) -> Notation | None:
    """The notation in which all strings are numbers; None if there is none.

    Plain numbers, with nothing to tell them from codes, have one only if it is given.

    Parameters
    ----------
    strings : pyarrow.Array
        Without white space around them.
    continental : bool, default False
        Whether other columns have decimal commas: then ``1,234`` is no thousand, and ``1.234`` is one.
    known : Notation, optional
        The only notation that is asked for.

    Examples
    --------
    >>> for strings in (["1,5", "2"], ["1,500", "2"], ["$1 500.20", "-"], ["5", "x"]):
    ...     print(notation_of(pa.array(strings)))
    Notation(decimal=',', thousands='.')
    Notation(decimal='.', thousands=',')
    Notation(decimal='.', thousands=' ')
    None
    """
    possible = _possible(strings) if known is None else [known]
    if not possible:
        return None
    present = _without_signs(strings).drop_null()
    if not len(present):
        return None
    if len(present) + strings.null_count == len(strings) and are_plain(present):
        pointed = pc.any(pc.match_substring(present, ".")).as_py()
        if known is None and not (continental and pointed):
            return None
    candidates = sorted(possible, key=lambda notation: continental and notation in ENGLISH)
    return next((notation for notation in candidates if notation.fits_all(present)), None)


def _possible(strings: Any) -> list[Notation]:
    """Notations in which the first string that is there is a number; Arrow would compile each pattern anew."""
    one = _first(strings)
    return [
        notation for notation in (*ENGLISH, *CONTINENTAL) if _DIGIT.search(one) and re.match(_pattern(*notation), one)
    ]


def _first(strings: Any) -> str:
    """The first string that does not stand for a missing value; nothing where all do."""
    for place in range(min(len(strings), _FEW)):
        if strings[place].is_valid:
            one = text_at(strings, place)
            if one not in SIGNS_OF_MISSING:
                return one
    rest = _without_signs(strings[_FEW:]).drop_null()
    return text_at(rest, 0) if len(rest) else ""


ZEROS, EXACT = "leading zeros", "whole numbers beyond 2^53"


def codes_in(strings: Any) -> str:
    """What makes codes of strings that look like numbers: leading zeros, or digits that float64 loses; else nothing.

    Parameters
    ----------
    strings : pyarrow.Array
        Without white space around them.

    Examples
    --------
    >>> codes_in(pa.array(["01234", "10115"])), codes_in(pa.array(["9007199254740993"])), codes_in(pa.array(["0.5"]))
    ('leading zeros', 'whole numbers beyond 2^53', '')
    """
    if not _WHOLE.search(_first(strings)):
        return ""
    present = _without_signs(strings).drop_null()
    if not pc.all(pc.match_substring_regex(present, _WHOLE.pattern)).as_py():
        return ""
    if pc.any(pc.match_substring_regex(present, r"^0[\dxX]")).as_py():
        return ZEROS
    long = present.filter(pc.greater(pc.binary_length(present), 15)).to_pylist()
    return EXACT if any(abs(int(text)) > 2**53 for text in long) else ""


def likeliest_notation(strings: Any, continental: bool = False) -> Notation:
    """The notation in which most of the strings are numbers.

    Examples
    --------
    >>> likeliest_notation(pa.array(["1,5", "gone", "2,5"]))
    Notation(decimal=',', thousands='.')
    """
    candidates = [*CONTINENTAL, *ENGLISH] if continental else [*ENGLISH, *CONTINENTAL]
    return max(candidates, key=lambda notation: int(notation.fits(strings).sum()))


def are_plain(strings: Any) -> bool:
    """Whether all strings are numbers as programs write them."""
    return bool(pc.all(pc.match_substring_regex(strings, PLAIN_NUMBER)).as_py())


def is_continental(columns: Iterable[Any]) -> bool:
    """Whether a column of strings has numbers with decimal commas, which cannot be anything else."""
    for strings in columns:
        possible = _possible(strings)
        continental = [notation for notation in possible if notation in CONTINENTAL]
        present = _without_signs(strings).drop_null() if continental else strings
        english = (notation.fits_all(present) for notation in possible if notation in ENGLISH)
        if continental and not any(english) and any(notation.fits_all(present) for notation in continental):
            return True
    return False


def date_format_of(strings: Any, days_first: bool = False) -> str | None:
    """The format of dates, as strptime has it, in which all strings are written; None if there is none.

    Where both the day and the month may come first, the month does unless ``days_first``.

    Examples
    --------
    >>> date_format_of(pa.array(["12.3.2024", "1.10.2024"])), date_format_of(pa.array(["2/29/2024", "-"]))
    ('%d.%m.%Y', '%m/%d/%Y')
    """
    one = _first(strings)  # excludes most formats
    if not _DIGIT.search(one):
        return None
    present = _without_signs(strings).drop_null()
    first, second = (_DAYS_FIRST, _MONTHS_FIRST) if days_first else (_MONTHS_FIRST, _DAYS_FIRST)
    formats = (day + clock for clock in _CLOCKS for day in (*first, *second, *_OTHERS))
    formats = (format for format in formats if re.match(_date_pattern(format), one))
    return next(
        (
            format
            for format in formats
            if not dates_in(present[:_FIRST], format)[1] and not dates_in(present, format)[1]
        ),
        None,
    )


def dates_in(strings: Any, format: str) -> tuple[Any, list[int]]:
    """Timestamps of dates in a format, null where they are missing, and the places of what is no such date."""
    present = _without_signs(strings)
    moments = pc.strptime(present, format=format, unit="us", error_is_null=True)
    fits = ~is_missing(moments)
    if fits.any():
        fits &= to_booleans(pc.match_substring_regex(present, _date_pattern(format)))
    wrong = ~fits & ~is_missing(present)
    return pc.if_else(of_booleans(fits), moments, pa.nulls(len(moments), moments.type)), np.flatnonzero(wrong).tolist()


@cache
def _date_pattern(format: str) -> str:
    return "^" + re.sub(r"%[A-Za-z]", lambda field: _FIELDS.get(field[0], ".+"), _escaped(format)) + "$"


def _escaped(format: str) -> str:
    return re.escape(format).replace(r"\%", "%").replace(r"\ ", " ")


class Note(NamedTuple):
    """What is to be said of the rows of a file."""

    column: str
    problem: str
    remedy: str


class ColumnTypes(NamedTuple):
    """What a user says about columns, instead of letting it be guessed.

    Parameters
    ----------
    decimal, thousands : str, optional
        In numbers that are written as texts.
    na_values : sequence of str
        What stands for a missing value, beside what always does.
    numeric, categorical : sequence of str
        Columns of numbers, and of categories.
    date : sequence of str
        Columns of dates, each followed by ``=FORMAT`` or not.
    """

    decimal: str | None = None
    thousands: str | None = None
    na_values: Sequence[str] = ()
    numeric: Sequence[str] = ()
    categorical: Sequence[str] = ()
    date: Sequence[str] = ()

    @property
    def notation(self) -> Notation | None:
        """The notation asked for, if one is."""
        if self.decimal is None and self.thousands is None:
            return None
        decimal = self.decimal or ("," if self.thousands == "." else ".")
        return Notation(decimal, self.thousands or "")

    def dates(self, names: Sequence[str]) -> dict[str, str | None]:
        """The formats of columns of dates, of which there are these; names may have equal signs of their own."""
        formats: dict[str, str | None] = {}
        for text in self.date:
            name, _, format = text.partition("=%")
            formats |= {text: None} if text in names or not format else {name: "%" + format}
        return formats

    def as_written(self, names: Sequence[str]) -> list[str]:
        """Columns that are read as strings from text, so that nothing is lost."""
        return [*self.categorical, *self.dates(names)]
