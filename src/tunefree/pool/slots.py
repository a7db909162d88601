"""Slots of the mixture: each has one member at a time, and keeps its weight when a new generation takes over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tunefree.core.errors import ModelError
from tunefree.generations.clocks import AGES
from tunefree.generations.kinds import KINDS, LINEAR, TREES
from tunefree.generations.leaves import learners_of
from tunefree.generations.linear import STRENGTHS

MOST_KINDS = 64
MOST_LINEAR_ROWS = 4096  # linear models are grown at births up to this number of rows
LATEST_LINEAR_ROWS = 2 * MOST_LINEAR_ROWS  # they sleep from this number of rows on
WHOLE = 0  # the clock of all rows


class Slot(NamedTuple):
    """The kind of member that a position in the mixture is for."""

    clock: int  # 0 for generations of all rows, else the number of latest rows they are grown on
    kind: str  # kind of generation
    age: int  # 0 for the newest generation, 1 for the one before
    version: int  # trees: 0 as they were born, else the number of the learner on their leaves, from 1;
    #   linear models: index into STRENGTHS

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


def slots_of(windows: Sequence[int], kinds: Sequence[str] = TREES, have_learners: bool = True) -> list[Slot]:
    """Slots for linear models on all rows, and for trees on all rows and on windows, with or without learners."""
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
