"""How deep JSON is nested: parsers recurse, and a line of brackets alone would end the process."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

MOST_NESTED = 64  # objects and lists in each other
_STEPS = np.zeros(256, np.int8)
_STEPS[[ord("["), ord("{")]], _STEPS[[ord("]"), ord("}")]] = 1, -1
_BRACKETS, _OTHER_BITS = 0x7F, 0x26  # what brackets, Y, y and _ become with the bits in which brackets differ
_LINE_END = 10
_SHORT = 1 << 12  # bytes, of which brackets are counted first
_TEXT = re.compile(rb'"(?:[^"\\\n]|\\.)*"')


def is_too_deep(data: Any) -> bool:
    """Whether values of any line of a text are nested more than MOST_NESTED deep.

    Parameters
    ----------
    data : bytes or array of uint8

    Examples
    --------
    >>> is_too_deep(b'{"a": [[1], "[[[["]}'), is_too_deep(b"[" * 65), is_too_deep(b'{"a": "' + b"[" * 65 + b'"}')
    (False, True, False)
    """
    letters = np.frombuffer(data, np.uint8)
    if len(letters) < _SHORT and sum(map(bytes(data).count, (b"[", b"{"))) <= MOST_NESTED:
        return False
    return (
        _deepest(letters) > MOST_NESTED and _deepest(np.frombuffer(_TEXT.sub(b"", bytes(data)), np.uint8)) > MOST_NESTED
    )


def _deepest(data: np.ndarray) -> int:
    """How deep values are nested, if brackets in texts are none."""
    is_step = (data | _OTHER_BITS) == _BRACKETS  # a table of all 256 bytes would take four times as long
    is_step |= data == _LINE_END
    places = data[np.flatnonzero(is_step)]
    if len(places) <= MOST_NESTED:
        return len(places)
    depth, ends = np.cumsum(_STEPS[places], dtype=np.int64), places == _LINE_END
    before = np.concatenate([[0], depth[ends]])  # each line
    return int((depth - before[np.cumsum(ends)]).max())
