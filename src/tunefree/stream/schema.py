"""The kind of each column of a table, inferred from a sample of its values and from the user's options.

A column that comes later is inferred from its first value alone, so that nothing depends on where a stream is cut.

The same digits may be two numbers: 1.868 is one thousand in a continental file. A further file is read in the notation
of training where all values fit it and no other column has another decimal mark, else in the likeliest one. Either is
noted where it differs from that of training.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tunefree.core.errors import DataError
from tunefree.stream.arrays import (
    beyond_doubles,
    boolean_array,
    cast,
    is_missing,
    nulled,
    plain_numbers,
    string_array,
    text_at,
)
from tunefree.stream.batch import Chunk
from tunefree.stream.columns import (
    LIKE_DATES,
    OF_WORDS,
    RARE_WORD,
    Array,
    Faults,
    blank_to_null,
    decoded,
    family,
    without,
    without_signs,
    without_words,
)
from tunefree.stream.kinds import (
    TRUTH_WORDS,
    Bag,
    Boolean,
    Category,
    Number,
    Text,
    TimeOfDay,
    Timestamp,
    Vector,
    to_timestamps,
)
from tunefree.stream.notation import (
    EXACT,
    PLAIN,
    ZEROS,
    ColumnTypes,
    Notation,
    Note,
    are_many,
    as_iso,
    codes_in,
    date_format_of,
    dates_in,
    decimal_marks,
    has_hours,
    is_continental,
    is_whole,
    likeliest_notation,
    look_nearly_like_dates,
    missing_words,
    notation_of,
)
from tunefree.stream.spellings import NULLS

_FIRST = 64  # strings that are looked at before all others
_SAMPLE = 4096  # rows among which a value is rare, and from which texts are guessed
_PAIRS = ({0, 1, 2, 3}, {4, 5, 6, 7})  # places of words beside each other, and beside digits
_DIGITS = {8, 9}
_DATE = r"^\s*\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?"
_TIME = r"^(([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?|(0?\d|1[012]):[0-5]\d(:[0-5]\d)? ?[AaPp][Mm])$"
_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)"
_FEWEST, _LONG, _DISTINCT = 20, 40.0, 0.8
_WORD_PATTERNS = {2: r"\p{L}{2,}.*\s", 3: r"\p{L}{2,}.*\s.*\s"}
MOST_LABELS = 100  # with leading zeros; a target with more of them is a number
_TRUTHS = string_array(("true", "True", "TRUE", "false", "False", "FALSE"))
_LOOKED_AT = 1000  # values of a column that tell whether a file is continental
_NOTHING = pa.nulls(0, pa.string())
_ISO = "YYYY-MM-DD"


class Inference:
    """Infers columns from their arrays in a first chunk, by name, and from the user's options.

    ``texts`` are columns of texts. If not ``typed``, the source does not distinguish strings of digits from numbers.
    ``semicolons`` are between its fields. Of the ``target`` integers beyond 2^53 are distinguished.
    """

    def __init__(
        self,
        arrays: dict[str, Any],
        file: str,
        texts: Sequence[str],
        column_types: ColumnTypes,
        typed: bool = True,
        semicolons: bool = False,
        target: str | None = None,
    ) -> None:
        self.file, self.texts, self.column_types, self.typed = file, texts, column_types, typed
        self.arrays = {name: without(array, column_types.na_values) for name, array in arrays.items()}
        self.dates = column_types.dates(list(arrays))
        if not typed:
            as_written = {*column_types.categorical, *self.dates, *texts}
            texts_alone = {name: decoded(array) for name, array in self.arrays.items() if name not in as_written}
            self.arrays |= values_of_texts(texts_alone, column_types, semicolons, target)
        self.relieved = {name for name, array in arrays.items() if self.arrays[name].null_count > array.null_count}
        self.strings = {
            name: blank_to_null(decoded(array), () if typed or name in column_types.categorical else NULLS)
            for name, array in self.arrays.items()
            if family(array.type) == "string"
        }
        is_asked = column_types.notation is not None
        self.continental = not is_asked and is_continental(self.strings.values(), semicolons)
        self.in_doubt = self.continental and not is_continental(self.strings.values())
        self.notes = list[Note]()

    def column(self, name: str) -> Any:
        """The column of a name; a DataError if its type has no features, or differs from the user's options."""
        array = self.arrays[name]
        kind = family(array.type)
        if name in self.column_types.categorical:
            return Category(name, numbers=True)
        if name in self.column_types.numeric:
            return self._numbers(name)
        if name in self.dates:
            return self._dates(name)
        if name in self.texts:
            if kind not in Text.families:
                problem = f"a text column must hold strings, not {array.type}"
                raise DataError(problem, self.file, column=name, remedy="leave it out of `text`")
            return Text(name)
        if kind == "string":
            return self._guessed(name)
        if kind == "number" and beyond_doubles(decoded(array)):
            return Category(name, numbers=True, doubt=(EXACT, ""))
        if kind == "moment":
            return _timestamp(name, array.type)
        if kind == "numbers":
            return Vector(name, pc.max(pc.list_value_length(array)).as_py() or 0)
        if kind not in _BY_FAMILY:
            problem = f"columns of type {array.type} cannot be used"
            raise DataError(problem, self.file, column=name, remedy=f"pass `ignore={name!r}`")
        return _BY_FAMILY[kind](name)

    def is_empty(self, name: str) -> bool:
        """Whether a column has no values, and no type of values either."""
        array = self.strings.get(name, self.arrays[name])
        return family(array.type) in ("string", "null") and array.null_count == len(array)

    def notation(self, name: str) -> Notation | None:
        """The notation of a column of strings that are numbers; None for any other."""
        if name not in self.strings or codes_in(self.strings[name]):
            return None
        notation = notation_of(self.strings[name], self.continental, self.column_types.notation)
        if notation is not None and self.in_doubt and len(decimal_marks(self.strings[name])) > 1:
            problem = f"numbers are read {notation.description()}, as fields are divided by semicolons"
            self.notes.append(Note(name, problem, "`decimal` and `thousands` decide"))
        # Whole numbers are codes unless something that the user calls missing has made strings of them.
        return notation_of(self.strings[name], known=PLAIN) if notation is None and name in self.relieved else notation

    def target_notation(self, name: str) -> Notation | None:
        """The notation of a target of strings if most are numbers, too many different ones to be classes."""
        notation, strings = self.notation(name), self.strings[name]
        if notation is not None or (codes_in(strings) and name not in self.column_types.numeric):
            return notation
        likeliest = self.column_types.notation or likeliest_notation(strings, self.continental)
        numbers = strings.filter(_fitting(strings, likeliest))
        is_most = 2 * len(numbers) > len(strings) - strings.null_count
        is_numeric = is_most and are_many(pc.count_distinct(numbers).as_py(), len(numbers))
        return likeliest if is_numeric or name in self.column_types.numeric else None

    def _guessed(self, name: str) -> Any:
        """The kind of column that strings look like."""
        strings = self.strings[name]
        if looks_like_text(strings):
            return Text(name)
        if looks_like_booleans(strings):
            return Boolean(name, words=True)
        column = self._quantity(name, strings, self.notation(name))
        words = missing_words(strings) if column is None else ()
        rest = without(strings, words)
        if words and not codes_in(rest):
            notation = notation_of(rest, self.continental, self.column_types.notation) or notation_of(rest, known=PLAIN)
            column = self._quantity(name, rest, notation)
            if column is not None:
                column.na_values = words
        if column is None and are_of_words(strings, _DISTINCT, 3) and not look_nearly_like_dates(strings):
            return Text(name)
        return self._category(name) if column is None else column

    def _quantity(self, name: str, strings: Any, notation: Notation | None) -> Any:
        """The column of strings that are all dates, times of day, or numbers in a notation; None for any others."""
        strings = without_signs(strings)
        if (iso := _iso_dates(name, strings)) is not None:
            return iso
        if looks_like_times(strings):
            return TimeOfDay(name)
        format = date_format_of(strings, self.continental)
        if format is not None:
            return Timestamp(name, None, has_hours(format), format=format)
        is_pointed = notation is not None and notation.decimal == "."
        if is_pointed and not self.typed and plain_numbers(self.strings[name]) is not None:
            return Number(name)
        return None if notation is None else Number(name, notation)

    def _category(self, name: str) -> Category:
        """A category, and the doubt about it, if there is one."""
        strings = self.strings[name]
        codes, rare = codes_in(strings), _rare_word(strings, self.continental)
        doubt: tuple[str, ...] = ()
        if codes and not self.typed:
            doubt = codes, ""
        elif rare is not None and not codes:
            doubt = RARE_WORD, rare
        elif look_nearly_like_dates(strings):
            doubt = LIKE_DATES, strings.drop_null()[0].as_py()
        elif are_of_words(strings, 0.5, 2):
            doubt = OF_WORDS, ""
        return Category(name, codes == EXACT, doubt)

    def _numbers(self, name: str) -> Number:
        array = self.arrays[name]
        if family(array.type) not in Number.families:
            raise DataError(f"{array.type} is no number", self.file, column=name, remedy="leave it out of `numeric`")
        if name not in self.strings:
            return Number(name)
        return Number(name, self.column_types.notation or likeliest_notation(self.strings[name], self.continental))

    def _dates(self, name: str) -> Timestamp:
        array, format = self.arrays[name], self.dates[name]
        if format is None and family(array.type) == "moment":
            return _timestamp(name, array.type)
        strings = without_signs(blank_to_null(decoded(array).cast(pa.string(), safe=False)))
        if format is None and (iso := _iso_dates(name, strings)) is not None:
            return iso
        format = format or date_format_of(strings, self.continental)
        if format is None or (len(strings) and len(dates_in(strings, format)[1]) == len(strings)):
            none_fits, not_this = "no format of dates fits all its values", f"no value is a date as in {format}"
            problem = none_fits if format is None else not_this
            remedy = f"name the format, such as `date={name + '=%d.%m.%Y'!r}`"
            raise DataError(problem, self.file, column=name, remedy=remedy)
        return Timestamp(name, None, has_hours(format), format=format)


