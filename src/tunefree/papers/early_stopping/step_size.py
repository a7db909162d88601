"""The first step of the subgradient method, from the conditions of the theorems."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree.papers.early_stopping.stopping_times import gradient_bound, largest_step
from tunefree.papers.growth import growth
from tunefree.papers.subgradient import Problem, descend, respond, steps_of

TRIAL, RUNGS = 20, 6  # iterations with each of so many steps, where steps are tried


def step_size(problem: Problem, loss: Any, theta: float, rule: str, bound: float = 1.0) -> float:
    """eta_1 from the conditions of the theorems.

    Parameters
    ----------
    problem : Problem
    loss : loss
        Of one output.
    theta : float
    rule : {"theory", "auto"}
        ``"theory"`` takes ``largest_step`` of :mod:`.stopping_times`, with kappa measured on the rows.
        ``"auto"`` satisfies the assumptions of the proofs on the empirical error: steps are at most one over its
        smoothness (Lemma 20), or eta_1^2 times the squared norm of its subgradients is at most
        (1 - theta) / 2 (Lemma 15).
        Both follow from the largest eigenvalue of the rows' second moments, which is often much smaller than kappa^2.
        It leaves out the condition on |V|_0, which only normalises a constant. For losses that are not smooth this
        bounds subgradients that hardly occur, so larger steps are tried, four times as large each, for as long as a few
        iterations of them lower the empirical error further.
    bound : float, default 1
        Largest absolute target.
    """
    slopes = growth(loss, bound)
    if slopes.power == math.inf:
        raise ValueError(f"no theorem gives a step for the {type(loss).__name__} loss: pass eta as a number")
    if rule == "theory":
        kappa = math.sqrt(problem.squares.max())
        return largest_step(loss, theta, kappa, bound, problem.n_outputs, problem.objective.is_softmax)
    eigenvalue = largest_eigenvalue(problem)
    if not eigenvalue > 0.0:
        return 1.0  # all rows are 0: nothing moves
    smooth = problem.objective.smoothness
    if smooth < math.inf:
        return 1.0 / (smooth * eigenvalue)
    kappa = math.sqrt(eigenvalue)
    steep = slopes.constant * kappa if slopes.power == 0.0 else gradient_bound(slopes, kappa)
    return _largest_that_pays(problem, theta, math.sqrt(0.5 * (1.0 - theta)) / (math.sqrt(problem.n_outputs) * steep))


def _largest_that_pays(problem: Problem, theta: float, eta: float) -> float:
    """The step, or 4, 16, ... times it, whose first iterations have the least empirical error."""
    least = math.inf
    for step in eta * 4.0 ** np.arange(RUNGS):
        try:
            records = descend(problem, steps_of(float(step), theta, TRIAL)).records
        except ValueError:  # it left the range of numbers
            break
        error = float(records["training_loss"][TRIAL // 2 :].mean())
        if error >= least:
            break
        least, eta = error, float(step)
    return eta


def largest_eigenvalue(problem: Problem, products: int = 12) -> float:
    """An estimate of the largest eigenvalue of f -> sum_j weight_j f(x_j) K_{x_j}, by the power method, plus a tenth.

    Times the smoothness of the loss it is the smoothness of the empirical error, which the theorems bound by kappa^2.
    The start is a function of the rows and their targets: power steps do not depend on how equal rows are written down.
    """
    learned, largest = problem.learned, 0.0
    slopes, _ = respond(problem.objective, learned.y, np.zeros((len(learned.y), problem.n_outputs)))
    roots = np.sqrt(learned.weight)[:, None]
    vector = roots * (1.0 + slopes[:, -1:])
    for _ in range(products):
        length = np.linalg.norm(vector)
        if not length > 0.0:
            break
        vector /= length
        image = learned.matrix @ problem.gradient(roots * vector)
        largest = max(largest, float((roots * vector * image).sum()))
        vector = roots * image
    return 1.1 * largest
