"""What the subgradient method minimises: rows, a loss and a space, and the schedule of its steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tunefree.losses.objectives import chosen


class Rows(NamedTuple):
    """Targets of rows, and their weights."""

    y: np.ndarray  # (n,) float64: classes, -1 and +1, or numbers
    weight: np.ndarray  # (n,) of sum 1 (or no rows at all)


class Problem(NamedTuple):
    """What is minimised, and what is watched."""

    space: Any  # a Space
    objective: Any
    n_outputs: int
    errors: Callable[[np.ndarray, np.ndarray], np.ndarray]
    learned: Rows
    held: Rows
    watched: bool = True  # whether margins of rows held out are computed


class Schedule(NamedTuple):
    """Steps eta t^-theta, and the order of rows."""

    eta: float
    theta: float
    order: str = "batch"  # or "cyclic", "shuffled": one row a step
    seed: int = 0

    def steps(self, first: int, count: int) -> np.ndarray:
        """eta_t for t = first, ..., first + count - 1."""
        return self.eta * np.arange(first, first + count, dtype=np.float64) ** -self.theta

    def first_step(self, t: int, n_rows: int) -> int:
        """The number of the first step after f_t; with single rows, steps are numbered through all passes."""
        return t if self.order == "batch" else (t - 1) * n_rows + 1


def wrong_classes(y: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """1 (n,) where the largest margin is another class's, or the one margin has the wrong sign; else 0."""
    codes = y > 0 if margins.shape[1] == 1 else y
    return (chosen(margins) != codes).astype(np.float64)


def absolute_errors(y: np.ndarray, margins: np.ndarray) -> np.ndarray:
    """|f(x) - y| (n,)."""
    return np.abs(margins[:, 0] - y)
