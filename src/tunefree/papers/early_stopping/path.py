"""The path of the subgradient method: what was recorded of its iterates, which are computed anew where not kept."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.threads import one_for_products
from tunefree.papers.early_stopping.problem import Problem, Rows, Schedule
from tunefree.papers.early_stopping.subgradient import Iterate, evaluate, next_iterate

PATH = np.dtype(
    [("iteration", np.int64)]
    + [
        (name, np.float64)
        for name in (
            "step",  # eta_t; of the pass's first step where rows are taken one by one
            "training_loss",
            "training_error",
            "validation_loss",
            "validation_error",
            "norm",
            "inner",  # <subgradient of the empirical error in f_t, f_t>
            "average_training_loss",
            "average_training_error",
            "average_validation_loss",
            "average_validation_error",
        )
    ]
)


class Path:
    """A run of the method that is over; all its iterates can be read.

    Parameters
    ----------
    problem : Problem
        Its space is None, and its rows are none, where they are not needed: where all iterates are kept.
    schedule : Schedule
    kept : dict of Iterate
        By their numbers.
    stride : int
        Every so many iterates one is kept.
    records : list
        One for each iterate, as in ``PATH``.
    """

    is_over = True

    def __init__(
        self,
        problem: Problem,
        schedule: Schedule,
        kept: dict[int, Iterate],
        stride: int,
        records: list[tuple[Any, ...]],
    ) -> None:
        self.problem, self.schedule = problem, schedule
        self.kept, self.stride, self.records = kept, stride, records

    @property
    def path(self) -> np.ndarray:
        """What was recorded of f_1, f_2, ..., a record each (see ``PATH``)."""
        return np.array(self.records, PATH)

    @property
    def rows(self) -> Any:
        """The rows that iterates between those kept are computed anew from; None where all are kept."""
        return self.problem.space.rows if self.stride > 1 else None

    def last(self, t: int) -> np.ndarray:
        """Coefficients (p, K) of f_t."""
        return self._at(t).coefficients

    def average(self, t: int) -> np.ndarray:
        """Coefficients (p, K) of a_t."""
        iterate = self._at(t)
        step = self._step_at(t)
        return (iterate.sums + step * iterate.coefficients) / (iterate.mass + step)

    def best(self, t: int) -> np.ndarray:
        """Coefficients (p, K) of b_t."""
        self._check(t)
        return self.last(int(self.path["training_loss"][:t].argmin()) + 1)

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same path, with a problem that has the rows."""
        kept = [self.kept[t] for t in sorted(self.kept)]
        arrays = {name: np.array([getattr(iterate, name) for iterate in kept]) for name in Iterate._fields}
        path = self.path
        arrays |= {f"path.{name}": path[name] for name in PATH.names or ()}
        needed = slice(None if self.stride > 1 or self.schedule.order != "batch" else 0)
        arrays |= {"y": self.problem.learned.y[needed], "weight": self.problem.learned.weight[needed]}
        return arrays, {"schedule": self.schedule._asdict(), "stride": self.stride}

    @staticmethod
    def restore(problem: Problem, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Path:
        """The path that :meth:`save_state` wrote down; ``problem`` gets the targets that it had."""
        columns = [arrays[f"path.{name}"].tolist() for name in PATH.names or ()]
        numbers = zip(arrays["t"].tolist(), arrays["mass"].tolist(), strict=True)
        kept = {
            t: Iterate(t, arrays["coefficients"][i], arrays["sums"][i], mass) for i, (t, mass) in enumerate(numbers)
        }
        problem = problem._replace(learned=Rows(arrays["y"], arrays["weight"]), watched=False)
        return Path(
            problem, Schedule(**header["schedule"]), kept, int(header["stride"]), list(zip(*columns, strict=True))
        )

    def _check(self, t: int) -> None:
        if not 1 <= t <= len(self.records):
            raise ValueError(f"there are iterates 1 to {len(self.records)}, not {t}")

    def _step_at(self, t: int) -> float:
        first = self.schedule.first_step(t, len(self.problem.learned.y))
        return float(self.schedule.steps(first, 1)[0])

    def _at(self, t: int) -> Iterate:
        self._check(t)
        iterate = self.kept[(t - 1) // self.stride * self.stride + 1]
        with one_for_products():
            while iterate.t < t:
                evaluation = evaluate(self.problem, iterate.coefficients, held=False)
                iterate = next_iterate(self.problem, self.schedule, iterate, evaluation)
        return iterate
