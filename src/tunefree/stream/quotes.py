"""Double quotes in delimited text, by the rules of RFC 4180 and Arrow.

A quote at the start of a field opens a quoted field, and the next single quote closes it. Two quotes inside a quoted
field are one character. Any other quote is an ordinary character, as in 3.5" disk.
"""

from __future__ import annotations

import re
from typing import Annotated

import numpy as np

from tunefree.compiled.functions import compiled

QUOTE, LINE_END, BACKSLASH = b'"\n\\'


def inside_quotes(text: np.ndarray, delimiters: str) -> np.ndarray:
    """Return a mask of the bytes (uint8) after which a text of whole lines is inside quotes."""
    opens = np.zeros(256, bool)  # mask of the bytes that precede a field
    opens[[LINE_END, ord("\r"), *delimiters.encode()]] = True
    inside = np.empty(len(text), bool)
    mark_quoted(text, opens, LINE_END, False, inside)
    return inside


@compiled
def mark_quoted(
    text: Annotated[np.ndarray, "uint8[bytes]"],
    opens: Annotated[np.ndarray, "bool[256]"],
    before: int,
    begins_inside: bool,
    inside: Annotated[np.ndarray, "bool[bytes]"],
) -> None:
    """Write whether the text behind each byte lies inside quotes."""
    is_inside, start, behind_closing = begins_inside, 0, -1
    for place in range(len(text)):
        if text[place] == QUOTE:
            inside[start:place] = is_inside
            was_inside = is_inside
            last = np.int64(text[place - 1]) if place > 0 else before
            is_inside = not was_inside and (place == behind_closing or opens[last])
            start, behind_closing = place, place + 1 if was_inside else -1
    inside[start:] = is_inside


def unescape(text: np.ndarray) -> None:
    r"""Replace each backslash that escapes a quote by a quote, in place: \" becomes ""."""
    marks = np.flatnonzero(text[1:] == QUOTE)
    marks = marks[text[marks] == BACKSLASH]
    for index in marks.tolist():
        first = index
        while first and text[first - 1] == BACKSLASH:
            first -= 1
        if (index - first) % 2 == 0:  # the backslash is not escaped by another one
            text[index] = QUOTE


def misfits(lines: np.ndarray, delimiter: str, n_fields: int) -> int:
    """Count the lines of a text whose number of fields is not ``n_fields``, without blank lines."""
    inside = inside_quotes(lines, delimiter)
    ends, signs = (np.flatnonzero((lines == byte) & ~inside) for byte in (LINE_END, ord(delimiter)))
    counts = np.bincount(np.searchsorted(ends, signs), minlength=len(ends) + 1)
    is_blank = np.diff(ends, prepend=-1, append=len(lines)) <= 2
    return int(np.count_nonzero((counts != n_fields - 1) & ~is_blank))


def is_escaped(text: bytes, delimiter: str, n_fields: int) -> bool:
    """Whether backslashes escape the quotes in values, as Spark, Hive and MySQL write them."""
    if BACKSLASH not in text or b'\\"' not in text:  # a search for one byte is fast
        return False
    if re.search(rb'\\"[^"\r\n' + re.escape(delimiter.encode()) + rb"]", text):
        return True
    doubled = np.frombuffer(bytearray(text), np.uint8)
    unescape(doubled)
    return misfits(doubled, delimiter, n_fields) < misfits(np.frombuffer(text, np.uint8), delimiter, n_fields)
