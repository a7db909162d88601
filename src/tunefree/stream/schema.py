"""The kind of each column of a table, inferred from a sample of its values and from the user's options.

A later column is inferred from its first value alone, so the result does not depend on how a stream is cut into chunks.

The same digits may be two numbers: 1.868 exceeds one thousand in a continental file. A further file is read in the
notation of training if all values fit it and its columns do not agree on another decimal mark, else in the likeliest
notation. A notation that differs from training is noted.
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
    SIGNS,
    TRUTH_WORDS,
    Array,
    Bag,
    Boolean,
    Category,
    Faults,
    Number,
    Text,
    TimeOfDay,
    Timestamp,
    Vector,
    blank_to_null,
    decoded,
    family,
    to_timestamps,
    without,
    without_words,
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
    likeliest_notation,
    look_nearly_like_dates,
    missing_words,
    notation_of,
    other_order,
)
from tunefree.stream.spellings import NULLS, SIGNS_OF_MISSING

_SAMPLE = 4096  # rows from which rare values and texts are inferred
_PAIRS = ({0, 1, 2, 3}, {4, 5, 6, 7})  # indices into TRUTH_WORDS of words that occur together
_DIGITS = {8, 9}
_DATE = r"^\s*\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?"
_TIME = r"^(([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?|(0?\d|1[012]):[0-5]\d(:[0-5]\d)? ?[AaPp][Mm])$"
_ZONE = r"(Z|[+-]\d\d(:?\d\d)?)"
_FEWEST, _LONG, _DISTINCT = 20, 40.0, 0.8
_WORD_PATTERNS = {1: " ", 2: r"\p{L}{2,}.*\s", 3: r"\p{L}{2,}.*\s.*\s"}
MOST_LABELS = 100  # with leading zeros; a target with more different ones is a number
INTEGER = "integer"  # the family of a target of integers that float64 does not distinguish
TARGET_TYPES = {"number": pa.float64(), INTEGER: pa.int64(), "string": pa.string(), "boolean": pa.bool_()}
_TRUTHS = string_array(("true", "True", "TRUE", "false", "False", "FALSE"))
_MISSING_STRINGS = pa.concat_arrays([SIGNS, pa.nulls(1, pa.string())])
_EXAMINED = 1000  # values of a column from which the decimal mark is inferred
_NO_STRINGS = pa.nulls(0, pa.string())
_ISO = "YYYY-MM-DD"


class Inference:
    """Infers columns from their arrays in the first chunk and from the user's options.

    ``texts`` are names of columns of texts. If not ``typed``, the source does not distinguish strings of digits from
    numbers. ``semicolons``: whether its fields are separated by semicolons.
    """

    def __init__(
        self,
        arrays: dict[str, Any],
        file: str,
        texts: Sequence[str],
        column_types: ColumnTypes,
        typed: bool = True,
        semicolons: bool = False,
    ) -> None:
        self.file, self.texts, self.column_types, self.typed = file, texts, column_types, typed
        self.arrays = {name: without(array, column_types.na_values) for name, array in arrays.items()}
        self.dates = column_types.dates(list(arrays))
        self.has_na = {name for name, array in arrays.items() if self.arrays[name].null_count > array.null_count}
        self.strings = {
            name: blank_to_null(decoded(array), () if typed or name in column_types.categorical else NULLS)
            for name, array in self.arrays.items()
            if family(array.type) == "string"
        }
        self.present = {
            name: strings.filter(pc.invert(pc.is_in(strings, value_set=_MISSING_STRINGS)))
            for name, strings in self.strings.items()
        }
        as_written = {*column_types.categorical, *self.dates, *texts}
        texts_alone = [] if typed else [name for name in self.strings if name not in as_written]
        self.plain = {name for name in texts_alone if _are_plain_numbers(self.strings[name])}
        others = [strings for name, strings in self.present.items() if name not in self.plain]
        with_points = [self.present[name] for name in self.plain if semicolons]
        marks = {notation.decimal for notation in column_types.notations}
        is_known = len(marks) == 1
        self.continental = "," in marks if is_known else is_continental([*others, *with_points], semicolons)
        self.is_doubtful = self.continental and not (is_known or is_continental(others))
        if self.continental:  # a point may separate thousands
            self.plain = {name for name in self.plain if not _have_points(self.strings[name])}
        self.notes = list[Note]()

    def column(self, name: str) -> Any:
        """The column with a name; a DataError if its type cannot be used or contradicts the user's options."""
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
            return self._inferred(name)
        if kind == "number" and beyond_doubles(decoded(array)):
            return Category(name, numbers=True, doubt=(EXACT, ""))
        if kind == "moment":
            return _timestamp(name, array.type)
        if kind == "numbers":
            return Vector(name, pc.max(pc.list_value_length(array)).as_py() or 0)
        if kind not in _BY_FAMILY:
            problem = f"columns of type {array.type} cannot be used"
            remedy = f"leave it out (`ignore={name!r}`), or convert it, such as to strings"
            raise DataError(problem, self.file, column=name, remedy=remedy)
        return _BY_FAMILY[kind](name)

    def is_empty(self, name: str) -> bool:
        """Whether a column has neither values nor a type of values."""
        array = self.strings.get(name, self.arrays[name])
        return family(array.type) in ("string", "null") and array.null_count == len(array)

    def notation(self, name: str) -> Notation | None:
        """The notation of a column of strings that are numbers; None for other columns."""
        if name not in self.strings or name in self.plain or codes_in(self.present[name]):
            return None
        strings = self.present[name]
        is_bare = len(strings) + self.strings[name].null_count == len(self.strings[name])
        notation = notation_of(strings, self.continental, self.column_types.notations, is_bare)
        if notation is not None and self.is_doubtful and len(decimal_marks(strings)) > 1:
            problem = f"numbers are read {notation.description()}, as fields are divided by semicolons"
            self.notes.append(Note(name, problem, "`decimal` and `thousands` decide"))
        # Whole numbers in strings are codes, unless they are strings only because of the user's ``na_values``.
        return notation_of(strings, known=[PLAIN]) if notation is None and name in self.has_na else notation

    def target(self, name: str) -> tuple[str | None, Notation | None]:
        """The type of a target, None if it has no value; and the notation of its texts if they are numbers."""
        if name in self.column_types.categorical:
            return "string", None
        if name not in self.strings:
            kind = target_family_of(self.arrays[name], name, self.file)
            return INTEGER if kind == "number" and beyond_doubles(self.arrays[name]) else kind, None
        strings = self.strings[name]
        if not self.typed and self.is_empty(name):
            return None, None
        if name in self.plain:
            codes, is_named = codes_in(self.present[name]), name in self.column_types.numeric
            if codes == EXACT:
                return "string" if cast(strings, pa.int64())[1] else INTEGER, None
            is_code = codes == ZEROS and not is_named and pc.count_distinct(strings).as_py() <= MOST_LABELS
            return "string" if is_code else "number", None
        if not self.typed and _are_booleans(strings):
            return "boolean", None
        notation = self._target_notation(name)
        return "string" if notation is None else "number", notation

    def _target_notation(self, name: str) -> Notation | None:
        """The notation of a target of strings if most are numbers with too many different values to be classes."""
        notation, strings, is_named = self.notation(name), self.present[name], name in self.column_types.numeric
        if notation is not None or (codes_in(strings) and not is_named):
            return notation
        likeliest = likeliest_notation(strings, self.continental, known=self.column_types.notations)
        numbers = strings.filter(_is_number_in(strings, likeliest))
        is_most = 2 * len(numbers) > len(self.strings[name]) - self.strings[name].null_count
        is_numeric = is_most and are_many(pc.count_distinct(numbers).as_py(), len(numbers))
        return likeliest if is_numeric or is_named else None

    def _inferred(self, name: str) -> Any:
        """The column of the kind that fits its strings."""
        strings, present = self.strings[name], self.present[name]
        if name in self.plain:
            return self._category(name) if codes_in(present) else Number(name)
        if not self.typed and _are_booleans(strings):
            return Boolean(name)
        if looks_like_text(strings):
            return Text(name)
        if looks_like_booleans(strings):
            return Boolean(name, words=True)
        column = self._quantity(name, present, self.notation(name))
        words = missing_words(strings) if column is None else ()
        rest = without(present, words).drop_null()
        if words and not codes_in(rest):
            known = self.column_types.notations
            notation = notation_of(rest, self.continental, known) or notation_of(rest, known=[PLAIN])
            column = self._quantity(name, rest, notation)
            if column is not None:
                column.na_values = words
        if column is None and are_of_words(strings, _DISTINCT, 3) and not look_nearly_like_dates(strings.drop_null()):
            return Text(name)
        return self._category(name) if column is None else column

    def _quantity(self, name: str, strings: Any, notation: Notation | None) -> Any:
        """The column if all strings are dates, times of day, or numbers in a notation; else None."""
        if (iso := _iso_dates(name, strings)) is not None:
            return iso
        if looks_like_times(strings):
            return TimeOfDay(name)
        if (format := self._date_format(name, strings)) is not None:
            return Timestamp(name, None, has_hours(format), format=format)
        is_pointed = notation is not None and notation.decimal == "."
        if is_pointed and not self.typed and plain_numbers(self.strings[name]) is not None:
            return Number(name)
        return None if notation is None else Number(name, notation)

    def _category(self, name: str) -> Category:
        """A category, with the reason if another kind is likely, too."""
        strings, present = self.strings[name].drop_null(), self.present[name]
        codes, rare = codes_in(present), _rare_word(present, self.continental)
        doubt: tuple[str, ...] = ()
        if codes and not self.typed:
            doubt = codes, ""
        elif rare is not None and not codes:
            doubt = RARE_WORD, rare
        elif look_nearly_like_dates(strings):
            doubt = LIKE_DATES, strings[0].as_py()
        elif are_of_words(strings, 0.5, 2):
            doubt = OF_WORDS, ""
        return Category(name, codes == EXACT, doubt)

    def _numbers(self, name: str) -> Number:
        array = self.arrays[name]
        if family(array.type) not in Number.families:
            raise DataError(f"{array.type} is no number", self.file, column=name, remedy="leave it out of `numeric`")
        if name not in self.strings or name in self.plain:
            return Number(name)
        known = self.column_types.notations
        return Number(name, likeliest_notation(self.present[name], self.continental, known=known))

    def _date_format(self, name: str, strings: Any) -> str | None:
        """The format in which all strings are dates, None if there is none; it is noted if another fits them too."""
        format = date_format_of(strings, self.continental)
        other = None if format is None else other_order(strings, format)
        if other is not None:
            problem = f"dates are read as {format}, and might be {other}"
            self.notes.append(Note(name, problem, f"`date={name + '=FORMAT'!r}` decides"))
        return format

    def _dates(self, name: str) -> Timestamp:
        array, format = self.arrays[name], self.dates[name]
        if format is None and family(array.type) == "moment":
            return _timestamp(name, array.type)
        strings = blank_to_null(decoded(array).cast(pa.string(), safe=False), SIGNS_OF_MISSING).drop_null()
        if format is None and (iso := _iso_dates(name, strings)) is not None:
            return iso
        format = format or self._date_format(name, strings)
        if format is None or (len(strings) and len(dates_in(strings, format)[1]) == len(strings)):
            none_fits, not_this = "no format of dates fits all its values", f"no value is a date as in {format}"
            problem = none_fits if format is None else not_this
            remedy = f"name the format, such as `date={name + '=%d.%m.%Y'!r}`"
            raise DataError(problem, self.file, column=name, remedy=remedy)
        return Timestamp(name, None, has_hours(format), format=format)


