"""The first step of the subgradient method, from the conditions of the theorems."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.core.threads import one_for_products
from tunefree.losses.objectives import Multinomial
from tunefree.papers.early_stopping.descent import Descent
from tunefree.papers.early_stopping.empirical import respond
from tunefree.papers.early_stopping.problem import Problem, Rows, Schedule
from tunefree.papers.early_stopping.spaces import largest_eigenvalue
from tunefree.papers.early_stopping.stopping_times import gradient_bound, largest_step

TRIAL, RUNGS = 20, 6  # iterations with each of so many steps, where steps are tried


def step_size(problem: Problem, loss: Any, theta: float, rule: str, bound: float = 1.0, order: str = "batch") -> float:
    """eta_1 from the conditions of the theorems.

    Parameters
    ----------
    problem : Problem
    loss : loss
        Of one output.
    theta : float
    rule : {"theory", "auto"}
        ``"theory"`` takes ``largest_step`` of :mod:`.stopping_times`, with kappa measured on the rows.
        ``"auto"`` asks of the empirical error what the proofs ask of it: that steps are at most one over its smoothness
        (Lemma 20), or that eta_1^2 times the squared norm of its subgradients is at most (1 - theta) / 2 (Lemma 15).
        Both follow from the largest eigenvalue of the rows' second moments, which is often much smaller than kappa^2.
        It leaves out the condition on |V|_0, which only normalises a constant. For losses that are not smooth this
        bounds subgradients that hardly occur, so larger steps are tried, four times as large each, for as long as a few
        iterations of them lower the empirical error further. Single rows take the first guess.
    bound : float, default 1
        Largest absolute target.
    order : {"batch", "cyclic", "shuffled"}, default "batch"
        With single rows, what counts is K(x, x): the mean for Lipschitz losses, the largest for others.
    """
    slopes = loss.growth(bound)
    if slopes.power == math.inf:
        raise ValueError(f"no theorem gives a step for the {type(loss).__name__} loss: pass eta as a number")
    sizes = problem.space.squared_sizes()
    if rule == "theory":
        softmax = isinstance(problem.objective, Multinomial)
        return largest_step(loss, theta, math.sqrt(sizes.max()), bound, problem.n_outputs, softmax)
    with one_for_products():
        size = _size_of_rows(problem, sizes, order, loss.lipschitz < math.inf)
    if not size > 0.0:
        return 1.0  # all rows are 0: nothing moves
    smooth = problem.objective.smoothness
    if smooth < math.inf:
        return 1.0 / (smooth * size)
    kappa = math.sqrt(size)
    steep = slopes.constant * kappa if slopes.power == 0.0 else gradient_bound(slopes, kappa)
    guess = math.sqrt(0.5 * (1.0 - theta)) / (math.sqrt(problem.n_outputs) * steep)
    return guess if order != "batch" else _largest_that_pays(problem, theta, guess)


def _largest_that_pays(problem: Problem, theta: float, eta: float) -> float:
    """The step, or 4, 16, ... times it, whose first iterations have the least empirical error."""
    unwatched = problem._replace(held=Rows(problem.held.y[:0], problem.held.weight[:0]), watched=False)
    least = math.inf
    for step in eta * 4.0 ** np.arange(RUNGS):
        trial = Descent(unwatched, Schedule(float(step), theta), 0)
        try:
            trial.run(TRIAL)
        except ValueError:  # it left the range of numbers
            break
        error = float(trial.path["training_loss"][TRIAL // 2 :].mean())
        if error >= least:
            break
        least, eta = error, float(step)
    return eta


def _size_of_rows(problem: Problem, sizes: np.ndarray, order: str, lipschitz: bool) -> float:
    weight = problem.learned.weight
    if order != "batch":
        return float((weight * sizes).sum() if lipschitz else sizes.max())
    slopes = np.empty((len(weight), problem.n_outputs))
    nothing, losses = np.zeros_like(slopes), np.empty(len(weight))
    respond(problem.objective, problem.learned.y, np.ones(len(weight)), nothing, slopes, losses)
    return largest_eigenvalue(problem.space, weight, 1.0 + slopes[:, -1])
