"""Settings that a generation of trees inherits from the previous generation, and that later rows change.

The kept rows are split in their order. Trees are grown on the first three quarters, with the inherited settings and
with neighbours of them, and compared on the last quarter. A neighbour replaces the settings if its loss is smaller by
SURE standard errors of the paired differences. An imaginary row is added, which is predicted wrongly with the certainty
of the surest tenth: else a few certain rows would decide. The number of trees rises while the latest step gains.

Work is counted, not timed, so that settings are the same on any machine. Each birth saves BUDGET times the work of its
growth, and a trial takes place when enough work is saved.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.generations.kinds import Kind
from tunefree.generations.leaves import finite_sum, log_probabilities
from tunefree.generations.problem import Problem, Settings, prepared
from tunefree.losses.objectives import Objective, measured

EARLIER = 0.75  # part of the rows on which trees are grown
FEWEST = 32  # rows on which settings are compared
MOST_ROWS, MOST_JUDGES = 2**17, 2**14  # larger sets of rows are sampled
SURE = 2.0  # standard errors
SUREST = 0.9  # quantile of the losses that rows would have if they were predicted wrongly
MOST_LOSS = 1e145  # of a row, so that sums of squares are finite
PRICE = 0.02  # part of the loss that twice the work of growing has to gain
BUDGET = 1.0  # work of trials over the work of growing
MORE = 2.0**0.5  # factor of the number of trees per step


class Inherited(NamedTuple):
    """Settings that a generation passes on to the next one."""

    settings: Settings = Settings()
    rows: int = 0  # number of rows for which the settings are
    saved: float = 0.0  # work saved for trials
    turn: int = 0  # number of neighbours tried in vain, which determines the next neighbour

    def for_rows(self, n: int) -> Inherited:
        """The settings for another number of rows.

        A number of trees above the fewest grows with the square root of the rows, as does the number that fits noise
        (Yao, Rosasco, Caponnetto: On early stopping in gradient descent learning, Constructive Approximation 2007).
        """
        settings, fewest = self.settings, self.settings.fewest_trees
        if self.rows and settings.trees > fewest:
            settings = settings._replace(trees=max(settings.trees * math.sqrt(n / self.rows), fewest))
        return self._replace(settings=settings, rows=n)


class Judged(NamedTuple):
    """Settings, and the losses of trees grown with them."""

    settings: Settings
    work: float  # of growing trees with them
    losses: np.ndarray  # (n,) weighted losses of rows
    imagined: float  # loss of the imaginary row

    @property
    def total(self) -> float:
        """The loss of all rows; for numbers, without an imaginary row, losses are clipped at their quantile SUREST."""
        most = MOST_LOSS if self.imagined else float(np.quantile(self.losses, SUREST))
        return float(np.minimum(self.losses, most).sum())


class Trial:
    """Earlier rows, on which trees are grown, and later rows, on which they are compared.

    Later rows whose observation or group is among the earlier rows are left out: trees remember these, so they would
    favour trees that remember more. Equal rows, and rows of one group, count as one observation.
    """

    def __init__(self, kind: Kind, problem: Problem, seed: int, saved: float) -> None:
        n = len(problem.targets)
        earlier, later = np.split(np.arange(n), [int(EARLIER * n)])
        is_new = ~np.isin(problem.digests[later], problem.digests[earlier])
        later = later[is_new]
        random = np.random.default_rng([seed, 3])
        earlier, later = _sampled(random, earlier, MOST_ROWS), _sampled(random, later, MOST_JUDGES)
        self.kind, self.seed, self.later, self.saved = kind, seed, problem.part(later), saved
        self.units = np.unique(self.later.digests, return_inverse=True)[1]
        has_two = problem.n_classes == 0 or len(np.unique(problem.targets[earlier])) > 1
        self.is_possible = len(later) >= FEWEST and has_two
        if self.is_possible:
            self.earlier = prepared(problem.part(earlier))

    def judged(self, settings: Settings, margins: np.ndarray) -> Judged:
        """The losses of the later rows at margins (n, K)."""
        problem, imagined = self.later, 0.0
        if problem.n_classes:
            logs = log_probabilities(margins, problem.n_classes, 1)
            losses = -logs[np.arange(len(logs)), problem.targets.astype(np.int64)]
            imagined = float(np.quantile(-np.partition(logs, -2, axis=1)[:, -2], SUREST))
        else:
            losses = measured(Objective("regression", problem.loss), problem.targets, margins)
        losses = problem.weights / problem.weights.mean() * np.minimum(losses, MOST_LOSS)
        return Judged(settings, self.kind.work_of_trial(settings, self.earlier), losses, imagined)

    def is_better(self, new: Judged, old: Judged) -> bool:
        """Whether the new loss is significantly smaller, by the price of more work; less work may lose as much."""
        gains = np.append(np.bincount(self.units, old.losses - new.losses), old.imagined - new.imagined)
        price = PRICE * math.log2(new.work / old.work) * old.total
        error = SURE * math.sqrt(len(gains)) * gains.std()
        return bool(gains.sum() > (max(error, price) if price > 0.0 else error + price))


class Course:
    """Trees that are grown in steps on the earlier rows of a trial, and evaluated after each step.

    Their work is subtracted from the saved work of the trial.
    """

    def __init__(self, trial: Trial, settings: Settings) -> None:
        self.trial, self.settings, self.sums = trial, settings, np.zeros(1)
        self.grow = trial.kind.begin_trial(trial.earlier, trial.seed, settings)
        self.trees = settings.fewest_trees
        self.judged = [self._judged()]
        trial.saved -= self.judged[0].work

    def go_on(self) -> bool:
        """Grow the trees of one more step; False where there is no room for more, or not enough work is saved."""
        more = self.settings._replace(trees=MORE * self.trees)
        work = self.trial.kind.work_of_trial(more, self.trial.earlier) - self.judged[-1].work
        if more.trees > self.trial.kind.most_trees(more, self.trial.earlier) or work > self.trial.saved:
            return False
        self.trial.saved -= work
        self.trees *= MORE
        self.judged.append(self._judged())
        return True

    def number_of_trees(self) -> float:
        """The multiple of the usual number of trees that the later rows choose."""
        before, is_better = self.settings.trees, self.trial.is_better
        while self.trees * MORE**0.5 < before:
            if not self.go_on():
                return before
        best = self.judged[-1]
        for fewer in reversed(self.judged[:-1]):
            best = fewer if is_better(fewer, best) else best
        while best is self.judged[-1] and self.go_on():
            best = self.judged[-1] if is_better(self.judged[-1], best) else best
        return best.settings.trees

    def _judged(self) -> Judged:
        later = self.trial.later
        grown = self.grow(self.trial.kind.judged(self.trial.earlier) * self.trees)
        margins = finite_sum(grown.apply(later.columns)[1][0], self.sums)
        self.sums = finite_sum(margins, -grown.start)
        return self.trial.judged(self.settings._replace(trees=self.trees), margins)


def _sampled(random: np.random.Generator, rows: np.ndarray, most: int) -> np.ndarray:
    return np.sort(random.choice(rows, most, replace=False)) if len(rows) > most else rows


def inherited(kind: Kind, problem: Problem, seed: int, before: Inherited) -> Inherited:
    """The settings of the previous generation, with the changes that later rows choose.

    Neighbours are compared with few trees. Then the number of trees is kept, reduced, or raised while steps gain.
    """
    n, saved, turn = len(problem.targets), before.saved, before.turn
    saved += BUDGET * kind.work(before.for_rows(n).settings, problem, n)
    n_earlier = min(int(EARLIER * n), MOST_ROWS)
    settings = before.for_rows(n_earlier).settings

    def work_of_few(settings: Settings) -> float:
        return kind.work_of_trial(settings._replace(trees=settings.fewest_trees), problem, n_earlier)

    def next_of(settings: Settings) -> Settings:
        neighbours = kind.neighbours(settings, problem)
        return neighbours[turn % len(neighbours)] if neighbours else settings

    has_saved = saved >= work_of_few(settings) + work_of_few(next_of(settings))
    trial = Trial(kind, problem, seed, saved) if has_saved else None
    if trial is None or not trial.is_possible:
        return before._replace(saved=saved)
    course, in_vain = Course(trial, settings), 0
    while in_vain < len(kind.neighbours(course.settings, problem)):
        neighbour = next_of(course.settings)
        if work_of_few(neighbour) > trial.saved:
            break
        candidate = Course(trial, neighbour)
        has_gained = trial.is_better(candidate.judged[0], course.judged[0])
        course, in_vain = (candidate, 0) if has_gained else (course, in_vain + 1)
        turn += not has_gained
    settings = course.settings._replace(trees=course.number_of_trees())
    return Inherited(settings, len(trial.earlier.targets), trial.saved, turn)
