"""Counts of words and of pairs of adjacent words in texts.

A word is two or more letters, digits, marks or underscores, in lower case; single characters are left out. This is the
rule of scikit-learn's vectorisers, except for marks, which they treat as separators (most vowels of Hindi are marks).
In scripts without spaces between words, each character is a word, together with the marks that follow it.
"""

from __future__ import annotations

import sys
import unicodedata
from functools import cache
from itertools import chain, takewhile
from typing import Annotated, NamedTuple

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.stream.keys import SEED, hash_bytes, mix

ALONE = np.uint32(1 << 31)  # flag of a character that is a word by itself, together with the marks that follow it
MARK = np.uint32(1 << 30)  # flag of a mark, which continues the word before it even if that has the flag ALONE
CODE = np.uint32(0x1FFFFF)  # bits of the code point in lower case
_ASSIGNED = (range(0xD800), range(0xE000, 0x34000), range(0xE0100, 0xE01F0))  # the rest has no characters of words
_WITHOUT_SPACES = (  # first and last characters of scripts that do not separate words by spaces
    *((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF)),  # Thai and Lao, Myanmar, Khmer
    *((0x3005, 0x3007), (0x3041, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9D)),  # kana
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF)),  # ideographs
)
_LAST = {1: 0x7F, 2: 0x7FF, 3: 0xFFFF, 4: sys.maxunicode}  # last code point by number of bytes in UTF-8


@cache
def forms(size: int = 4) -> np.ndarray:
    """Build a table (0x110000,) uint32 of the form of each code point in words, by Python's Unicode database.

    The form is 0 for a character that separates words, else the code point in lower case with flags ``ALONE`` and
    ``MARK``. It is also 0 for characters of more than ``size`` bytes in UTF-8.
    """
    table = np.zeros(sys.maxunicode + 1, np.uint32)
    for code in takewhile(_LAST[size].__ge__, chain(*_ASSIGNED)):
        kind = unicodedata.category(chr(code))
        if kind[0] in "LNM" or code == ord("_"):
            lower = chr(code).casefold()
            letter = lower if len(lower) == 1 else chr(code).lower()[0]  # case folding may give two, as for sharp s
            table[code] = (code if kind == "Lo" else ord(letter)) | (int(MARK) if kind[0] == "M" else 0)
    for first, last in _WITHOUT_SPACES:
        block = table[first : last + 1]
        block[(block != 0) & (block & MARK == 0)] |= ALONE
    return table


_SPACE = np.uint8(32)
_NONE = np.uint32(0)
_LOW, _HEAD = np.uint32(0x3F), np.uint32(0x80)
_FEWEST_SLOTS = 64


class Counts(NamedTuple):
    """The distinct words and pairs of each text, in the order of first appearance."""

    ends: Annotated[np.ndarray, "int64[texts]"]  # index after the last entry of each text
    keys: Annotated[np.ndarray, "uint64[entries]"]  # hashes of the names
    counts: Annotated[np.ndarray, "float64[entries]"]
    places: Annotated[np.ndarray, "int64[entries, 2]"]  # start and stop of the name in ``text``
    text: Annotated[np.ndarray, "uint8[bytes]"]  # words in UTF-8, separated by single spaces


def count_words(offsets: np.ndarray, data: np.ndarray, seed: int) -> Counts:
    """Count words and pairs of words in UTF-8 texts in the layout of Arrow; ``seed`` is the seed of the keys."""
    offsets, data = np.ascontiguousarray(offsets, np.int64), np.ascontiguousarray(data, np.uint8)
    n, size = len(offsets) - 1, int(offsets[-1] - offsets[0])
    max_words = size // 2 + n  # maximum number of words: each has at least two bytes
    text = np.empty(2 * size + 2 * n + 8, np.uint8)  # lower case adds at most half of the bytes of a character
    words = np.empty((max_words, 2), np.int64)
    in_texts = np.empty(n, np.int64)
    largest = int(data[offsets[0] : offsets[-1]].max(initial=0))  # the largest byte bounds the bytes of a character
    table = forms(1 if largest < 0x80 else 2 if largest < 0xE0 else 3 if largest < 0xF0 else 4)
    n_bytes = split(offsets, data, table, text, words, in_texts)
    longest = int(np.diff(in_texts, prepend=0).max(initial=0))
    slots = np.zeros((max(_FEWEST_SLOTS, 1 << (4 * longest).bit_length()), 2), np.int64)
    total = int(in_texts[-1]) if n else 0
    counts = Counts(
        ends=np.empty(n, np.int64),
        keys=np.empty(2 * total, np.uint64),
        counts=np.empty(2 * total),
        places=np.empty((2 * total, 2), np.int64),
        text=text,
    )
    entries = count(in_texts, words, int(seed), SEED, slots, counts)
    keys, numbers, spans = counts.keys[:entries], counts.counts[:entries], counts.places[:entries]
    return Counts(counts.ends, keys, numbers, spans, text[:n_bytes])


