"""How a further file writes its numbers and dates: as in training, or in a notation that it has for itself.

The same digits may be two numbers: 1.868 is one thousand in a continental file, and less than two in another. Where all
values of a column are numbers in the notation of training, they are read so, unless other columns of the file have
decimal commas, or points, that cannot be anything else. Otherwise the notation that most of them have is used. Either
is noted where it differs from that of training.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from tunefree.core.errors import DataError
from tunefree.stream.arrays import plain_numbers
from tunefree.stream.batch import Columns
from tunefree.stream.calendar import Timestamp, looks_like_dates
from tunefree.stream.columns import Faults, Number, family
from tunefree.stream.inference import without
from tunefree.stream.missing import without_words
from tunefree.stream.notation import (
    PLAIN,
    ColumnTypes,
    Notation,
    Note,
    date_format_of,
    dates_in,
    decimal_marks,
    likeliest_notation,
)

_LOOKED_AT = 1000  # values of a column that tell whether a file is continental
_NOTHING = pa.nulls(0, pa.string())
_ISO = "YYYY-MM-DD"


def strings_of(sample: Columns, names: Iterable[str], na_values: Iterable[str] = ()) -> dict[str, Any]:
    """Those of some columns of a sample that are strings, null where a value is missing."""
    columns, strings = zip(sample.table.schema.names, sample.table.columns, strict=True), {}
    for name, array in columns:
        if name in names and family(array.type) == "string":
            strings[name] = without_words(without(array, tuple(na_values)), name, (), Faults())
    return strings


class FileNotation:
    """Finds how a file writes the numbers and dates of columns that are known.

    Parameters
    ----------
    strings : dict of str to pyarrow.Array, optional
        Columns of the file that are strings; None where they are not known before they are read.
    trained : dict of str to Notation
        Of those that are numbers, as training had them; None for plain numbers.
    asked : Notation, optional
        As the user says that the file has them.

    Examples
    --------
    >>> strings = {"price": pa.array(["1.868", "2.411"]), "tax": pa.array(["1,5", "2,25"])}
    >>> alone = FileNotation({"price": strings["price"]}, {"price": None})
    >>> alone.of_numbers("price"), FileNotation(strings, {"price": None, "tax": None}).of_numbers("price")
    (None, Notation(decimal=',', thousands='.', unit=''))
    """

    def __init__(
        self, strings: dict[str, Any] | None, trained: dict[str, Notation | None], asked: Notation | None = None
    ) -> None:
        self.strings, self.trained, self.asked, self.notes = strings, trained, asked, list[Note]()
        names = [name for name in trained if strings and name in strings]
        self.plain = {name for name in names if strings and plain_numbers(strings[name]) is not None}
        telling = [name for name in names if name not in self.plain or trained[name]]
        decimals: set[str] = set()
        for name in [*telling, *(self.plain if telling else ())]:  # those that tell most come first
            if strings and (name in telling or not decimals):
                marks = decimal_marks(strings[name].drop_null()[:_LOOKED_AT])
                decimals |= marks if len(marks) == 1 else set()
        self.decimal = decimals.pop() if len(decimals) == 1 else None

    def of_numbers(self, name: str) -> Notation | None:
        """The notation of a column of numbers; None for plain numbers."""
        trained = self.trained[name]
        if self.strings is None or name not in self.strings:
            return self.asked or trained if self.strings is None else trained
        if name in self.plain and trained is None and self.asked is None and self.decimal != ",":
            return None
        strings, usual = self.strings[name].drop_null(), trained or PLAIN
        likeliest = self.asked or likeliest_notation(strings, self.decimal == ",")
        is_usual = self.asked is None and self.decimal in (None, usual.decimal) and usual.fits_all(strings)
        if is_usual or usual == likeliest:
            return trained if trained is not None or name in self.plain else PLAIN
        same = usual.fits_all(strings) and usual.numbers(strings).equals(likeliest.numbers(strings))
        if self.asked is None and not same:
            problem = f"numbers are read {likeliest.description()}, where training had them {usual.description()}"
            self.notes.append(Note(name, problem, "`decimal` and `thousands` decide"))
        return likeliest

    def of_dates(self, name: str, trained: str | None) -> str | None:
        """The format of a column of dates, which was the same or another in training; None for ISO 8601."""
        strings = (self.strings or {}).get(name, _NOTHING)
        is_iso = looks_like_dates(strings)
        if not len(strings.drop_null()) or (is_iso if trained is None else not dates_in(strings, trained)[1]):
            return trained
        format = None if is_iso else date_format_of(strings, self.decimal == ",") or trained
        if format != trained:
            problem = f"dates are read as {format or _ISO}, where training had them as {trained or _ISO}"
            self.notes.append(Note(name, problem, f"`date={name + '=FORMAT'!r}` decides"))
        return format


def as_written(encoder: Any, sample: Columns | None, column_types: ColumnTypes) -> Any:
    """An encoder that shares its features with another, and reads the numbers and dates of a file as that writes them.

    Parameters
    ----------
    encoder : TableEncoder
        It is not changed.
    sample : Columns, optional
        Rows of the file; only what is given is known without.
    column_types : ColumnTypes
        What the user says.

    Raises
    ------
    DataError
        If a date is said of what is no column of dates.
    """
    adapted = copy.copy(encoder)
    adapted.na_values = tuple(dict.fromkeys([*encoder.na_values, *column_types.na_values]))
    formats = column_types.dates([column.name for column in adapted.columns])
    trained = {column.name: column.notation for column in adapted.columns if column.kind == Number.kind}
    target = adapted.target if adapted.has_numeric_target else None
    roles = [name for name in (adapted.weight, adapted.exposure, target) if name is not None]
    trained |= {name: adapted.notations.get(name) for name in roles}
    asked = {*trained, *(column.name for column in adapted.columns if column.kind == Timestamp.kind)}
    strings = None if sample is None else strings_of(sample, asked, adapted.na_values)
    file = FileNotation(strings, trained, column_types.notation)
    adapted.columns = [_of_column(column, file, formats) for column in adapted.columns]
    if formats:
        remedy = "name a column that was one of dates in training"
        raise DataError("the model has no such column of dates", column=next(iter(formats)), remedy=remedy)
    notations = {name: file.of_numbers(name) for name in roles}
    adapted.notations = {name: notation for name, notation in notations.items() if notation is not None}
    adapted.notes = file.notes
    if column_types.notation is not None and file.strings is not None and not file.strings.keys() & trained.keys():
        remedy = "leave `decimal` and `thousands` out"
        raise DataError("no column of numbers is written as text", sample and sample.file, remedy=remedy)
    return adapted


def _of_column(column: Any, file: FileNotation, formats: dict[str, str | None]) -> Any:
    """A column as the file writes it; formats of dates that are said are taken out."""
    if column.kind == Number.kind:
        decimal, thousands, unit = file.of_numbers(column.name) or (None, "", "")
        adapted: Any = Number(column.name, decimal, thousands, unit, column.na_values)
    elif column.kind == Timestamp.kind:
        format = formats.pop(column.name, None) or file.of_dates(column.name, column.format)
        adapted = Timestamp(column.name, column.zone, column.hours, column.origin, format, column.na_values)
    else:
        return column
    adapted.since = column.since
    return adapted


def with_numbers_as_texts(encoder: Any, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Objects of JSON whose numbers are written as an encoder reads them from strings.

    Parameters
    ----------
    encoder : TableEncoder
    rows : list of dict
        They are not changed.
    """
    notations = notations_of(encoder)
    if not notations:
        return [dict(row) for row in rows]
    return [
        {
            name: notations[name].text(cell) if name in notations and type(cell) in (int, float) else cell
            for name, cell in row.items()
        }
        for row in rows
    ]


def notations_of(encoder: Any) -> dict[str, Notation]:
    """How an encoder reads numbers from strings: of those columns of numbers, targets and weights that are such."""
    types = encoder.types()
    columns = {column.name: column.notation or PLAIN for column in encoder.columns if column.kind == Number.kind}
    return {name: notation for name, notation in (columns | encoder.notations).items() if types[name] == pa.string()}