def target_family_of(array: Any, target: str, file: str) -> str | None:
    """The type of a target: number, string or boolean; None if all values in this chunk are missing."""
    arrow_type = array.type
    kind = family(arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type)
    if kind == "null":
        return None
    if kind not in TARGET_TYPES:
        remedy = "name a column of numbers, strings or booleans"
        raise DataError(f"a target cannot be of type {arrow_type}", file, column=target, remedy=remedy)
    return kind


def _are_plain_numbers(strings: Any) -> bool:
    """Whether there are strings, and all are plain numbers."""
    return strings.null_count < len(strings) and plain_numbers(strings) is not None


def _have_points(numbers: Any) -> bool:
    return bool(pc.any(pc.match_substring_regex(numbers, "[.eE]")).as_py())


def _are_booleans(strings: Any) -> bool:
    """Whether there are strings, and all are true or false."""
    present = strings.drop_null()
    return len(present) > 0 and bool(pc.all(pc.is_in(present, value_set=_TRUTHS)).as_py())


def _rare_word(strings: Any, continental: bool) -> str | None:
    """The first value that is no number if most values are numbers, but not all; else None."""
    sample = strings[:_SAMPLE]
    words = sample.filter(pc.invert(_is_number_in(sample, likeliest_notation(sample, continental))))
    return words[0].as_py() if 0 < 2 * len(words) < len(sample) else None


