"""What a situation is: rows to learn and rows to predict, drawn from a truth, and how good is good enough.

Situations are numbered in the order of ``catalogue.py``. Those of even number are the chosen half, on which constants
of the package may be chosen. The others are measured once, when nothing changes any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

TEST = 10_000  # rows to predict
FEW = 300  # rows, below which the bar is wider
BAR, BAR_OF_FEW, BAR_OF_TELLING = 1.05, 1.10, 1.02


class Rows(NamedTuple):
    """Rows and what is said about them."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None

    def take(self, rows: Any) -> Rows:
        """These rows, in this order."""
        weight, groups = (None if part is None else part[rows] for part in (self.weight, self.groups))
        return Rows(self.X[rows], self.y[rows], weight, groups)


class Case(NamedTuple):
    """One draw of a situation."""

    train: Rows
    test: Rows
    loss: str = "log"  # "log", "square" (the root of its mean) or "absolute"
    plain: Rows | None = None  # the same said in the plainest way: what is learned from it is the reference
    class_weight: str | None = None

    @property
    def bar(self) -> float:
        """The largest ratio of losses that is good enough."""
        if self.plain is not None:
            return BAR_OF_TELLING
        return BAR_OF_FEW if len(self.train.y) < FEW else BAR


class Situation(NamedTuple):
    """A function from seeds to cases."""

    name: str
    why: str
    draw: Callable[[int], Case]
    seeds: int = 4


def cut(X: np.ndarray, y: np.ndarray, n: int, loss: str = "log") -> Case:
    """The first n rows to learn, the others to predict."""
    return Case(Rows(X[:n], y[:n]), Rows(X[n:], y[n:]), loss)


def labels(margins: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """0 or 1 with these log-odds."""
    return (rng.random(len(margins)) < expit(margins)).astype(np.int64)


def mixed_margins(X: np.ndarray) -> np.ndarray:
    """Something linear, a step, a product and a curve, of the first five columns."""
    return X[:, 0] - 0.7 * X[:, 1] + 1.5 * (X[:, 2] > 0.3) + X[:, 3] * X[:, 4] + np.sin(2 * X[:, 1]) - 0.7


def mixed(seed: int, n: int = 3000, n_test: int = TEST) -> Case:
    """Two classes, eight columns of which five matter in all the usual ways."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + n_test, 8))
    return cut(X, labels(mixed_margins(X), rng), n)


def mixed_numbers(seed: int, n: int = 3000, n_test: int = TEST) -> Case:
    """Numbers with the truth of :func:`mixed`, and noise of half its deviation."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + n_test, 8))
    return cut(X, mixed_margins(X) + rng.normal(size=len(X)), n, "square")


def linear(seed: int, n: int, n_columns: int, loss: str = "log", n_true: int | None = None) -> Case:
    """Two classes or numbers with a linear truth of the first columns, or of all."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + TEST, n_columns))
    n_true = n_columns if n_true is None else n_true
    truth = X[:, :n_true] @ rng.normal(size=n_true) * 2 / np.sqrt(n_true)
    return cut(X, labels(truth, rng) if loss == "log" else truth + rng.normal(size=len(X)), n, loss)