def values_of_texts(
    texts: dict[str, Any], column_types: ColumnTypes, semicolons: bool, target: str | None = None
) -> dict[str, Any]:
    """Columns of texts as the plain numbers, integers or booleans that they are, and else as strings.

    Codes stay strings, and so do numbers with a point where other columns may have decimal commas. A target is a number
    in spite of leading zeros if it has too many different ones for classes.
    """
    values = {name: _values_of(strings) for name, strings in texts.items() if family(strings.type) == "string"}
    others = (texts[name] for name, array in values.items() if pa.types.is_string(array.type))
    perhaps = (blank_to_null(strings) for strings in others if decimal_marks(blank_to_null(strings[:_FIRST])))
    may_have_commas = column_types.notation is not None or semicolons or is_continental(perhaps)
    for name in [name for name, array in values.items() if family(array.type) == "number"]:
        codes = _codes_of(values[name], texts[name])
        if codes and name in column_types.numeric and (codes == ZEROS or name != target):
            continue
        if codes:
            is_target = name == target
            values[name] = _target_of_codes(codes, values[name], texts[name]) if is_target else texts[name]
        elif may_have_commas and pc.any(pc.match_substring_regex(texts[name], "[.eE]")).as_py():
            values[name] = texts[name]
    return values


def _codes_of(numbers: Any, texts: Any) -> str:
    """The reason why texts that are numbers are codes, see :func:`tunefree.stream.notation.codes_in`; or empty."""
    first = blank_to_null(texts[:_FIRST], NULLS)
    if first.null_count < len(first) and not is_whole(first):
        return ""
    strings, ends = blank_to_null(texts, NULLS), pc.min_max(numbers).as_py()
    is_long = max(-ends["min"], ends["max"]) >= 2**53
    return codes_in(strings) if is_long or pc.any(pc.starts_with(strings, "0")).as_py() else ""


