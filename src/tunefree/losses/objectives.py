"""An objective: a function of K margins of a row and its target, which is minimised.

Classes have one margin for two of them (targets -1 and +1) and else a margin each (targets 0 .. K - 1): with the
log-loss of their softmax, or with a loss of single margins, of which each class is held against all others. Numbers
have one margin, see :mod:`tunefree.losses.numbers`.

Learners receive slopes divided by the loss's Lipschitz constant. Where there is none, slopes are clipped at the largest
absolute one of earlier rounds, which adds to the regret at most the largest slope times the range of the margins, once
(Cutkosky 2019, Artificial constraints and hints).
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from tunefree.compiled.functions import Compiled
from tunefree.core.numbers import LARGEST
from tunefree.core.part import LEARNED, Part, argument, number, scratch
from tunefree.core.schema import SIZE, Number
from tunefree.losses import number_of
from tunefree.losses.contract import has_log_link
from tunefree.losses.functions import Loop
from tunefree.losses.numbers import (
    CENTRE,
    GRAIN,
    IS_LOG,
    LIPSCHITZ,
    MARGIN,
    MASS,
    N_NUMBERS,
    SOFTMAX,
    SPREAD,
    STEEPEST,
    UNIT,
)
from tunefree.losses.rates import logarithm_of_few


class _Entry(number):
    """A number that an objective knows, which lies in its array."""

    def __init__(self, place: int, kind: Number = SIZE) -> None:
        super().__init__(LEARNED, kind)
        self.place = place

    def __get__(self, objective: Any, owner: type) -> Any:
        return self if objective is None else objective.numbers.item(self.place)

    def __set__(self, objective: Any, value: float) -> None:
        objective.numbers[self.place] = value


def _codes_of(objective: Objective) -> np.ndarray:
    loss = SOFTMAX if objective.loss is None else number_of(objective.loss)
    return np.array([objective.task == "regression", loss])


def _numbers_of(objective: Objective) -> np.ndarray:
    """The numbers before the first row."""
    loss = objective.loss
    numbers = np.zeros(N_NUMBERS + len(loss or ()))
    numbers[LIPSCHITZ] = 1.0
    if objective.task == "classification":
        numbers[MARGIN] = 1.0
    if loss is not None:
        numbers[LIPSCHITZ], numbers[IS_LOG], numbers[N_NUMBERS:] = loss.lipschitz, has_log_link(loss), loss
    return numbers


class Objective(Part):
    """A loss of the margins of a row, and the statistics of the targets so far that it needs.

    Compiled loops take the arrays ``codes`` and ``numbers``, and change the latter in place. The loss is that of a
    single margin, or of the number that it stands for; without one it is the log-loss of the softmax of margins of
    classes.

    >>> from tunefree.losses import Square
    >>> objective = Objective("regression", Square())
    >>> objective.unit, objective.centre = 2.0, 1.5
    >>> objective.predictions_of(np.array([[0.0], [1.0]]))
    array([[3.],
           [5.]])
    """

    task, loss = argument(), argument()
    codes, numbers = scratch(_codes_of), scratch(_numbers_of)
    steepest = _Entry(STEEPEST)  # absolute slope so far, over the loss's Lipschitz constant or else in grains
    grain = _Entry(GRAIN)  # the power of two next below the size of the first slope that is not 0; 0 before it
    unit = _Entry(UNIT)  # the power of two next below the size of the first target that is not 0; 0 before it
    centre = _Entry(CENTRE, Number())  # running mean of the targets, in units; an outlier counts as a near one
    spread = _Entry(SPREAD)  # of |target - centre| likewise; with a logarithmic link the largest one
    margin = _Entry(MARGIN)  # a power of two that no spread so far has exceeded; 1 of classes
    mass = _Entry(MASS)  # sum of the sample weights

    def __init__(self, task: str = "classification", loss: Any = None) -> None:
        self.task, self.loss = task, loss
        self.codes, self.numbers = _codes_of(self), _numbers_of(self)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes and numbers, as compiled loops take them."""
        return self.codes, self.numbers

    @property
    def is_softmax(self) -> bool:
        """Whether classes have the log-loss of the softmax of all margins."""
        return self.loss is None

    @property
    def smoothness(self) -> float:
        """The Lipschitz constant of the gradient in the Euclidean norm, of each slope or of the softmax."""
        return 0.5 if self.loss is None else float(self.loss.smoothness)

    def predictions_of(self, margins: np.ndarray) -> np.ndarray:
        """Predictions (n, K) from margins (n, K); for classes they are the margins."""
        if self.task == "classification":
            return margins
        unit = self.unit
        if unit == 0.0 and has_log_link(self.loss):
            return np.full(margins.shape, logarithm_of_few(0.0, self.mass))
        with np.errstate(over="ignore"):
            return np.clip((self.centre + margins) * unit, -LARGEST, LARGEST)


def chosen(margins: np.ndarray) -> np.ndarray:
    """The class with the largest margin; with one margin, class 1 where it is positive.

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


def measured(objective: Objective, y: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    """The loss (n,) of each prediction (n, K).

    >>> from tunefree.losses import Hinge
    >>> measured(Objective("classification", Hinge()), np.array([1.0, -1.0]), np.array([[0.5], [0.5]]))
    array([0.5, 1.5])
    """
    losses = np.empty(len(predictions))
    y, predictions = np.ascontiguousarray(y, np.float64), np.ascontiguousarray(predictions, np.float64)
    _measure(*objective.arrays, y, predictions, losses)
    return losses