def _decode(data, place):
    """The code of the character that starts at a place, and the place after it."""
    byte = np.uint32(data[place])
    if byte < _HEAD:
        return byte, place + 1
    further = 1 if byte < np.uint32(0xE0) else 2 if byte < np.uint32(0xF0) else 3
    code = byte & np.uint32(0x3F >> further)
    for i in range(1, further + 1):
        code = code << np.uint32(6) | (np.uint32(data[place + i]) & _LOW)
    return code, place + 1 + further


def _encode(code, text, place):
    """Write a character; returns the place after it."""
    if code < np.uint32(0x80):
        text[place] = code
        return place + 1
    further = 1 if code < np.uint32(0x800) else 2 if code < np.uint32(0x10000) else 3
    text[place] = np.uint32(0xF0 << (3 - further)) & np.uint32(0xFF) | code >> np.uint32(6 * further)
    for i in range(1, further + 1):
        text[place + i] = _HEAD | (code >> np.uint32(6 * (further - i)) & _LOW)
    return place + 1 + further


@compiled
def split(
    offsets: Annotated[np.ndarray, "int64[offsets]"],
    data: Annotated[np.ndarray, "uint8[data]"],
    forms: Annotated[np.ndarray, "uint32[characters]"],
    text: Annotated[np.ndarray, "uint8[bytes]"],
    words: Annotated[np.ndarray, "int64[words, 2]"],
    in_texts: Annotated[np.ndarray, "int64[texts]"],
) -> int:
    """Write the words of all texts, and where each is; returns the bytes written."""
    written, n_words = 0, 0
    for i in range(len(in_texts)):
        place, stop = offsets[i], offsets[i + 1]
        while place < stop:
            start, length, form = written, 0, _NONE
            while place < stop:
                code, after = _decode(data, place)
                following = forms[code]
                if following == _NONE or (form & ALONE and not following & MARK):
                    break
                if length > 0 and following & ALONE:
                    break
                form = following & ALONE | form
                written = _encode(following & CODE, text, written)
                length, place = length + 1, after
            if length > 1 or form & ALONE:
                words[n_words, 0], words[n_words, 1] = start, written
                text[written] = _SPACE
                n_words, written = n_words + 1, written + 1
            else:
                written = start
            if place < stop and length == 0:  # a character that separates words
                place = _decode(data, place)[1]
        in_texts[i] = n_words
    return written


@compiled
def count(
    in_texts: Annotated[np.ndarray, "int64[texts]"],
    words: Annotated[np.ndarray, "int64[words, 2]"],
    seed: int,
    slot_seed: int,
    slots: Annotated[np.ndarray, "int64[slots, 2]"],
    counts: Counts,
) -> int:
    """Count the words and pairs of each text; returns the entries written. The seed has 64 bits."""
    entries, first_word = 0, 0
    for i in range(len(in_texts)):
        last_slot = _FEWEST_SLOTS
        while last_slot < 4 * (in_texts[i] - first_word):  # as few slots as the text needs stay in the fastest cache
            last_slot *= 2
        last_slot -= 1
        for w in range(first_word, in_texts[i]):
            for before in range(2 if w > first_word else 1):
                start, stop = words[w - before, 0], words[w, 1]
                key = hash_bytes(counts.text, start, stop, np.uint64(seed))
                slot = np.int64(mix(key ^ np.uint64(slot_seed)) & np.uint64(last_slot))
                while slots[slot, 0] == i + 1 and counts.keys[slots[slot, 1]] != key:
                    slot = (slot + 1) & last_slot
                if slots[slot, 0] == i + 1:
                    counts.counts[slots[slot, 1]] += 1.0
                else:
                    slots[slot, 0], slots[slot, 1] = i + 1, entries
                    counts.keys[entries], counts.counts[entries] = key, 1.0
                    counts.places[entries, 0], counts.places[entries, 1] = start, stop
                    entries += 1
        first_word = in_texts[i]
        counts.ends[i] = entries
    return entries