def _target_of_codes(codes: str, numbers: Any, texts: Any) -> Any:
    """A target of codes: distinguished integers; amounts with zeros in front; else texts."""
    strings = blank_to_null(texts, NULLS)
    if codes == ZEROS:
        return numbers if pc.count_distinct(strings).as_py() > MOST_LABELS else texts
    whole, unfit = cast(strings, pa.int64())
    return texts if unfit else whole


def _values_of(strings: Any) -> Any:
    """Strings as numbers or booleans, if all are such; nulls if there is none."""
    numbers = plain_numbers(strings)
    if numbers is None:
        strings_or_null = blank_to_null(strings, NULLS)
        present = strings_or_null.drop_null()
        if len(present) and all(pc.all(pc.is_in(part, value_set=_TRUTHS)).as_py() for part in (present[:1], present)):
            return pc.utf8_lower(strings_or_null).cast(pa.bool_())
        numbers = plain_numbers(strings_or_null)
    if numbers is None:
        return strings
    is_nothing = pc.is_null(numbers, nan_is_null=True)
    return pa.nulls(len(strings)) if pc.all(is_nothing, min_count=0).as_py() else numbers


def _rare_word(strings: Any, continental: bool) -> str | None:
    """The first of the few values that are no numbers among many that are; None where there are no such."""
    present = strings[:_SAMPLE].drop_null()
    words = present.filter(pc.invert(_fitting(present, likeliest_notation(present, continental))))
    return words[0].as_py() if 0 < 2 * len(words) < len(present) else None


