"""Slots of the mixture: each has one member at a time, and keeps its weight when a new generation takes it over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tunefree.generations.clocks import AGES
from tunefree.generations.leaves import learners_of

TREES = ("boosted", "randomised")
LINEAR = ("linear 0.1", "linear 1", "linear 10")
MOST_LINEAR_ROWS = 4096  # at a birth, up to which linear models are grown
LATEST_LINEAR_ROWS = 2 * MOST_LINEAR_ROWS  # learned, after which they sleep
WHOLE = 0  # the clock of all rows


class Slot(NamedTuple):
    """What a place of the mixture is for."""

    clock: int  # 0 for generations of all rows, else of so many latest ones
    kind: str  # of generation
    age: int  # 0 the newest, 1 the one before
    version: int  # 0 as it was born, else by the learner of this number on its leaves

    @property
    def name(self) -> str:
        """In words.

        Examples
        --------
        >>> Slot(2048, "boosted", 1, 2).name
        'boosted of 2048, previous, nag'
        """
        clock = f" of {self.clock}" if self.clock else ""
        learner = f", {learners_of(self.kind)[self.version - 1][0]}" if self.version else ""
        return f"{self.kind}{clock}, {AGES[self.age]}{learner}"


def slots_of(windows: Sequence[int]) -> list[Slot]:
    """All slots, those of the clock of all rows first."""
    of_whole = [Slot(WHOLE, kind, age, 0) for kind in LINEAR for age in range(len(AGES))]
    for clock in (WHOLE, *windows):
        for kind in TREES:
            versions = range(1 if clock else 0, 1 + len(learners_of(kind)))
            of_whole += [Slot(clock, kind, age, version) for age in range(len(AGES)) for version in versions]
    return of_whole
