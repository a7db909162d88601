"""Windows: clocks whose generations are grown on the latest rows only, awake while they predict better.

A window costs as much as all other generations, and a table in random order has no use for it. So it is put to sleep
and woken by a fixed rule. At rows 2 L, 4 L, 8 L, ... a trial begins: a generation is grown on the latest L rows. L rows
later the best member of the window is compared with the best of the others, by their mean losses since it took over. If
it is better, the next generation is grown, and they are compared again after each further L rows; else the window
sleeps until the next trial. A trial also begins where the loss of the mixture rises: where the mean of a block of 1,024
rows exceeds the mean of the blocks since the last rise by four of their standard deviations.
"""

from __future__ import annotations

import math

import numpy as np

from tunefree.generations.clocks import LATE, Event

LENGTHS = (2048, 16384)
BLOCK = 1024  # rows whose mean loss is compared with that of the blocks before
FEWEST_BLOCKS = 8  # before a rise can be told
RISE = 4.0  # standard deviations


class Window:
    """The clock of one window.

    Parameters
    ----------
    length : int
        Rows that its generations are grown on.

    Attributes
    ----------
    is_awake : bool
    birth : int
        Rows learned when it next decides.
    trial : int
        Rows learned when it next wakes by itself.

    Examples
    --------
    A window that is better for one trial, and not in the next:

    >>> window = Window(2048)
    >>> window.decide(4096)
    Event(birth=4096, takeover=4352)
    >>> window.judge(np.array([1.0]), np.array([2.0]))
    >>> window.decide(6144)
    Event(birth=6144, takeover=6400)
    >>> window.judge(np.array([2.0]), np.array([1.0]))
    >>> window.decide(8192), window.is_awake, window.birth
    (None, False, 16384)
    """

    def __init__(self, length: int) -> None:
        self.length, self.is_awake, self.trial = length, False, 2 * length
        self.birth = self.trial
        self.inside, self.outside = math.inf, math.inf  # least mean losses since the latest takeover

    def judge(self, inside: np.ndarray, outside: np.ndarray) -> None:
        """Take note of the mean losses of the members of the window, and of all others, since the latest takeover."""
        self.inside = float(np.min(inside, initial=math.inf))
        self.outside = float(np.min(outside, initial=math.inf))

    def decide(self, rows: int) -> Event | None:
        """What is born after so many rows, which are those of ``birth``; None if the window sleeps from here on."""
        while self.trial <= rows:
            self.trial *= 2
        if self.is_awake and not self.inside < self.outside:
            self.is_awake, self.birth = False, self.trial
            return None
        self.is_awake, self.birth = True, rows + self.length
        self.inside = self.outside = math.inf
        return Event(rows, rows + self.length // LATE)

    def wake(self, rows: int) -> None:
        """Begin a trial as soon as half of the latest rows came after so many."""
        if not self.is_awake:
            self.birth = min(self.birth, rows + self.length // 2)


class Rises:
    """Tells where the loss of a stream rises.

    Examples
    --------
    >>> rises = Rises()
    >>> steady = [rises.add(0.5 + 0.01 * (block % 3)) for block in range(20)]
    >>> any(steady), rises.add(0.9)
    (False, True)
    """

    def __init__(self) -> None:
        self.blocks, self.mean, self.squares = 0, 0.0, 0.0  # of the blocks since the last rise

    def add(self, loss: float) -> bool:
        """Add the mean loss of a block; whether it is a rise."""
        spread = math.sqrt(self.squares / self.blocks) if self.blocks else 0.0
        has_risen = self.blocks >= FEWEST_BLOCKS and loss > self.mean + RISE * spread and spread > 0.0
        if has_risen:
            self.blocks, self.mean, self.squares = 0, 0.0, 0.0
        away = loss - self.mean
        self.blocks += 1
        self.mean += away / self.blocks
        self.squares += away * (loss - self.mean)
        return has_risen