def _fitting(strings: Any, notation: Notation) -> Any:
    """A mask of the strings that are numbers in a notation, null where they are null; few strings may differ."""
    encoded = strings.dictionary_encode()
    return boolean_array(notation.fits(encoded.dictionary)).take(encoded.indices)


def _iso_dates(name: str, strings: Array) -> Timestamp | None:
    """The column of strings, trimmed, that are dates as ISO 8601 writes them, all with or all without a zone; or None.

    Those with an offset are read in UTC.
    """
    present = strings.drop_null()
    if not len(present) or not re.match(_DATE, text_at(present, 0)):  # Arrow would compile each pattern anew
        return None
    dates = as_iso(present)
    for zone, pattern in ((None, _DATE + "$"), ("UTC", _DATE + _ZONE + "$")):
        if pc.all(pc.match_substring_regex(dates, pattern)).as_py():
            are_dates = not cast(*to_timestamps(dates, zone))[1]
            return Timestamp(name, zone, pc.any(pc.match_substring(present, ":")).as_py()) if are_dates else None
    return None


def looks_like_times(strings: Array) -> bool:
    """Whether all strings, trimmed, are times of day, HH:MM or HH:MM:SS with decimals or without."""
    present = strings.drop_null()
    if not len(present) or not re.match(_TIME, text_at(present, 0)):
        return False
    return pc.all(pc.match_substring_regex(present, _TIME)).as_py()


def looks_like_booleans(strings: Array) -> bool:
    """Whether strings are words for true and false, both of them."""
    words = pc.index_in(pc.utf8_lower(strings.slice(0, 1)), value_set=TRUTH_WORDS)
    if words.null_count > strings.slice(0, 1).null_count:
        return False
    places = {*pc.index_in(pc.utf8_lower(pc.unique(strings).drop_null()), value_set=TRUTH_WORDS).to_pylist()}
    words_alone = places - _DIGITS
    return any(words_alone <= pair for pair in _PAIRS) and bool(words_alone) and len({k % 2 for k in places}) == 2


def looks_like_text(strings: Array) -> bool:
    """Whether strings are texts: most long, different from each other, and with a space."""
    present = strings[:_SAMPLE].drop_null()
    if len(present) < _FEWEST:
        return False
    long = pc.mean(pc.utf8_length(present)).as_py() >= _LONG
    different = pc.count_distinct(present).as_py() >= _DISTINCT * len(present)
    return long and different and pc.mean(pc.match_substring(present, " ").cast(pa.int8())).as_py() > 0.5


def are_of_words(strings: Array, share: float, words: int) -> bool:
    """Whether strings may be short texts: a share of them different from each other, most of so many words or more."""
    present = strings[:_SAMPLE].drop_null()
    if len(present) < _FEWEST or pc.count_distinct(present).as_py() < share * len(present):
        return False
    return bool(pc.mean(pc.match_substring_regex(present, _WORD_PATTERNS[words]).cast(pa.int8())).as_py() > 0.5)


