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
    inside, outside : (M,) array of bool
        Which places of the mixture are of its generations, and which they are compared with.

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

    >>> window = Window(2048, np.array([True, False]), np.array([False, True]))
    >>> window.decide(4096)
    Event(birth=4096, takeover=4352)
    >>> window.judge(np.array([[1.0, 2.0]]))
    >>> window.decide(6144)
    Event(birth=6144, takeover=6400)
    >>> window.take_over()
    >>> window.judge(np.array([[2.0, 1.0]]))
    >>> window.decide(8192), window.is_awake, window.birth
    (None, False, 16384)
    """

    def __init__(self, length: int, inside: np.ndarray, outside: np.ndarray) -> None:
        self.length, self.inside, self.outside = length, inside, outside
        self.is_awake, self.trial, self.birth = False, 2 * length, 2 * length
        self.totals = np.zeros((2, len(inside)))  # losses of each member, and rows, since the latest takeover

    def judge(self, losses: np.ndarray) -> None:
        """Take note of losses (n, M) of all members, NaN of those asleep."""
        if self.is_awake:
            awake = ~np.isnan(losses)
            self.totals = running(self.totals, np.stack([np.where(awake, losses, 0.0), awake], axis=1))

    def take_over(self) -> None:
        """A new generation predicts from here on."""
        self.totals = np.zeros(self.totals.shape)

    @property
    def is_better(self) -> bool:
        """Whether the best inside has lost less than the best outside, of those awake for half of the rows."""
        totals, rows = self.totals
        is_judged = rows >= 0.5 * rows.max(initial=1.0)
        means = np.divide(totals, rows, out=np.full(len(rows), np.inf), where=is_judged)
        best_inside, best_outside = (means[part].min(initial=math.inf) for part in (self.inside, self.outside))
        return bool(best_inside < best_outside)

    def decide(self, rows: int) -> Event | None:
        """What is born after so many rows, which are those of ``birth``; None if the window sleeps from here on."""
        while self.trial <= rows:
            self.trial *= 2
        if self.is_awake and not self.is_better:
            self.is_awake, self.birth = False, self.trial
            return None
        self.is_awake, self.birth = True, rows + self.length
        self.take_over()
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


def running(start: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """Sums over the first axis of terms, added one by one, so that they do not depend on how rows come in blocks."""
    return np.cumsum(np.concatenate([start[None], terms]), axis=0)[-1]