def _is_number_in(strings: Any, notation: Notation) -> Any:
    """A mask of the strings that are numbers in a notation, null for nulls; fast if strings repeat each other."""
    encoded = strings.dictionary_encode()
    return boolean_array(notation.fits(encoded.dictionary)).take(encoded.indices)


def _iso_dates(name: str, strings: Array) -> Timestamp | None:
    """The column if all trimmed strings are dates in ISO 8601, either all with a time zone or all without; else None.

    Dates with an offset are read in UTC.
    """
    if not len(strings) or not re.match(_DATE, text_at(strings, 0)):  # Arrow compiles the pattern at each call
        return None
    dates = as_iso(strings)
    for zone, pattern in ((None, _DATE + "$"), ("UTC", _DATE + _ZONE + "$")):
        if pc.all(pc.match_substring_regex(dates, pattern)).as_py():
            are_dates = not to_timestamps(dates, zone)[1]
            return Timestamp(name, zone, pc.any(pc.match_substring(strings, ":")).as_py()) if are_dates else None
    return None


def looks_like_times(strings: Array) -> bool:
    """Whether all trimmed strings are times of day: HH:MM, or HH:MM:SS with optional decimals."""
    if not len(strings) or not re.match(_TIME, text_at(strings, 0)):
        return False
    return pc.all(pc.match_substring_regex(strings, _TIME)).as_py()