def _timestamp(name: str, arrow_type: Any) -> Timestamp:
    return Timestamp(name, getattr(arrow_type, "tz", None), pa.types.is_timestamp(arrow_type))


_BY_FAMILY: dict[str, Callable[[str], Any]] = {
    **{"number": Number, "duration": Number, "category": Category, "null": Category},
    **{"boolean": Boolean, "time": TimeOfDay, "strings": Bag},
}


@dataclass
class Further:
    """Columns that an encoder does not know: types of those ``left_out``, and ``rows`` of the stream so far."""

    ignored: list[str]
    decimal: str | None = None
    thousands: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    rows: int = 0

    def columns(
        self, table: Any, known: Iterable[str | None], file: str, row: int, na_values: Sequence[str], typed: bool
    ) -> list[Any]:
        """The columns that the rows of a chunk add, in the order of their first values; ``row`` is its first row."""
        names, firsts = {*known, *self.left_out}, []
        for name in table.schema.names:
            if name in names or is_among(name, self.ignored):
                continue
            array = blank_to_null(decoded(without(table.column(name), na_values)))
            array = nulled(array, pc.is_nan(array)) if pa.types.is_floating(array.type) else array
            present = ~is_missing(array)
            if present.any():
                firsts.append((int(present.argmax()), name, array))
        length = table.num_rows if not typed and row == 1 and self.rows else 1
        columns = [(at, self._column(name, array[at : at + length], file, typed)) for at, name, array in sorted(firsts)]
        for at, column in columns:
            if column is not None:
                column.since = self.rows + at + 1
        return [column for _, column in columns if column is not None]

    def _column(self, name: str, values: Array, file: str, typed: bool) -> Any:
        """The kind of column that values show; None, and the type is noted, if there is none."""
        first = values[0].as_py()  # taken alone
        if isinstance(first, str) and len(first) >= _LONG and " " in first:
            return Text(name)
        column_types = ColumnTypes(self.decimal, self.thousands)
        try:
            column = Inference({name: values}, file, [], column_types, typed).column(name)
        except DataError:
            self.left_out[name] = str(values.type)
            return None
        return Vector(name) if column.kind == Vector.kind else column


def is_among(name: str, columns: Iterable[str]) -> bool:
    """Whether a column, or a struct that it is a part of, is among some."""
    return any(name == column or name.startswith(f"{column}.") for column in columns)


class FileNotation:
    """Finds how a file writes the numbers and dates of columns that are known.

    ``strings`` are those columns of the file that are such; ``trained`` has the notations of training, None for plain
    numbers, and ``asked`` the one that the user names.
    """

    def __init__(
        self, strings: dict[str, Any], trained: dict[str, Notation | None], asked: Notation | None = None
    ) -> None:
        self.strings, self.trained, self.asked, self.notes = strings, trained, asked, list[Note]()
        names = [name for name in trained if name in strings]
        self.plain = {name for name in names if plain_numbers(strings[name]) is not None}
        telling = [name for name in names if name not in self.plain or trained[name]]
        decimals: set[str] = set()
        for name in [*telling, *(self.plain if telling else ())]:  # those that tell most come first
            if name in telling or not decimals:
                marks = decimal_marks(strings[name].drop_null()[:_LOOKED_AT])
                decimals |= marks if len(marks) == 1 else set()
        self.decimal = decimals.pop() if len(decimals) == 1 else None

    def number_notation(self, name: str) -> Notation | None:
        """The notation of a column of numbers; None for plain numbers."""
        trained = self.trained[name]
        if name not in self.strings:
            return trained
        if name in self.plain and trained is None and self.asked is None and self.decimal != ",":
            return None
        strings, usual = self.strings[name].drop_null(), trained or PLAIN
        likeliest = self.asked or likeliest_notation(strings, self.decimal == ",")
        is_usual = self.asked is None and self.decimal in (None, usual.decimal) and usual.fits_all(strings)
        if is_usual or usual == likeliest:
            return trained if trained is not None or name in self.plain else PLAIN
        if self.asked is None and not _read_alike(strings, usual, likeliest):
            problem = f"numbers are read {likeliest.description()}, where training had them {usual.description()}"
            self.notes.append(Note(name, problem, "`decimal` and `thousands` decide"))
        return likeliest

    def date_format(self, name: str, trained: str | None) -> str | None:
        """The format of a column of dates, which was the same or another in training; None for ISO 8601."""
        strings = self.strings.get(name, _NOTHING)
        is_iso = _iso_dates(name, strings) is not None
        if not len(strings.drop_null()) or (is_iso if trained is None else not dates_in(strings, trained)[1]):
            return trained
        format = None if is_iso else date_format_of(strings, self.decimal == ",") or trained
        if format != trained:
            problem = f"dates are read as {format or _ISO}, where training had them as {trained or _ISO}"
            self.notes.append(Note(name, problem, f"`date={name + '=FORMAT'!r}` decides"))
        return format


