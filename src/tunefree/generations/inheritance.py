"""What a generation of trees inherits from the one before it, and what later rows change of it.

The kept rows are cut in their order. Trees are grown on the first three quarters, with the settings inherited and with
neighbours of these, and the last quarter judges. A neighbour takes over if its losses are less by SURE standard errors
of the paired differences. One more row is imagined, which is predicted wrongly as surely as the surest tenth are: else
a few certain rows decide. The number of trees is read off one growing, which goes on while the latest step gained.

Work is counted, not timed, so that the settings are the same on any machine. Each birth saves up as much as growing it
takes, and less the longer no neighbour gained; a trial is made where its work has been saved up.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from tunefree.generations.leaves import log_probabilities
from tunefree.generations.problem import Problem, prepared
from tunefree.generations.settings import Settings
from tunefree.generations.trees import Trees
from tunefree.losses.objectives import measured, regression

EARLIER = 0.75  # of the rows: trees are grown on them
FEWEST = 32  # rows that judge
MOST_ROWS, MOST_JUDGES = 20_000, 10_000  # drawn of more
SURE = float(os.environ.get("SURE", 1.5))  # standard errors
SUREST = 0.9
MOST_LOSS = 1e145  # of a row, so that sums of squares are finite
BUDGET = float(os.environ.get("BUDGET", 1.0))  # of the work of growing a generation
STEP, MOST_TREES = math.sqrt(2.0), 16.0  # of the number of trees

Neighbour = Callable[[Settings, Problem], Settings | None]


class Growing(Protocol):
    """Trees of a problem, that can become more."""

    can_go_on: bool

    def grow(self, until: float) -> Trees:
        """The trees from those grown before up to a multiple of the usual number."""


class Grower(NamedTuple):
    """A kind of trees that inherits."""

    begin: Callable[[Problem, int, Settings], Growing]
    work: Callable[[Problem, Settings], float]  # of growing, in additions
    neighbours: tuple[Neighbour, ...]


class Inherited(NamedTuple):
    """What a generation leaves to the next one."""

    settings: Settings = Settings()
    saved: float = 0.0  # work
    n_in_vain: int = 0  # neighbours tried since the last one that gained, and which is the next


class Judged(NamedTuple):
    """Settings, and what trees grown with them lose."""

    settings: Settings
    losses: np.ndarray  # (n,) of rows by weight
    imagined: float  # of a row that is predicted wrongly


class Trial:
    """Earlier rows, on which trees are grown, and later ones that judge.

    Of rows that repeat earlier ones no more are to come than among the later ones: if most of these do not, only they
    judge. With groups, only groups that begin later do.
    """

    def __init__(self, problem: Problem, seed: int, has_groups: bool) -> None:
        n = len(problem.targets)
        earlier, later = np.split(np.arange(n), [int(EARLIER * n)])
        is_new = ~np.isin(problem.digests[later], problem.digests[earlier])
        if has_groups or 2 * np.count_nonzero(is_new) >= len(later):
            later = later[is_new]
        random = np.random.default_rng([seed, 3])
        earlier, later = _drawn(random, earlier, MOST_ROWS), _drawn(random, later, MOST_JUDGES)
        has_two = problem.n_classes == 0 or len(np.unique(problem.targets[earlier])) > 1
        self.is_possible = len(later) >= FEWEST and has_two
        self.earlier, self.later = problem.part(earlier), problem.part(later)
        if self.is_possible:
            self.earlier = prepared(self.earlier)
        self.units = np.unique(self.later.digests, return_inverse=True)[1]

    def judged(self, settings: Settings, margins: np.ndarray) -> Judged:
        """What the later rows lose by their margins (n, K)."""
        problem, imagined = self.later, 0.0
        if problem.n_classes:
            logs = log_probabilities(margins, problem.n_classes, 1)
            losses = -logs[np.arange(len(logs)), problem.targets.astype(np.int64)]
            imagined = float(np.quantile(-np.partition(logs, -2, axis=1)[:, -2], SUREST))
        else:
            losses = measured(regression(problem.loss), problem.targets, np.ascontiguousarray(margins))
        return Judged(settings, np.minimum(problem.weights / problem.weights.mean() * losses, MOST_LOSS), imagined)

    def is_better(self, new: Judged, old: Judged) -> bool:
        """Whether one surely loses less than another; rows that are alike, or of a group, are one observation."""
        gains = np.append(np.bincount(self.units, old.losses - new.losses), old.imagined - new.imagined)
        return bool(gains.sum() > max(SURE * math.sqrt(len(gains)) * gains.std(), 0.0))

    def best_number(self, grower: Grower, seed: int, settings: Settings) -> tuple[Judged, float]:
        """The best number of trees, and the work of finding it."""
        growing, sums, work = grower.begin(self.earlier, seed, settings), 0.0, 0.0
        n_steps = round(math.log(settings.trees, STEP))
        numbers = [STEP**step for step in range(-1, round(math.log(MOST_TREES, STEP)) + 1)]
        best: Any = None
        for step, trees in enumerate(numbers, -1) if growing.can_go_on else [(n_steps, settings.trees)]:
            grown = settings._replace(trees=trees)
            part = growing.grow(trees)
            margins = part.apply(self.later.columns)[1][0]
            candidate, sums = self.judged(grown, sums + margins), sums + margins - part.start
            work = grower.work(self.earlier, grown)
            if best is None or self.is_better(candidate, best):
                best = candidate
            elif step >= n_steps:
                break
        return best._replace(settings=best.settings._replace(trees=max(best.settings.trees, 1.0))), work


def _drawn(random: np.random.Generator, rows: np.ndarray, most: int) -> np.ndarray:
    return np.sort(random.choice(rows, most, replace=False)) if len(rows) > most else rows


def inherited(grower: Grower, problem: Problem, seed: int, before: Inherited, has_groups: bool) -> Inherited:
    """What a generation has of the one before, where later rows do not say otherwise."""
    settings, saved, n_in_vain = before
    n_ways, best = len(grower.neighbours), None
    saved += BUDGET * grower.work(problem, settings) / (1 + float(os.environ.get("BACK", 0)) * (n_in_vain // n_ways))
    trial = Trial(problem, seed, has_groups)
    for _ in range(2 * n_ways if trial.is_possible else 0):
        candidate = grower.neighbours[n_in_vain % n_ways](settings, problem)
        work = 0.0 if candidate is None else grower.work(trial.earlier, candidate)
        if best is None and saved < work + grower.work(trial.earlier, settings):
            break
        if best is None:
            best, spent = trial.best_number(grower, seed, settings)
            saved, n_in_vain = saved - spent, n_in_vain % n_ways if best.settings != settings else n_in_vain
            settings = best.settings
            continue
        if saved < work:
            break
        has_gained = False
        if candidate is not None:
            judged, spent = trial.best_number(grower, seed, candidate)
            saved -= spent
            has_gained = trial.is_better(judged, best)
        if has_gained:
            best, settings, n_in_vain = judged, judged.settings, n_in_vain % n_ways
        else:
            n_in_vain += 1
    if os.environ.get("LOG"):
        print(seed, len(grower.neighbours), tuple(round(x, 2) for x in settings), round(saved / grower.work(problem, settings), 2), n_in_vain, best is not None, flush=True)
    return Inherited(settings, max(saved, 0.0), n_in_vain)
