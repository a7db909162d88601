"""Windows: clocks whose generations are grown on the latest rows only, and are awake while they predict better.

A window costs as much as all other generations, and is useless for a table in random order. So a fixed rule puts it to
sleep and wakes it. At row 2 L a trial begins: a generation is grown on the latest L rows. After each further L rows the
window is checked. The weight of its members in the base mixture, which depends on their losses, is compared with the
weight that they would have if all members awake had equal weights. If it is at least KEPT times as large, the next
generation is grown; else the window sleeps. The next trial begins 2 L rows later, and each further failed trial doubles
the time until the next one. A trial also begins where the loss of the mixture rises: where the mean loss of a block of
1,024 rows exceeds the mean of the blocks since the last rise by four of their standard deviations.
"""

from __future__ import annotations

import math

import numpy as np

from tunefree.core.numbers import LARGEST
from tunefree.core.part import FIXED, LEARNED, Part, array, number
from tunefree.core.schema import COUNT, Flag, Number
from tunefree.generations.clocks import LATE, Event
from tunefree.pool.ledger import LearnedRows
from tunefree.pool.weights_record import running

LENGTHS = (2048, 16384)
BLOCK = 1024  # rows whose mean loss is compared with the mean loss of earlier blocks
FEWEST_BLOCKS = 8  # needed before a rise can be detected
RISE = 4.0  # standard deviations
KEPT = 0.7
NEVER = 2**62  # a number of rows that is not reached
MOST_FAILURES = 62  # the largest number of failed trials; each doubles the time until the next one


class Window(Part):
    """The clock of a window, whose generations are grown on the latest ``length`` rows.

    The next decision is due after ``birth`` rows. ``failures`` counts trials failed since the last success. A window
    with enough weight after a trial, but not 2,048 rows later:

    >>> window, places = Window(2048), np.array([True, False])
    >>> window.decide(4096, np.array([0.0, 1.0]), places)
    Event(birth=4096, takeover=4352)
    >>> window.decide(6144, np.array([0.4, 0.6]), places)
    Event(birth=6144, takeover=6400)
    >>> window.decide(8192, np.array([0.1, 0.9]), places), window.is_awake, window.birth
    (None, False, 12288)
    """

    length = number(FIXED, COUNT)
    is_awake = number(LEARNED, Flag())
    failures = number(LEARNED, Number(0, MOST_FAILURES, whole=True))
    birth = number(LEARNED, COUNT)

    def __init__(self, length: int) -> None:
        self.length, self.is_awake, self.failures, self.birth = length, False, 0, 2 * length

    def decide(self, rows: int, weights: np.ndarray, places: np.ndarray) -> Event | None:
        """The birth at this number of rows; None if the window sleeps from now on.

        ``weights`` (M,) of members are from the base mixture, NaN for members that sleep. ``places`` (M,) is a mask of
        the positions of the window's generations in the mixture.
        """
        window_weights = weights[places & ~np.isnan(weights)]
        has_failed = self.is_awake and not window_weights.sum() >= KEPT * len(window_weights) * np.nanmean(weights)
        if has_failed:
            self.failures += 1
            self.is_awake, self.birth = False, rows + self.length * 2**self.failures
            return None
        self.failures = 0 if self.is_awake else self.failures
        self.is_awake, self.birth = True, rows + self.length
        return Event(rows, rows + self.length // LATE)

    def wake(self, rows: int) -> None:
        """Begin a trial as soon as half of the latest rows came after ``rows``."""
        if not self.is_awake:
            self.birth = min(self.birth, rows + self.length // 2)

    def stop(self) -> None:
        """Stop the births of generations: rows in random order need no window."""
        self.is_awake, self.birth = True, NEVER  # ``wake`` has no effect on a window that is awake


class Rises(Part):
    """Detects rises of the loss of a stream; ``block`` (2,) sums the mixture's losses and rows in the current block.

    >>> rises = Rises()
    >>> steady = [rises.add(0.5 + 0.01 * (block % 3)) for block in range(20)]
    >>> any(steady), rises.add(0.9)
    (False, True)
    """

    blocks = number(LEARNED, COUNT)
    mean, squares = number(LEARNED), number(LEARNED)
    block = array("float64", (2,), LEARNED)

    def __init__(self) -> None:
        self.block = np.zeros(2)
        self.blocks, self.mean, self.squares = 0, 0.0, 0.0  # statistics of the blocks since the last rise

    def observe(self, rows: LearnedRows) -> None:
        """Add the losses of the mixture on rows to the sums of the current block, if the pool grows generations."""
        if rows.members.growth is None:
            return
        judged = np.flatnonzero(rows.relative > 0.0)
        losses = rows.members.losses(rows.mixed[judged][:, None], rows.y[judged])
        self.block = running(self.block, np.column_stack([losses, np.ones(len(judged))]))

    def end_block(self) -> bool:
        """End the current block and begin another one; returns whether the loss of the ended block is a rise."""
        (loss, n), self.block = self.block.tolist(), np.zeros(2)
        return n > 0.0 and self.add(loss / n)

    def add(self, loss: float) -> bool:
        """Add the mean loss of a block; returns whether it is a rise."""
        spread = math.sqrt(self.squares / self.blocks) if self.blocks else 0.0
        has_risen = self.blocks >= FEWEST_BLOCKS and loss > self.mean + RISE * spread and spread > 0.0
        if has_risen:
            self.blocks, self.mean, self.squares = 0, 0.0, 0.0
        deviation = loss - self.mean
        self.blocks += 1
        self.mean += deviation / self.blocks
        self.squares = min(self.squares + deviation * (loss - self.mean), LARGEST)
        return has_risen