def _read_alike(strings: Any, first: Notation, second: Notation) -> bool:
    """Whether two notations read the same numbers from strings, and none from the same others."""
    fitting = first.fits(strings)
    numbers = strings.filter(boolean_array(fitting))
    same = bool((fitting == second.fits(strings)).all())
    return same and first.numbers(numbers).equals(second.numbers(numbers))


def as_written(encoder: Any, sample: Chunk, column_types: ColumnTypes) -> Any:
    """An encoder that shares its features with another, and reads numbers and dates as a sample has them."""
    adapted = copy.copy(encoder)
    adapted.na_values = tuple(dict.fromkeys([*encoder.na_values, *column_types.na_values]))
    formats = column_types.dates([column.name for column in adapted.columns])
    trained = {column.name: column.notation for column in adapted.columns if column.kind == Number.kind}
    target = adapted.target if adapted.target_family == "number" else None
    roles = [name for name in (adapted.weight, adapted.exposure, target) if name is not None]
    trained |= {name: adapted.notations.get(name) for name in roles}
    texts = dict[str, Any]()
    known = {*trained, *(column.name for column in adapted.columns if column.kind == Timestamp.kind)}
    for name, array in zip(sample.data.schema.names, sample.data.columns, strict=True):
        if name in known and family(array.type) == "string":
            texts[name] = without_words(without(array, adapted.na_values), name, (), Faults())
    file = FileNotation(texts, trained, column_types.notation)
    adapted.columns = [copy.copy(column) for column in adapted.columns]
    for column in adapted.columns:
        if column.kind == Number.kind:
            column.notation = file.number_notation(column.name)
        elif column.kind == Timestamp.kind:  # formats that are said are taken out
            column.format = formats.pop(column.name, None) or file.date_format(column.name, column.format)
    if formats:
        remedy = "name a column that was one of dates in training"
        raise DataError("the model has no such column of dates", column=next(iter(formats)), remedy=remedy)
    notations = {name: file.number_notation(name) for name in roles}
    adapted.notations = {name: notation for name, notation in notations.items() if notation is not None}
    adapted.notes = file.notes
    if column_types.notation is not None and not texts.keys() & trained.keys():
        remedy = "leave `decimal` and `thousands` out"
        raise DataError("no column of numbers is written as text", sample.file, remedy=remedy)
    return adapted


def with_numbers_as_texts(encoder: Any, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Objects of JSON whose numbers are written as an encoder reads them from strings."""
    notations = notations_of(encoder)
    if not notations:
        return [dict(row) for row in rows]

    def written(name: str, value: Any) -> Any:
        return notations[name].text(value) if name in notations and type(value) in (int, float) else value

    return [{name: written(name, value) for name, value in row.items()} for row in rows]


def notations_of(encoder: Any) -> dict[str, Notation]:
    """The notations by which an encoder reads numbers from strings, of columns of numbers, targets and weights."""
    types = encoder.types()
    columns = {column.name: column.notation or PLAIN for column in encoder.columns if column.kind == Number.kind}
    return {name: notation for name, notation in (columns | encoder.notations).items() if types[name] == pa.string()}
