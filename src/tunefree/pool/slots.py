"""Slots of the mixture: each has one member at a time, and keeps its weight when a new generation takes it over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tunefree.core.errors import ModelError
from tunefree.generations.clocks import AGES
from tunefree.generations.kinds import KINDS, LINEAR, TREES
from tunefree.generations.leaves import learners_of
from tunefree.generations.linear import STRENGTHS

MOST_KINDS = 64
MOST_LINEAR_ROWS = 4096  # at a birth, up to which linear models are grown
LATEST_LINEAR_ROWS = 2 * MOST_LINEAR_ROWS  # learned, after which they sleep
WHOLE = 0  # the clock of all rows


class Slot(NamedTuple):
    """The purpose of a place in the mixture."""

    clock: int  # 0 for generations of all rows, else of so many latest ones
    kind: str  # of generation
    age: int  # 0 the newest, 1 the one before
    version: int  # of trees 0 as they were born, else by the learner of this number on their leaves; of linear models
    #   the number of the strength

    @property
    def name(self) -> str:
        """The name of the slot in words.

        >>> Slot(2048, "boosted", 1, 2).name
        'boosted of 2048, previous, nag'
        """
        clock = f" of {self.clock}" if self.clock else ""
        if self.kind == LINEAR:
            return f"{self.kind} {STRENGTHS[self.version]:g}{clock}, {AGES[self.age]}"
        learner = f", {learners_of(KINDS[self.kind].wealth)[self.version - 1][0]}" if self.version else ""
        return f"{self.kind}{clock}, {AGES[self.age]}{learner}"

    @property
    def is_as_born(self) -> bool:
        """Whether its members do not learn."""
        return self.kind == LINEAR or self.version == 0


def slots_of(windows: Sequence[int], kinds: Sequence[str] = TREES, have_learners: bool = True) -> list[Slot]:
    """Slots of linear models on all rows, and of kinds of trees on all rows and on windows, with learners or not."""
    if len({*kinds, LINEAR}) <= len(kinds):
        raise ModelError("a kind of generation is named twice")
    ages = range(len(AGES))
    slots = [Slot(WHOLE, LINEAR, age, version) for version in range(len(STRENGTHS)) for age in ages]
    for clock in (WHOLE, *windows):
        for kind in kinds:
            learners = learners_of(KINDS[kind].wealth if have_learners else 0.0)
            versions = range(1 if clock and learners else 0, 1 + len(learners))
            slots += [Slot(clock, kind, age, version) for age in ages for version in versions]
    return slots


def kinds_in(slots: Iterable[Slot]) -> tuple[str, ...]:
    """The kinds of trees in slots."""
    return tuple(dict.fromkeys(slot.kind for slot in slots if slot.kind != LINEAR))
