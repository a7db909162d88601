"""Rows of objects, put together of cells that were encoded before.

Most of the time that it takes to encode a row goes to arrays of one value. What a column makes of a value depends on
nothing but the value, so it is remembered, and a few rows become the block that the encoder of tables would make of
them (:mod:`tunefree.stream.features`). That encodes each cell the first time, and all rows in which something is not
foreseen here: texts and lists, what is not known, what cannot be used. Values are those of JSON, or of a frame, which
keep their types, and of which all is foreseen that needs no warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain, repeat
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import DataError
from tunefree.core.rows import Block, sparse, table
from tunefree.stream.booleans import Boolean
from tunefree.stream.columns import LONGEST, MOST_REMEMBERED, Category, Faults, Number, family
from tunefree.stream.features import MOST_CODES
from tunefree.stream.file_notation import notations_of
from tunefree.stream.frames import is_pandas, read_frame
from tunefree.stream.jsonlines import read_objects
from tunefree.stream.late import parts_of
from tunefree.stream.missing import converted
from tunefree.stream.profile import LARGEST, Seen, usual_ranges
from tunefree.stream.roles import column_of, present_of

MOST_ROWS = 64  # more are encoded faster together
_OF_WORDS = {"text", "bag", "vector"}  # kinds of columns whose cells are not remembered
_OF_FRAMES = {Number, Category, Boolean}  # columns whose cells in frames are remembered, where they are no numbers
_PLAIN = {str, bool, int}  # by these types
_WHOLE = 2**53  # whole numbers up to it are doubles
_NUMBERS = {int, float}
_ABSENT: Any = object()
_FIRST = np.zeros(1, np.intp)


class Cell(NamedTuple):
    """What a column makes of a value."""

    numbers: list[float]
    codes: list[tuple[int, int]]  # what each tells, as in a block, and its feature
    entries: list[tuple[int, float]]  # features with values: numbers of columns that came later
    seen: Seen


_NOTHING = Cell([], [], [], Seen(True, np.nan, np.nan))


class Cells:
    """The cells of rows that are predicted.

    Parameters
    ----------
    encoder : TableEncoder
        It does not change meanwhile.
    of_frames : bool, default False
        Whether values are those of a frame; else they are of JSON.

    Attributes
    ----------
    names : frozenset of str
        Of the columns; none if cells of this encoder are not foreseen.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from tunefree.stream.batch import BadRows, Columns, Position
    >>> from tunefree.stream.features import TableEncoder
    >>> chunk = Columns(pa.record_batch({"age": [30.0, 40.0], "job": ["cook", "clerk"]}), "example", 1, Position())
    >>> encoder = TableEncoder.infer(chunk)
    >>> _ = encoder.encode(chunk, True, BadRows())
    >>> cells = Cells(encoder)
    >>> block = block_of(cells.of_rows([{"job": "clerk", "age": 50.0}]))
    >>> block.numbers, block.codes, cells.of_rows([{"job": "mason", "age": 50.0}])
    (array([[50.]]), array([[3]], dtype=int32), None)
    """

    def __init__(self, encoder: Any, of_frames: bool = False) -> None:
        self.encoder, self._types, columns = encoder, encoder.types(), encoder.columns
        self.of_frames, self.rows = of_frames, encoder.profile.rows
        self._described = [(column.name, column.kind, column.options(), column.since) for column in columns]
        self._keys = encoder.ids.keys.known[: encoder.ids.keys.count].copy()
        is_foreseen = not (
            notations_of(encoder) or encoder.na_values or encoder.notes or encoder.hash_bits or encoder.exposure
        )
        is_foreseen = is_foreseen and encoder.ids.most is None  # otherwise features are forgotten
        is_foreseen = is_foreseen and not _OF_WORDS & {column.kind for column in columns}
        is_foreseen = is_foreseen and not (
            of_frames
            and (encoder.na_values or {*map(type, columns)} - _OF_FRAMES or any(column.since for column in columns))
        )
        self.names = frozenset(column.name for column in columns if is_foreseen)
        ranges = usual_ranges(encoder.profile) if of_frames else []
        limits = ((max(low, -LARGEST), min(high, LARGEST)) for low, high in ranges)
        self._columns = [
            (
                column.name,
                within if type(column) is Number and not column.since else (1.0, 0.0),
                dict[Any, Cell | None](),
            )
            for column, within in zip(columns, chain(limits, repeat((-LARGEST, LARGEST))), strict=False)
        ]

    def follow(self, encoder: Any) -> Cells:
        """The cells of another encoder: the same, as far as all that was known is so still."""
        other = Cells(encoder, self.of_frames)
        if other._described == self._described and np.array_equal(other._keys[: len(self._keys)], self._keys):
            for (*_, known), (*_, known_before) in zip(other._columns, self._columns, strict=True):
                known |= {key: cell for key, cell in known_before.items() if cell is not None}
        return other

    def of_rows(self, objects: Sequence[dict[str, Any]]) -> list[list[Cell]] | None:
        """The cells of each row; None if something is not foreseen."""
        of_rows = []
        for row in objects:
            cells = []
            for place, (name, (low, high), known) in enumerate(self._columns):
                value = row.get(name, _ABSENT)
                kind = type(value)
                if kind in _NUMBERS and low <= value <= high and (kind is float or -_WHOLE <= value <= _WHOLE):
                    cells.append(Cell([float(value)], [], [], Seen(False, value, value)))
                    continue
                is_plain = kind in _PLAIN and low > high if self.of_frames else kind is not list and kind is not dict
                if not is_plain or (kind is str and len(value) > LONGEST):
                    return None
                key = kind, value
                cell = known.get(key, _ABSENT)
                if cell is _ABSENT:
                    if len(known) >= MOST_REMEMBERED:
                        known.clear()
                    cell = known[key] = self._encoded(place, value)
                if cell is None:
                    return None
                cells.append(cell)
            of_rows.append(cells)
        return of_rows

    def _encoded(self, place: int, value: Any) -> Cell | None:
        """The cell of a value; None if it is not foreseen."""
        column, faults = self.encoder.columns[place], Faults()
        if value is _ABSENT:
            return _NOTHING if column.since else None
        try:
            types = {column.name: self._types[column.name]}
            of_json = [{column.name: value}], types, ""
            chunk = next(read_frame({column.name: [value]})) if self.of_frames else read_objects(*of_json)
        except DataError:
            return None
        array = present_of(self.encoder, column_of(chunk, column.name, faults), column.name, faults)
        if family(array.type) not in column.families:
            return None
        values = converted(column, array, faults)
        parts = parts_of(column, values, False)
        if faults or faults.missing:
            return None
        located = [[(place, part) for part in of_kind] for of_kind in (parts.codes, parts.bags)]
        ids, words = self.encoder.ids.of_chunk(1, *located, False)
        features = ids[0].tolist()
        if any(codes.places[0] >= 0 and not feature for codes, feature in zip(parts.codes, features, strict=True)):
            return None
        observed = column.observed(values, parts)
        if self.of_frames and observed.missing[0]:
            return None
        number = np.nan if observed.numbers is None else float(observed.numbers[0])
        of_value = np.nan if observed.values_of is None else float(observed.values_of(_FIRST)[0])
        codes = [(MOST_CODES * place + k, feature) for k, feature in enumerate(features)]
        numbers = [float(of_rows[0]) for of_rows in parts.numbers]
        entries = list(zip(words.features.tolist(), words.values.tolist(), strict=True))
        return Cell(numbers, codes, entries, Seen(bool(observed.missing[0]), number, of_value))


def block_of_frame(encoder: Any, X: Any) -> Block | None:
    """The block of a pandas frame of one row, of cells that its encoder keeps; None if something is not foreseen."""
    if not is_pandas(X) or len(X) != 1:
        return None
    cells = encoder.cells
    if cells is None or cells.encoder is not encoder or cells.rows != encoder.profile.rows:
        cells = encoder.cells = Cells(encoder, of_frames=True) if cells is None else cells.follow(encoder)
    values = X.iloc[0]
    is_foreseen = X.columns.is_unique and type(values.dtype).__name__ != "SparseDtype"
    as_python = [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]
    row = dict(zip(X.columns.tolist(), as_python, strict=True)) if is_foreseen else {}
    of_row = cells.of_rows([row]) if row.keys() == cells.names else None
    return None if of_row is None else block_of(of_row)


def block_of(cells: Sequence[Sequence[Cell]]) -> Block:
    """The block of rows of some cells each."""
    numbers = np.array([[number for cell in row for number in cell.numbers] for row in cells])
    codes = [dict(code for cell in row for code in cell.codes) for row in cells]
    sources = list(codes[0]) if len(codes) == 1 else sorted(set().union(*codes))
    features = np.array([[of_row.get(source, 0) for source in sources] for of_row in codes], np.int32)
    words, entries = None, [[pair for cell in row for pair in cell.entries] for row in cells]
    if any(entries):
        of_entries, values = zip(*(pair for row in entries for pair in row), strict=True)
        words = sparse([0, *accumulate(map(len, entries))], of_entries, values)
    return table(numbers, np.arange(1, numbers.shape[1] + 1), features, words, sources)
