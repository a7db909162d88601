"""Left derivatives of losses, which the subgradient method takes: they differ from slopes at kinks.

A loss from outside with kinks may have a method ``left_slope`` like ``slope``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tunefree.core.numbers import finite, raised
from tunefree.losses.classification import Hinge
from tunefree.losses.regression import Absolute, Power, Quantile


def hinge_left_slope(loss, y, prediction):
    margin = y * prediction
    return -y if margin < 1.0 or (margin == 1.0 and y > 0.0) else 0.0


def absolute_left_slope(loss, y, prediction):
    return 1.0 if prediction > y else -1.0


def quantile_left_slope(loss, y, prediction):
    return 1.0 - loss.tau if prediction > y else -loss.tau


def power_left_slope(loss, y, prediction):
    error = finite(abs(prediction - y))
    above = raised(error, loss.power) - loss.epsilon
    if loss.epsilon > 0.0 and (above < 0.0 or (above == 0.0 and prediction > y)):
        return 0.0
    side = 1.0 if prediction > y else -1.0
    return side * finite(loss.power * raised(error, loss.power - 1.0))


WITH_KINKS: dict[type, Callable[..., float]] = {
    Hinge: hinge_left_slope,
    Absolute: absolute_left_slope,
    Quantile: quantile_left_slope,
    Power: power_left_slope,
}


def left_slope_of(cls: Any) -> Callable[..., float]:
    """Return the left derivative of a class of losses."""
    function: Callable[..., float] = getattr(cls, "left_slope", WITH_KINKS.get(cls, cls.slope))
    return function


def left_slope(loss: Any, y: float, prediction: float) -> float:
    """Return the left derivative of a loss in the prediction.

    >>> from tunefree.losses import Logistic
    >>> left_slope(Absolute(), 1.0, 1.0), Absolute().slope(1.0, 1.0), left_slope(Logistic(), 1.0, 0.0)
    (-1.0, 0.0, -0.5)
    """
    return left_slope_of(type(loss))(loss, y, prediction)
