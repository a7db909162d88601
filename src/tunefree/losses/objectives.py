"""Objectives: what is minimised over K margins of a row, for one target.

An objective is a NamedTuple. It knows what the target is (a label, a class, a number), and holds what it has to know of
the targets so far. Learners receive slopes divided by the loss's Lipschitz constant. Where there is none, slopes are
clipped at the largest absolute one of earlier rounds, which adds to the regret at most the largest slope times the
range of the margins, once (Cutkosky 2019, Artificial constraints and hints).
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from tunefree.compiled.functions import Compiled
from tunefree.core.numbers import CEILING
from tunefree.losses.kinds import arrays_of
from tunefree.losses.labels import Binary as Binary
from tunefree.losses.labels import OneAgainstAll as OneAgainstAll
from tunefree.losses.loops import Loop
from tunefree.losses.multinomial import Multinomial as Multinomial
from tunefree.losses.regression import Regression as Regression
from tunefree.losses.regression import regression as regression


def with_slopes_as_they_come(objective: Any) -> Any:
    """The objective for a learner that wants slopes of classes as they come, not clipped at the steepest so far.

    The bound of slopes is then the ceiling times the weight where the loss has no Lipschitz constant.

    Examples
    --------
    >>> from tunefree.losses import Square
    >>> with_slopes_as_they_come(Binary(Square(), 0.0)).steepest
    1e+150
    """
    if objective.task == "regression":
        return objective
    return objective._replace(steepest=CEILING)


def chosen(margins: np.ndarray) -> np.ndarray:
    """The class with the largest margin; with one margin, class 1 where it is positive.

    Examples
    --------
    >>> chosen(np.array([[0.0], [0.5]])), chosen(np.array([[1.0, 3.0, 2.0]]))
    (array([0, 1]), array([1]))
    """
    return (margins[:, 0] > 0).astype(np.int64) if margins.shape[1] == 1 else margins.argmax(axis=1)


@Loop
def _measure(functions):
    loss_at = functions.loss_at

    def measure(
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        y: Annotated[np.ndarray, "float64[rows]"],
        predictions: Annotated[np.ndarray, "float64[rows, outputs]"],
        losses: Annotated[np.ndarray, "float64[rows]"],
    ) -> None:
        for i in range(len(y)):
            losses[i] = loss_at(codes, numbers, y[i], predictions.shape[1], predictions[i])

    return measure


def all_compiled() -> list[Compiled]:
    """The compiled function that measures losses."""
    return [_measure.compiled()]


def measured(objective: Any, y: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    """The loss (n,) of each prediction (n, K).

    Examples
    --------
    >>> from tunefree.losses import Hinge
    >>> measured(Binary(Hinge(), 0.0), np.array([1.0, -1.0]), np.array([[0.5], [0.5]]))
    array([0.5, 1.5])
    """
    losses = np.empty(len(predictions))
    of_rows = np.ascontiguousarray(y, np.float64), np.ascontiguousarray(predictions, np.float64)
    _measure(*arrays_of(objective), *of_rows, losses)
    return losses
