"""What characters are to words: which belong to words, which are words by themselves, and which are taken as equal."""

from __future__ import annotations

import sys
import unicodedata
from functools import cache
from itertools import chain, takewhile

import numpy as np

ALONE = np.uint32(1 << 31)  # a character that is a word by itself, with the marks that follow it
MARK = np.uint32(1 << 30)  # a character that continues the word before it, also after one that is a word by itself
CODE = np.uint32(0x1FFFFF)  # of the character that stands for it
_ASSIGNED = (range(0xD800), range(0xE000, 0x34000), range(0xE0100, 0xE01F0))  # others are surrogates, or no words
# Scripts that are written without spaces: Thai, Lao, Myanmar, Khmer; kana; ideographs
_WITHOUT_SPACES = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3005, 0x3007),
    (0x3041, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),
    (0x20000, 0x323AF),
)


_LAST = {1: 0x7F, 2: 0x7FF, 3: 0xFFFF, 4: sys.maxunicode}  # code of so many bytes in UTF-8


def forms_in(data: np.ndarray) -> np.ndarray:
    """The forms of characters, at least of those in some UTF-8: few texts have any of four bytes."""
    largest = int(data.max(initial=0))
    return forms(1 if largest < 0x80 else 2 if largest < 0xE0 else 3 if largest < 0xF0 else 4)


@cache
def forms(size: int = 4) -> np.ndarray:
    """What each character becomes in words, as the Unicode database of this Python has it.

    Parameters
    ----------
    size : {1, 2, 3, 4}, default 4
        Bytes in UTF-8 that the longest characters have; nothing is told of longer ones.

    Returns
    -------
    ndarray of uint32, of length 0x110000
        0 for characters that separate words. Else the code of the character in lower case (if that is a single
        character), with ``ALONE`` or ``MARK`` where they hold. Letters, digits, marks and the low line belong to words.

    Examples
    --------
    >>> table = forms()
    >>> [chr(table[ord(letter)]) for letter in "aAÉς9_"], int(table[ord("-")])
    (['a', 'a', 'é', 'σ', '9', '_'], 0)
    >>> bool(table[ord("中")] & ALONE), bool(table[ord("中")] & MARK)
    (True, False)
    """
    table = np.zeros(sys.maxunicode + 1, np.uint32)
    for code in takewhile(_LAST[size].__ge__, chain(*_ASSIGNED)):
        kind = unicodedata.category(chr(code))
        if kind[0] in "LNM" or code == ord("_"):
            table[code] = (code if kind == "Lo" else _folded(chr(code))) | (int(MARK) if kind[0] == "M" else 0)
    for first, last in _WITHOUT_SPACES:
        block = table[first : last + 1]
        block[(block != 0) & (block & MARK == 0)] |= ALONE
    return table


def _folded(character: str) -> int:
    """The code of what stands for a character of either case; its own if that would be several characters."""
    folded = character.casefold()
    return ord(folded if len(folded) == 1 else character.lower()[0])