def looks_like_booleans(strings: Array) -> bool:
    """Whether all strings are words for true and false, and both occur."""
    words = pc.index_in(pc.utf8_lower(strings.slice(0, 1)), value_set=TRUTH_WORDS)
    if words.null_count > strings.slice(0, 1).null_count:
        return False
    indices = {*pc.index_in(pc.utf8_lower(pc.unique(strings).drop_null()), value_set=TRUTH_WORDS).to_pylist()}
    words_alone = indices - _DIGITS
    return any(words_alone <= group for group in _PAIRS) and bool(words_alone) and len({k % 2 for k in indices}) == 2


def looks_like_text(strings: Array) -> bool:
    """Whether strings are texts: long on average, most of them different, and most with a space."""
    return are_of_words(strings, _DISTINCT, 1) and pc.mean(pc.utf8_length(strings[:_SAMPLE])).as_py() >= _LONG


def are_of_words(strings: Array, share: float, words: int) -> bool:
    """Whether strings may be short texts: at least a share are different, and most have a number of words or more."""
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
    """Columns that an encoder does not know; ``left_out``: types of unusable ones; ``rows``: of the stream so far."""

    ignored: list[str]
    decimal: str | None = None
    thousands: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    rows: int = 0

    def columns(self, chunk: Chunk, names: Iterable[str], na_values: Sequence[str], typed: bool) -> list[Any]:
        """The columns with these names in a chunk, in the order of their first values."""
        firsts = []
        for name in names:
            array = blank_to_null(decoded(without(chunk.data.column(name), na_values)))
            array = nulled(array, pc.is_nan(array)) if pa.types.is_floating(array.type) else array
            present = ~is_missing(array)
            if present.any():
                firsts.append((int(present.argmax()), name, array))
        length = chunk.data.num_rows if not typed and chunk.row == 1 and self.rows else 1
        columns = []
        for at, name, array in sorted(firsts):
            if (column := self._column(name, array[at : at + length], chunk.file, typed)) is not None:
                column.since = self.rows + at + 1
                columns.append(column)
        return columns

    def _column(self, name: str, values: Array, file: str, typed: bool) -> Any:
        """The column that is inferred from values; None if they cannot be used, and then their type is recorded."""
        first = values[0].as_py()  # even a single long value shows a text
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
    """Whether a column, or a struct that contains it, is among ``columns``."""
    return any(name == column or name.startswith(f"{column}.") for column in columns)


