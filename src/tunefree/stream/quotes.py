"""Double quotes in delimited text, as RFC 4180 and Arrow read them: which line ends they hold, and which look wrong.

A quote at the start of a field opens it, and the next single one closes it. Any other quote outside an open field is a
letter, as in 3.5" disk. So a run of quotes does one of three things: one of even length changes nothing; one of odd
length changes between outside and inside where it stands at the start of a field, and leads outside elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tunefree.stream.arrays import to_booleans
from tunefree.stream.beginnings import is_plain_number

QUOTE, LINE_END, BACKSLASH = b'"\n\\'
MOST_LOOKED_AT = 1000  # values of a block that hold line ends
_FEWEST_SIGNS = 4  # delimiters by which values without numbers look like rows


class Quotes(NamedTuple):
    """The runs of quotes of a text that change whether what follows lies inside quotes."""

    places: np.ndarray  # (k,) int64: where each begins
    inside: np.ndarray  # (k,) bool: whether what follows it lies inside

    def hold(self, places: np.ndarray, begins_inside: bool = False) -> np.ndarray:
        """Whether places of the text lie inside quotes."""
        return np.append(self.inside, begins_inside)[np.searchsorted(self.places, places) - 1]

    def ends_inside(self, begins_inside: bool = False) -> bool:
        """Whether the end of the text lies inside quotes."""
        return bool(self.inside[-1]) if len(self.inside) else begins_inside


def quotes_of(text: np.ndarray, delimiters: str, before: int = LINE_END, begins_inside: bool = False) -> Quotes:
    """The quotes of a text.

    Parameters
    ----------
    text : (bytes,) array of uint8
    delimiters : str
        Those after which a field begins.
    before : int
        The byte before the text.
    begins_inside : bool, default False
        Whether the text begins inside quotes.

    Examples
    --------
    >>> text = b'3.5" disk,"a' + bytes([LINE_END]) + b'b"'
    >>> quotes = quotes_of(np.frombuffer(text, np.uint8), ",")
    >>> quotes.places, quotes.inside, quotes.hold(np.array([text.find(b"disk"), text.find(LINE_END)]))
    (array([ 3, 10, 14]), array([False,  True, False]), array([False,  True]))
    """
    places = np.flatnonzero(text == QUOTE)
    last = text[places - 1]
    if len(places) and places[0] == 0:
        last[0] = before
    follows = last == QUOTE
    follows[:1] = False
    if follows.any():
        starts = np.flatnonzero(~follows)
        odd = starts[np.diff(starts, append=len(places)) % 2 == 1]
        places, last = places[odd], last[odd]
    opens = np.zeros(256, bool)
    opens[[LINE_END, ord("\r"), *delimiters.encode()]] = True
    toggles = opens[last]
    if not (begins_inside or (toggles[1:] & toggles[:-1]).any()):
        return Quotes(places, toggles)  # each that opens is followed by one that closes
    changes = np.cumsum(toggles)
    closed = np.maximum.accumulate(np.where(toggles, 0, np.arange(1, len(places) + 1)))  # the last run that led outside
    since = np.append(-int(begins_inside), changes)[closed]
    return Quotes(places, (changes - since) % 2 == 1)


def unescape(text: np.ndarray) -> None:
    r"""Double the quotes that a backslash precedes, in the place of the backslash: \" becomes "".

    Examples
    --------
    >>> text = np.frombuffer(bytearray(b'"a ' + bytes([BACKSLASH]) + b'"b"'), np.uint8)
    >>> unescape(text)
    >>> text.tobytes()
    b'"a ""b"'
    """
    marks = np.flatnonzero(text[1:] == QUOTE)
    marks = marks[text[marks] == BACKSLASH]
    for place in marks.tolist():
        first = place
        while first and text[first - 1] == BACKSLASH:
            first -= 1
        if (place - first) % 2 == 0:  # the backslash is not escaped by another one
            text[place] = QUOTE


def misfits(lines: np.ndarray, delimiter: str, n_fields: int) -> int:
    """How many lines of a text have another number of fields; blank ones are passed over.

    Examples
    --------
    >>> misfits(np.frombuffer(b'1,"a, b"' + bytes([LINE_END]) + b"1,a, b", np.uint8), ",", 2)
    1
    """
    quotes = quotes_of(lines, delimiter)
    ends, signs = (np.flatnonzero(lines == byte) for byte in (LINE_END, ord(delimiter)))
    ends = ends[~quotes.hold(ends)]
    counts = np.bincount(np.searchsorted(ends, signs[~quotes.hold(signs)]), minlength=len(ends) + 1)
    is_blank = np.diff(ends, prepend=-1, append=len(lines)) <= 2
    return int(np.count_nonzero((counts != n_fields - 1) & ~is_blank))


def is_escaped(lines: np.ndarray, delimiter: str, n_fields: int) -> bool:
    """Whether backslashes before quotes say that these belong to values, as Spark, Hive and MySQL write them.

    One quote that follows such a backslash is enough if it would close a field in its middle; else whether more lines
    have the right number of fields tells.

    Parameters
    ----------
    lines : (bytes,) array of uint8
    delimiter : str
    n_fields : int
    """
    text = lines.tobytes()
    if b'\\"' not in text:
        return False
    if re.search(rb'\\"[^"\r\n' + re.escape(delimiter.encode()) + rb"]", text):
        return True
    doubled = np.frombuffer(bytearray(text), np.uint8)
    unescape(doubled)
    return misfits(doubled, delimiter, n_fields) < misfits(lines, delimiter, n_fields)


class Swallowed(NamedTuple):
    """A value each line of which looks like a row."""

    row: int  # its place in the table
    column: str
    lines: int  # line ends


def rows_in_values(table: Any, delimiter: str) -> list[Swallowed]:
    """Values that hold line ends, and of which each line looks like a row.

    Parameters
    ----------
    table : pyarrow.RecordBatch
    delimiter : str

    Examples
    --------
    >>> lines = "oops,yes", "2,b,no", "3,"
    >>> table = pa.record_batch({"x": [1.0], "t": [chr(LINE_END).join(lines)], "y": ["no"]})
    >>> rows_in_values(table, ",")
    [Swallowed(row=0, column='t', lines=2)]
    """
    suspects, names = [], table.schema.names
    are_numbers = [pa.types.is_floating(type) or pa.types.is_integer(type) for type in table.schema.types]
    for place, array in enumerate(table.columns):
        if not pa.types.is_string(array.type):
            continue
        rows = np.flatnonzero(to_booleans(pc.match_substring(array, "\n")))
        for row in rows[:MOST_LOOKED_AT].tolist():
            lines = [line.split(delimiter) for line in array[row].as_py().split("\n")]
            if _are_rows(lines, place, are_numbers):
                suspects.append(Swallowed(row, names[place], len(lines) - 1))
    return suspects


def _are_rows(lines: Sequence[list[str]], place: int, are_numbers: Sequence[bool]) -> bool:
    """Whether the lines of a value, of the column at a place, are rows: with as many fields, and numbers in columns of
    such. The first line lacks the fields before the value, and the last one those after it."""
    n, more = len(are_numbers), len(lines) - 1
    if n < 2 or [len(line) for line in lines] != [n - place, *[n] * (more - 1), place + 1]:
        return False
    fields = [(column, field) for column, field in enumerate(lines[0], place)][1:]
    fields += [(column, field) for line in lines[1:-1] for column, field in enumerate(line)]
    fields += list(enumerate(lines[-1]))[:-1]
    numbers = [field.strip() for column, field in fields if are_numbers[column]]
    if not all(not number or is_plain_number(number) for number in numbers):
        return False
    return any(numbers) or more * (n - 1) >= _FEWEST_SIGNS
