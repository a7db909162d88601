"""Clocks: the numbers of rows after which generations are born, and after which they predict.

A generation of the rows up to b is grown in a second thread while rows after b are learned, and takes over at a fixed
later row, whatever the number of threads. The two newest generations of a kind are awake.
"""

from __future__ import annotations

import math
from typing import NamedTuple

FIRST = 16  # rows at the first birth
FACTOR = math.sqrt(2.0)  # ratio of the rows at consecutive births, up to COARSE doublings
COARSE = 8  # doublings of FIRST with a birth in between: later ones would cost time without a gain
AT_ONCE = 2048  # number of rows up to which a generation takes over at its birth
LATE = 8  # a generation of b rows takes over after b / LATE further ones
AGES = ("newest", "previous")


class Event(NamedTuple):
    """The rows after which a generation is born, and after which it takes over."""

    birth: int  # rows learned
    takeover: int


def births(after: int) -> Event:
    """The first birth of the doubling clock after ``after`` rows."""
    step = 0
    while birth_of(step) <= after:
        step += 1
    birth = birth_of(step)
    return Event(birth, birth if birth < AT_ONCE else birth + birth // LATE)


def birth_of(step: int) -> int:
    """The number of rows at the birth with index ``step``.

    >>> [birth_of(step) for step in (0, 1, 2, 3, 15, 16, 17, 18)]
    [16, 23, 32, 45, 2896, 4096, 8192, 16384]
    """
    whole, half = divmod(step, 2) if step <= 2 * COARSE else (step - COARSE, 0)
    return math.floor(FIRST * 2**whole * (FACTOR if half else 1.0) + 0.5)