def as_written(encoder: Any, sample: Chunk, column_types: ColumnTypes) -> Any:
    """A copy of an encoder, with the same features, that reads numbers and dates in the notation of a sample."""
    adapted = copy.copy(encoder)
    adapted.na_values = tuple(dict.fromkeys([*encoder.na_values, *column_types.na_values]))
    adapted.columns, adapted.notes = [copy.copy(column) for column in encoder.columns], []
    numbers = {column.name: column for column in adapted.columns if column.kind == Number.kind}
    dates = {column.name: column for column in adapted.columns if column.kind == Timestamp.kind}
    formats = column_types.dates([column.name for column in adapted.columns])
    if unknown := [name for name in formats if name not in dates]:
        remedy = "name a column that was one of dates in training"
        raise DataError("the model has no such column of dates", column=unknown[0], remedy=remedy)
    target = adapted.target if adapted.target_family == "number" else None
    roles = [name for name in (adapted.weight, adapted.exposure, target) if name is not None]
    trained = {name: column.notation for name, column in numbers.items()}
    trained |= {name: adapted.notations.get(name) for name in roles}
    texts = dict[str, Any]()
    for name, array in zip(sample.data.schema.names, sample.data.columns, strict=True):
        if name in trained.keys() | dates.keys() and family(array.type) == "string":
            texts[name] = without_words(without(array, adapted.na_values), name, (), Faults()).drop_null()
    declared = column_types.notations
    if declared and not texts.keys() & trained.keys():
        remedy = "leave `decimal` and `thousands` out"
        raise DataError("no column of numbers is written as text", sample.file, remedy=remedy)
    plain = {name for name in trained.keys() & texts.keys() if plain_numbers(texts[name]) is not None}
    decimal = _decimal_of(texts[name] for name in trained if name in texts)
    notations = dict(trained)
    for name in [name for name in trained if name in texts]:
        notation = _likeliest(texts[name], trained[name], name in plain, decimal, declared)
        usual = trained[name] or PLAIN
        if not declared and notation is not None and notation != usual:
            problem = f"numbers are read {notation.description()}, where training had them {usual.description()}"
            adapted.notes.append(Note(name, problem, "`decimal` and `thousands` decide"))
        notations[name] = trained[name] if notation == usual and name in plain else notation
    for name, column in numbers.items():
        column.notation = notations[name]
    for name, column in dates.items():
        column.format = formats.get(name) or _date_format(column, texts.get(name, _NO_STRINGS), decimal, adapted.notes)
    adapted.notations = {name: notation for name in roles if (notation := notations[name]) is not None}
    return adapted


def _likeliest(
    strings: Any, trained: Notation | None, is_plain: bool, decimal: str | None, declared: Sequence[Notation]
) -> Notation | None:
    """The notation of a column of numbers in a file with this decimal mark; None for plain numbers, as in training."""
    if is_plain and trained is None and decimal != "," and not declared:
        return None
    usual = trained or PLAIN
    is_possible = usual in declared if declared else decimal in (None, usual.decimal)
    return likeliest_notation(strings, decimal == ",", usual if is_possible else None, declared)


def _decimal_of(columns: Iterable[Any]) -> str | None:
    """The decimal mark of a file; None if its columns of numbers do not determine it, or contradict each other."""
    marks = [decimal_marks(strings[:_EXAMINED]) for strings in columns]
    decimals = set[str]().union(*(mark for mark in marks if len(mark) == 1))
    return decimals.pop() if len(decimals) == 1 else None


def _date_format(column: Timestamp, strings: Any, decimal: str | None, notes: list[Note]) -> str | None:
    """The format of a column of dates in a file; None for ISO 8601. A change since training is noted."""
    trained, is_iso = column.format, _iso_dates(column.name, strings) is not None
    if not len(strings) or (is_iso if trained is None else not dates_in(strings, trained)[1]):
        return trained
    format = None if is_iso else date_format_of(strings, decimal == ",") or trained
    if format != trained:
        problem = f"dates are read as {format or _ISO}, where training had them as {trained or _ISO}"
        notes.append(Note(column.name, problem, f"`date={column.name + '=FORMAT'!r}` decides"))
    return format


def with_numbers_as_texts(encoder: Any, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """JSON objects with numbers replaced by strings, in the notations in which an encoder reads them."""
    notations = notations_of(encoder)

    def written(name: str, value: Any) -> Any:
        return notations[name].text(value) if name in notations and type(value) in (int, float) else value

    return [{name: written(name, value) for name, value in row.items()} for row in rows]


def notations_of(encoder: Any) -> dict[str, Notation]:
    """The notations in which an encoder reads numbers from strings, for columns, targets and weights."""
    types = encoder.types()
    columns = {column.name: column.notation or PLAIN for column in encoder.columns if column.kind == Number.kind}
    return {name: notation for name, notation in (columns | encoder.notations).items() if types[name] == pa.string()}
