"""The batch phase: exact gradients of all rows, from the mixture's weights along a falling ridge, stopped early.

A pass over a stream leaves something to learn on rows that can be read again. The phase minimises the mean loss plus a
ridge by L-BFGS (:mod:`tunefree.model.lbfgs`), on the features of a view as its members see them. It begins with the
share-weighted weights of these members, or with 0 where that is better. The ridge falls, each solution being the start
of the next. Losses on rows that are held out tell when to stop, on each ridge and of all: iterates on the way are
regularised by having been stopped (Yao, Rosasco, Caponnetto: On early stopping in gradient descent learning, 2007).
Afterwards as many iterations on the same ridges are made on all rows.

Columns are measured in the geometric mean of their largest value and their root mean square. The ridge then forgives
features that few rows have some of the little evidence they have, and the first steps are of like size for all.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import threads
from tunefree.losses.objectives import size_of_margins, smoothness, unit_of_margins
from tunefree.model import lbfgs
from tunefree.model.batch_rows import BatchRows, inverses
from tunefree.model.patience import ITERATION, RIDGE

RIDGES = tuple(10.0 ** (-k / 2) for k in range(-5, 7))  # in rows of the steepest curvature that the loss has
MOST_ITERATIONS = 60  # on one ridge
MOST_WORK = 2.0**34  # entries, times outputs, that all iterations may go through
FEWEST_ITERATIONS = 20  # however many entries there are
LARGEST_UNIT = 1e60  # of margins; its inverse is the smallest
LARGEST_MARGIN = 1e30  # whose weights single precision holds
FIRST_STEP = 0.5  # in steps that the steepest curvature allows


class Stage(NamedTuple):
    """What was done on one ridge."""

    ridge: float
    iterations: int


class Stopped(NamedTuple):
    """Where the path was stopped."""

    stages: list[Stage]
    weights: np.ndarray  # (d, K) per unit of each column
    units: np.ndarray  # (d,)
    loss: float  # mean loss of the rows held out

    @property
    def iterations(self) -> int:
        """Of all stages."""
        return sum(stage.iterations for stage in self.stages)


class Problem(NamedTuple):
    """The rows, and the units in which their columns are measured."""

    rows: BatchRows
    objective: Any
    inverse: np.ndarray  # (d,) 1 / unit; 0 for a column that is 0 in all rows

    @classmethod
    def of(cls, rows: BatchRows, objective: Any) -> Problem:
        """With units that are found by the rows."""
        largest, squares = rows.sizes()
        inverse = inverses(np.sqrt(largest) * squares**0.25)
        inverse[0] = 1.0  # of the constant, which the ridge leaves alone
        return cls(rows, objective, inverse)

    def iterates(self, weights: np.ndarray, ridge: float) -> Any:
        """The iterates of L-BFGS on one ridge."""
        steepest = smoothness(self.objective) * unit_of_margins(self.objective) ** 2
        mass = self.rows.weight
        strength = ridge * steepest / self.rows.n_rows

        def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
            point = flat.reshape(weights.shape)
            loss, gradient = self.rows.gradient(self.objective, point, self.inverse)
            penalised = point.copy()
            penalised[0] = 0.0
            total = loss / mass + 0.5 * strength * float((penalised**2).sum())
            return total / steepest, ((gradient / mass + strength * penalised) / steepest).ravel()

        for flat in lbfgs.iterates(value, weights.ravel(), FIRST_STEP):
            yield flat.reshape(weights.shape)

    def value(self, weights: np.ndarray) -> float:
        """The mean loss."""
        return self.rows.gradient(self.objective, weights, self.inverse)[0] / self.rows.weight


def is_curved(objective: Any) -> bool:
    """Whether the loss is smooth, and of numbers curved everywhere.

    Huber's loss is a straight line beyond its delta, which may be a small part of the spread of the targets. Then the
    steepest curvature tells nothing of how far to go, and few rows have any.
    """
    is_straight = objective.task == "regression" and objective.loss.lipschitz < np.inf
    return bool(np.isfinite(smoothness(objective))) and not is_straight


def suits(objective: Any) -> bool:
    """Whether the loss is curved, and of a size of which neither weights nor sums of squares overflow or vanish."""
    has_size = 1 / LARGEST_UNIT < unit_of_margins(objective) < LARGEST_UNIT
    return is_curved(objective) and has_size and size_of_margins(objective) < LARGEST_MARGIN


def stopped(rows: BatchRows, held: BatchRows, objective: Any, start: np.ndarray) -> Stopped:
    """Follow the path until the loss on held-out rows no longer falls.

    Parameters
    ----------
    rows, held : BatchRows
        Rows that are learned, and rows that are not.
    objective : objective
    start : (d, K) array
        Weights per unit of the columns as they are.
    """
    with threads.one_for_products():  # those of whole points too: several threads would sum them in parts
        return _stopped(rows, held, objective, start)


def _stopped(rows: BatchRows, held: BatchRows, objective: Any, start: np.ndarray) -> Stopped:
    problem, limits = Problem.of(rows, objective), rows.limits(objective)
    weights = _better_start(problem, start)
    loss = held.loss(objective, weights, problem.inverse, limits)
    best = Stopped([], weights, inverses(problem.inverse), loss)
    losses: list[float] = []
    stages: list[Stage] = []
    left = max(int(MOST_WORK / rows.work), FEWEST_ITERATIONS)
    for ridge in RIDGES:
        most = min(MOST_ITERATIONS, left)
        at, here, lowest = 0, weights, np.inf
        for number, point in enumerate(islice(problem.iterates(weights, ridge), most), start=1):
            left -= 1
            of_held = held.loss(objective, point, problem.inverse, limits)
            if ITERATION.improves(of_held, lowest):
                lowest, at, here = of_held, number, point
            if number - at >= ITERATION.passes:
                break
        if lowest < best.loss or stages:  # else it leads away from the start, and a smaller ridge may not
            losses.append(lowest)
            stages.append(Stage(ridge, at))
            weights = here
        if lowest < best.loss:
            best = Stopped(list(stages), weights, inverses(problem.inverse), lowest)
        if at == 0 or left <= 0 or RIDGE.is_over(losses):
            break
    return best


def followed(rows: BatchRows, objective: Any, start: np.ndarray, stages: list[Stage]) -> tuple[np.ndarray, np.ndarray]:
    """Weights (d, K) and units (d,) after so many iterations on each ridge; parameters as of :func:`stopped`."""
    problem = Problem.of(rows, objective)
    with threads.one_for_products():
        weights = _better_start(problem, start)
        for ridge, iterations in stages:
            *_, weights = [weights, *islice(problem.iterates(weights, ridge), iterations)]
    return weights, inverses(problem.inverse)


def _better_start(problem: Problem, start: np.ndarray) -> np.ndarray:
    """The weights to begin with, or 0 where the loss of these is less."""
    given = start * inverses(problem.inverse)[:, None]
    nothing = np.zeros_like(given)
    return given if problem.value(given) < problem.value(nothing) else nothing
