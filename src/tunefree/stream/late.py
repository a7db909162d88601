"""Columns that first come later in a stream: features from there on.

The dense numbers of a stream are those of its first rows. So numbers of later columns are entries of sparse rows, as
words are: views do not centre them, and they share their unit with the words. Categories are codes as any others.
Of a row that lacks such a column nothing is known, which is no feature: the rows before had no such feature either.
What a column is depends on its first value alone, so that nothing depends on where a stream is cut into chunks. Where
all values are texts, as in CSV, the first rows of a further file decide together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.core.errors import DataError
from tunefree.stream.arrays import is_missing
from tunefree.stream.columns import (
    Array,
    Bags,
    Codes,
    Faults,
    Parts,
    Words,
    blank_to_null,
    decoded,
    family,
    missing_key,
    valid_utf8,
)
from tunefree.stream.inference import Inference, without
from tunefree.stream.keys import hash_name
from tunefree.stream.lists import Vector
from tunefree.stream.names import one_by_one
from tunefree.stream.notation import ColumnTypes
from tunefree.stream.texts import Text, is_long_text

NOTHING = Parts([], [], [])


def parts_of(column: Any, values: Any, learning: bool) -> Parts:
    """What a column adds to the rows of a chunk; nothing if it came later and the chunk lacks it."""
    if not column.since:
        parts: Parts = column.parts(values, learning)
        return parts
    if values is None:
        return NOTHING
    parts = column.parts(values, learning)
    numbers = zip(column.names(), parts.numbers, strict=True)
    codes = [_present(column, codes) for codes in parts.codes]
    bags = [Bags.of(_entries(name, values)) for name, values in numbers]
    return Parts([], [values for values in codes if (values.places >= 0).any()], [*bags, *parts.bags])


def _present(column: Any, codes: Codes) -> Codes:
    """Codes without that of a missing value."""
    is_missing = np.append(codes.keys == missing_key(column.name), False)  # the last is for place -1
    return codes._replace(places=np.where(is_missing[codes.places], np.int32(-1), codes.places))


def number_keys(columns: Iterable[Any]) -> list[int]:
    """The keys of the numbers of those columns that came later."""
    return [_number_key(name) for column in columns if column.since for name in column.names()]


def _number_key(name: str) -> int:
    return hash_name("number", hash_name(name))


def _entries(name: str, values: np.ndarray) -> Words:
    """Numbers as entries of sparse rows; those that are 0 are none."""
    held = values[values != 0.0]
    keys = np.full(len(held), _number_key(name), np.uint64)
    return Words((values != 0.0).astype(np.int64), keys, held, one_by_one(lambda k: name))


@dataclass
class Further:
    """What an encoder does with columns that it does not know.

    Parameters
    ----------
    ignored : list of str
        Columns that are not to become features.
    decimal, thousands : str, optional
        In numbers that are written as texts; guessed if both are None.
    left_out : dict of str to str
        Types of later columns that have no features.
    rows : int
        Rows of the stream so far.
    """

    ignored: list[str]
    decimal: str | None = None
    thousands: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    rows: int = 0

    def columns(
        self, table: Any, known: Iterable[str | None], file: str, row: int, na_values: tuple[str, ...], typed: bool
    ) -> list[Any]:
        """The columns that the rows of a chunk add, in the order of the rows that have their first values.

        Parameters
        ----------
        table : pyarrow.RecordBatch
        known : iterable of str
            Names of columns that are known.
        file : str
            For messages.
        row : int
            Number of the chunk's first row in its file.
        na_values : tuple of str
            As the encoder has them.
        typed : bool
            Whether the source distinguishes strings of digits from numbers.
        """
        names, firsts = {*known, *self.left_out}, []
        for name in table.schema.names:
            if name in names or is_among(name, self.ignored):
                continue
            array = _given(without(valid_utf8(table.column(name), name, Faults()), na_values))
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
        if family(values.type) == "string" and is_long_text(values):
            return Text(name)
        column_types = ColumnTypes(self.decimal, self.thousands)
        try:
            column = Inference({name: values}, file, [], column_types, typed).column(name)
        except DataError:
            self.left_out[name] = str(values.type)
            return None
        return Vector(name) if column.kind == Vector.kind else column


def is_among(name: str, columns: Iterable[str]) -> bool:
    """Whether a column, or a struct that it is a part of, is among some.

    Examples
    --------
    >>> [is_among(name, ["a", "b.c"]) for name in ("a", "a.x", "b", "b.c", "ab")]
    [True, True, False, True, False]
    """
    return any(name == column or name.startswith(f"{column}.") for column in columns)


def _given(array: Array) -> Array:
    """The array; null where a value stands for a missing one."""
    array = blank_to_null(decoded(array))
    if pa.types.is_floating(array.type):
        return pc.if_else(pc.is_nan(array), pa.nulls(len(array), array.type), array)
    return array
