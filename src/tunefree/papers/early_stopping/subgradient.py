"""The subgradient method: every iterate is a predictor, and the number of iterations is the regularization.

Lin, Rosasco, Zhou: Iterative regularization for learning with convex loss functions (JMLR 17, 2016):

    f_1 = 0,   f_{t+1} = f_t - eta_t (1/m) sum_j V'_-(y_j, f_t(x_j)) K_{x_j},   eta_t = eta_1 t^-theta         (1)
    a_T = sum_t eta_t f_t / sum_t eta_t                                                                       (2)
    b_T = the iterate f_t, t <= T, with the least empirical error                                             (3)

and Remark 3, one row a step, in order or shuffled anew for each pass; there iterations are passes, and steps are
numbered through. Rows of weight w count w times; K outputs are K functions with a loss of them all.

Here is a single iteration. :mod:`tunefree.papers.early_stopping.descent` repeats it and records the path,
:mod:`.path` looks back. What is recorded of f_t is exact for the coefficients kept, so the path
can be read, continued and taken up anywhere: margins are never carried along, but computed from the coefficients each
time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree.papers.early_stopping.empirical import respond, visit
from tunefree.papers.early_stopping.problem import Problem, Schedule

AT_A_TIME = 256  # rows of which a pass of single steps takes the inner products together


class Iterate(NamedTuple):
    """f_t, and what its average with the iterates before it needs."""

    t: int
    coefficients: np.ndarray  # (p, K) of f_t
    sums: np.ndarray  # (p, K) sum of eta_s f_s over the steps before
    mass: float  # sum of eta_s over the steps before


class Evaluation(NamedTuple):
    """f_t on all rows: its margins, losses and subgradient."""

    margins: np.ndarray  # (n, K)
    held: np.ndarray  # (v, K)
    slopes: np.ndarray  # (n, K) left derivatives times weights
    losses: np.ndarray  # (n,)
    gradient: np.ndarray  # (p, K) coefficients of the subgradient


def evaluate(problem: Problem, coefficients: np.ndarray, held: bool = True) -> Evaluation:
    """Evaluate f on the rows that are learned, and on those held out if they are asked for and watched."""
    space, objective, rows = problem.space, problem.objective, problem.learned
    margins = np.empty((len(rows.y), problem.n_outputs))
    slopes, losses = np.empty_like(margins), np.empty(len(rows.y))

    def answer(place: slice, of_place: np.ndarray) -> np.ndarray:
        margins[place] = of_place
        respond(objective, rows.y[place], rows.weight[place], margins[place], slopes[place], losses[place])
        return slopes[place]

    gradient = space.sweep(coefficients, answer)
    beside = space.held(coefficients) if held and problem.watched else margins[:0]
    return Evaluation(margins, beside, slopes, losses, gradient)


def next_iterate(problem: Problem, schedule: Schedule, iterate: Iterate, evaluation: Evaluation) -> Iterate:
    """f_{t+1}, from f_t and its evaluation."""
    if schedule.order != "batch":
        return single_steps(problem, schedule, iterate)
    step = float(schedule.steps(iterate.t, 1)[0])
    coefficients = iterate.coefficients - step * evaluation.gradient  # (1)
    return Iterate(iterate.t + 1, coefficients, iterate.sums + step * iterate.coefficients, iterate.mass + step)


def single_steps(problem: Problem, schedule: Schedule, iterate: Iterate) -> Iterate:
    """A pass with one row a step (Remark 3), some rows' inner products at a time: the same numbers as one by one."""
    space, objective, rows = problem.space, problem.objective, problem.learned
    n = len(rows.y)
    order = np.arange(n)
    if schedule.order == "shuffled":
        order = np.random.default_rng([schedule.seed, iterate.t]).permutation(n)
    etas = schedule.steps(schedule.first_step(iterate.t, n), n)
    coefficients, sums = iterate.coefficients.copy(), iterate.sums.copy()
    for start in range(0, n, AT_A_TIME):
        some, eta = order[start : start + AT_A_TIME], etas[start : start + AT_A_TIME]
        margins, inner = space.some(some, coefficients)
        moved = np.empty_like(margins)
        visit(objective, rows.y[some], n * rows.weight[some], eta, inner, margins, moved)
        moved *= eta[:, None]
        later = eta.sum() - np.cumsum(eta)  # of the steps for which a row's move is already in f
        sums += eta.sum() * coefficients
        space.pull(some, moved * later[:, None], sums)
        space.pull(some, moved, coefficients)
    return Iterate(iterate.t + 1, coefficients, sums, iterate.mass + float(etas.sum()))
