"""The kinds of generations, by name: the functions that grow them, and the learners on their leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tunefree.core.registry import Registry
from tunefree.generations.problem import Problem, Settings

LINEAR = "linear"
KINDS = Registry(
    "kind of generation",
    {
        "boosted": "tunefree.generations.boosted:KIND",
        "randomised": "tunefree.generations.randomised:KIND",
        LINEAR: "tunefree.generations.linear:KIND",
    },
    "tunefree.generations",
)
TREES = tuple(name for name in KINDS if name != LINEAR)  # kinds of trees in this package


class Kind(NamedTuple):
    """A kind of generations, and functions by which later rows choose its settings; by default these are USUAL."""

    # Grows trees, or linear models for LINEAR, on a problem with a seed and settings; returns None if the kind does not
    # apply.
    grow: Callable[[Problem, int, Settings], Any]
    wealth: float = 0.0  # initial wealth of a leaf per unit of margin; 0 if leaves do not learn
    # For a problem, a seed and settings: a function that grows further trees up to a multiple of the usual number.
    begin_trial: Any = None
    judged: Callable[[Problem], float] = lambda problem: 1.0  # part of the trees that suffices in a trial
    neighbours: Callable[[Settings, Problem], list[Settings]] = lambda settings, problem: []
    work: Callable[[Settings, Problem, int], float] = lambda settings, problem, n: 0.0  # approximate additions
    # The largest multiple of the usual number of trees; 1 where rows do not choose their number.
    most_trees: Callable[[Settings, Problem], float] = lambda settings, problem: 1.0
    is_monotone: bool = False  # whether its trees follow the signs of monotone columns

    def work_of_trial(self, settings: Settings, problem: Problem, n: int | None = None) -> float:
        """The work of growing the trees of a trial on so many rows, by default those of the problem."""
        return self.judged(problem) * self.work(settings, problem, len(problem.targets) if n is None else n)


def registered(are_monotone: bool = False) -> tuple[str, ...]:
    """Names of the kinds registered in this process in addition to this package's, or of the monotone ones."""
    return tuple(name for name in KINDS if name not in (*TREES, LINEAR) and KINDS[name].is_monotone >= are_monotone)
