"""Runs of the subgradient method, iteration after iteration, with a record of each."""

from __future__ import annotations

import math

import numpy as np

from tunefree.core.numbers import finite
from tunefree.core.threads import one_for_products
from tunefree.losses.objectives import measured
from tunefree.papers.early_stopping.path import Path
from tunefree.papers.early_stopping.problem import Problem, Rows, Schedule
from tunefree.papers.early_stopping.subgradient import Evaluation, Iterate, evaluate, next_iterate


class Descent(Path):
    """A run of the method, which can be continued; earlier iterates can be read.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule
    budget : int
        Bytes for iterates. While they fit, all are kept; later every second one, every fourth one and so on, and those
        between are computed anew from the last one kept: the same steps on the same numbers, so the same bits.
    """

    def __init__(self, problem: Problem, schedule: Schedule, budget: int) -> None:
        super().__init__(problem, schedule, {}, 1, [])
        self.budget, self.is_over = budget, False
        zeros = np.zeros((problem.space.n_coefficients, problem.n_outputs))
        self.iterate = Iterate(1, zeros, zeros, 0.0)
        self._seen = np.zeros((len(problem.learned.y), problem.n_outputs))  # margins of `sums`
        self._seen_held = np.zeros((len(problem.held.y), problem.n_outputs))
        self._evaluation: Evaluation | None = None

    def run(self, iterations: int) -> None:
        """Go on until f_t is recorded for t = 1 .. iterations."""
        with one_for_products():
            while len(self.records) < iterations:
                if self._evaluation is not None:
                    self._advance(self._evaluation)
                self._evaluation = evaluate(self.problem, self.iterate.coefficients)
                self._record(self._evaluation)
                self._keep(self.iterate)

    def freeze(self, going_on: bool) -> None:
        """Unless it is ``going_on``, free what only a continuation needs.

        That is the tiles of a Gram matrix, and the rows where all iterates are kept.
        """
        if going_on:
            return
        self.is_over, self._evaluation = True, None
        self.problem.space.release()
        if self.stride == 1:
            self.problem = self.problem._replace(space=None)

    def _advance(self, evaluation: Evaluation) -> None:
        step, t = self._step_at(self.iterate.t), self.iterate.t
        with np.errstate(over="ignore", invalid="ignore"):
            self.iterate = next_iterate(self.problem, self.schedule, self.iterate, evaluation)
        if not np.isfinite(self.iterate.coefficients).all():
            raise ValueError(f"the iterates leave the range of numbers at iteration {t}: pass a smaller eta, or 'auto'")
        if self.schedule.order == "batch":
            self._seen += step * evaluation.margins
            self._seen_held += step * evaluation.held
        else:
            self._seen, self._seen_held = self._margins(self.iterate.sums)

    def _margins(self, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        margins = np.empty((len(self.problem.learned.y), self.problem.n_outputs))

        def read(place: slice, of_place: np.ndarray) -> np.ndarray:
            margins[place] = of_place
            return np.zeros_like(of_place)

        self.problem.space.sweep(coefficients, read)
        return margins, self.problem.space.held(coefficients)

    def _record(self, evaluation: Evaluation) -> None:
        t, learned, held = self.iterate.t, self.problem.learned, self.problem.held
        step = self._step_at(t)
        share = 1.0 / (self.iterate.mass + step)
        with np.errstate(over="ignore", invalid="ignore"):
            means = (self._seen + step * evaluation.margins) * share, (self._seen_held + step * evaluation.held) * share
            inner = float((evaluation.slopes * evaluation.margins).sum())
            record = (
                t,
                step,
                _mean(learned.weight, evaluation.losses),
                _mean(learned.weight, self.problem.errors(learned.y, evaluation.margins)),
                *self._loss_and_error(held, evaluation.held),
                finite(self.problem.space.norm(self.iterate.coefficients, evaluation.margins)),
                finite(inner),
                *self._loss_and_error(learned, means[0]),
                *self._loss_and_error(held, means[1]),
            )
        self.records.append(record)

    def _loss_and_error(self, rows: Rows, margins: np.ndarray) -> tuple[float, float]:
        """Mean loss and error of margins; nan without rows."""
        if not len(rows.y):
            return math.nan, math.nan
        losses = measured(self.problem.objective, rows.y, margins)
        return _mean(rows.weight, losses), _mean(rows.weight, self.problem.errors(rows.y, margins))

    def _keep(self, iterate: Iterate) -> None:
        if (iterate.t - 1) % self.stride:
            return
        self.kept[iterate.t] = iterate
        while len(self.kept) > 1 and len(self.kept) * 2 * iterate.coefficients.nbytes > self.budget:
            self.stride *= 2
            self.kept = {t: kept for t, kept in self.kept.items() if (t - 1) % self.stride == 0}


def _mean(weight: np.ndarray, numbers: np.ndarray) -> float:
    return finite(float((weight * numbers).sum()))
