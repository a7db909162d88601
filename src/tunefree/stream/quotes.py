"""Double quotes in delimited text, as RFC 4180 and Arrow read them: which line ends they hold, and which look wrong.

A quote at the start of a field opens it, and the next single one closes it. Any other quote outside an open field is a
letter, as in 3.5" disk. So a run of quotes does one of three things: one of even length changes nothing; one of odd
length changes between outside and inside where it stands at the start of a field, and leads outside elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

QUOTE, LINE_END, BACKSLASH = b'"\n\\'
_PIECE = 1 << 16  # bytes that fit into the first-level cache


class Quotes(NamedTuple):
    """Which bytes of a text lie inside quotes."""

    bits: np.ndarray  # (at least bytes / 8,) uint8: whether what follows each byte lies inside, the lowest bit first
    ends_inside: bool  # whether the end of the text does

    def hold(self, places: np.ndarray) -> np.ndarray:
        """Whether places of the text, where no quote is, lie inside quotes."""
        return (self.bits[places >> 3] >> (places & 7).astype(np.uint8)) & 1 == 1


def quotes_of(text: np.ndarray, delimiters: str, before: int = LINE_END, begins_inside: bool = False) -> Quotes:
    """The quotes of a text (uint8), whose fields begin after the delimiters; ``before`` is the byte before it."""
    starts = (LINE_END, ord("\r"), *delimiters.encode())
    masks = np.zeros((2, -(-len(text) // 64)), "<u8")  # a bit for each byte: of quotes, and what a quote may follow
    packed = masks.view(np.uint8)
    for start in range(0, len(text), _PIECE):
        piece = text[start : start + _PIECE]
        is_one, place = piece == QUOTE, slice(start // 8, -(-(start + len(piece)) // 8))
        packed[0, place] = np.packbits(is_one, bitorder="little")
        for mark in starts:
            is_one |= piece == mark
        packed[1, place] = np.packbits(is_one, bitorder="little")
    quotes, follows = masks
    last = np.append(np.uint64(before in starts), follows[:-1] >> np.uint64(63))
    inside = _parities(quotes, begins_inside)
    if (quotes & inside & ~(follows << np.uint64(1) | last)).any():
        changes = np.zeros(64 * len(quotes), bool)
        changes[_changes(text, starts, before, begins_inside)] = True
        inside = _parities(np.packbits(changes, bitorder="little").view("<u8"), begins_inside)
    bits, end = inside.view(np.uint8), len(text) - 1
    return Quotes(bits, bool(bits[end >> 3] >> (end & 7) & 1) if len(text) else begins_inside)


def _parities(words: np.ndarray, odd: bool) -> np.ndarray:
    """Whether the ones up to each bit are odd, of words of 64 bits; with one more if ``odd``."""
    parities = words.copy()
    for shift in (1, 2, 4, 8, 16, 32):
        parities ^= parities << np.uint64(shift)
    carried = np.bitwise_xor.accumulate(np.append(np.uint64(odd), parities >> np.uint64(63)))[:-1]
    return parities ^ -carried


def _changes(text: np.ndarray, starts: Sequence[int], before: int, begins_inside: bool) -> np.ndarray:
    """Where runs of quotes change between outside and inside."""
    places = np.flatnonzero(text == QUOTE)
    last = text[places - 1]
    if places[0] == 0:
        last[0] = before
    follows = last == QUOTE
    follows[0] = False
    if follows.any():
        firsts = np.flatnonzero(~follows)
        odd = firsts[np.diff(firsts, append=len(places)) % 2 == 1]
        places, last = places[odd], last[odd]
    opens = np.zeros(256, bool)
    opens[list(starts)] = True
    inside = toggles = opens[last]
    if begins_inside or (toggles[1:] & toggles[:-1]).any():  # else each that opens is followed by one that closes
        changes = np.cumsum(toggles)
        closed = np.maximum.accumulate(np.where(toggles, 0, np.arange(1, len(places) + 1)))  # the last that led outside
        since = np.append(-int(begins_inside), changes)[closed]
        inside = (changes - since) % 2 == 1
    return places[inside ^ np.append(begins_inside, inside[:-1])[: len(places)]]


def unescape(text: np.ndarray) -> None:
    r"""Double the quotes that a backslash precedes, in the place of the backslash: \" becomes ""."""
    marks = np.flatnonzero(text[1:] == QUOTE)
    marks = marks[text[marks] == BACKSLASH]
    for place in marks.tolist():
        first = place
        while first and text[first - 1] == BACKSLASH:
            first -= 1
        if (place - first) % 2 == 0:  # the backslash is not escaped by another one
            text[place] = QUOTE


def misfits(lines: np.ndarray, delimiter: str, n_fields: int) -> int:
    """How many lines of a text have another number of fields; blank ones are passed over."""
    quotes = quotes_of(lines, delimiter)
    ends, signs = (np.flatnonzero(lines == byte) for byte in (LINE_END, ord(delimiter)))
    ends = ends[~quotes.hold(ends)]
    counts = np.bincount(np.searchsorted(ends, signs[~quotes.hold(signs)]), minlength=len(ends) + 1)
    is_blank = np.diff(ends, prepend=-1, append=len(lines)) <= 2
    return int(np.count_nonzero((counts != n_fields - 1) & ~is_blank))


def is_escaped(text: bytes, delimiter: str, n_fields: int) -> bool:
    """Whether backslashes say that quotes belong to values, as Spark, Hive and MySQL write them."""
    if BACKSLASH not in text or b'\\"' not in text:  # a search for one byte is fast
        return False
    if re.search(rb'\\"[^"\r\n' + re.escape(delimiter.encode()) + rb"]", text):
        return True
    doubled = np.frombuffer(bytearray(text), np.uint8)
    unescape(doubled)
    return misfits(doubled, delimiter, n_fields) < misfits(np.frombuffer(text, np.uint8), delimiter, n_fields)
