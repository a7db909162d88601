"""An objective: the function of the K margins of a row and its target that is minimised.

Two classes have one margin (targets -1 and +1). More classes have one margin each (targets 0 .. K - 1), with the
log-loss of the softmax, or with a loss of single margins, one class against all others. Regression has one margin, see
:mod:`tunefree.losses.numbers`.

Learners receive slopes divided by the loss's Lipschitz constant. Without such a constant, slopes are clipped at the
largest absolute slope of earlier rounds, which adds at most the largest slope times the range of the margins to the
regret (Cutkosky 2019, Artificial constraints and hints).
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
    """A field of an objective that is an element of its array ``numbers``."""

    def __init__(self, index: int, kind: Number = SIZE) -> None:
        super().__init__(LEARNED, kind)
        self.index = index

    def __get__(self, objective: Any, owner: type) -> Any:
        return self if objective is None else objective.numbers.item(self.index)

    def __set__(self, objective: Any, value: float) -> None:
        objective.numbers[self.index] = value


def _codes_of(objective: Objective) -> np.ndarray:
    loss = SOFTMAX if objective.loss is None else number_of(objective.loss)
    return np.array([objective.task == "regression", loss])


def _numbers_of(objective: Objective) -> np.ndarray:
    """The array ``numbers`` before the first row."""
    loss = objective.loss
    numbers = np.zeros(N_NUMBERS + len(loss or ()))
    numbers[LIPSCHITZ] = 1.0
    if objective.task == "classification":
        numbers[MARGIN] = 1.0
    if loss is not None:
        numbers[LIPSCHITZ], numbers[IS_LOG], numbers[N_NUMBERS:] = loss.lipschitz, has_log_link(loss), loss
    return numbers


class Objective(Part):
    """A loss of the margins of a row, and the statistics of the targets that it needs.

    Compiled loops take the arrays ``codes`` and ``numbers``, and change the latter in place. ``loss`` is a loss of a
    single margin, or of the number that it predicts; None is the log-loss of the softmax of the margins of classes.

    >>> from tunefree.losses import Square
    >>> objective = Objective("regression", Square())
    >>> objective.unit, objective.centre = 2.0, 1.5
    >>> objective.predictions_of(np.array([[0.0], [1.0]]))
    array([[3.],
           [5.]])
    """

    task, loss = argument(), argument()
    codes, numbers = scratch(_codes_of), scratch(_numbers_of)
    steepest = _Entry(STEEPEST)  # largest absolute slope, in Lipschitz constants of the loss, or else in grains
    grain = _Entry(GRAIN)  # the power of two next below the first nonzero absolute slope; 0 before it
    unit = _Entry(UNIT)  # the power of two next below the first nonzero absolute target; 0 before it
    centre = _Entry(CENTRE, Number())  # running mean of the targets, in units, with outliers clipped
    spread = _Entry(SPREAD)  # running mean of |target - centre|; with a logarithmic link the maximum
    margin = _Entry(MARGIN)  # power of two, at least each spread so far; 1 for classes
    mass = _Entry(MASS)  # sum of the sample weights

    def __init__(self, task: str = "classification", loss: Any = None) -> None:
        self.task, self.loss = task, loss
        self.codes, self.numbers = _codes_of(self), _numbers_of(self)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """The arguments ``codes`` and ``numbers`` of compiled loops."""
        return self.codes, self.numbers

    @property
    def is_softmax(self) -> bool:
        """Whether the loss is the log-loss of the softmax of all margins."""
        return self.loss is None

    @property
    def smoothness(self) -> float:
        """The Lipschitz constant of each slope, or of the gradient of the softmax in the Euclidean norm."""
        return 0.5 if self.loss is None else float(self.loss.smoothness)

    def predictions_of(self, margins: np.ndarray) -> np.ndarray:
        """Predictions (n, K) from margins (n, K); for classes, the margins themselves."""
        if self.task == "classification":
            return margins
        unit = self.unit
        if unit == 0.0 and has_log_link(self.loss):
            return np.full(margins.shape, logarithm_of_few(0.0, self.mass))
        with np.errstate(over="ignore"):
            return np.clip((self.centre + margins) * unit, -LARGEST, LARGEST)


def chosen(margins: np.ndarray) -> np.ndarray:
    """The class with the largest margin; with one margin, class 1 if it is positive.

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
