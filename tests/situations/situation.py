"""What a situation is: rows to learn and rows to predict, drawn from a seed, and how good is good enough.

Situations are numbered in the order of ``catalogue.py``. Those of even number are the chosen half, on which constants
of the package may be chosen. The others are measured once, when nothing changes any more.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

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


def situations(draw: Callable[..., Case], seeds: int = 4, **values: Any) -> list[Situation]:
    """A situation for each value of one parameter of a function, or one for a function of the seed alone."""
    why = inspect.getdoc(draw) or ""
    if not values:
        return [Situation(draw.__name__, why, draw, seeds)]
    ((parameter, several),) = values.items()
    return [
        Situation(f"{draw.__name__}[{'-'.join(f'{part:g}' for part in np.atleast_1d(value))}]", why, call, seeds)
        for value in several
        for call in [partial(draw, **{parameter: value})]
    ]
