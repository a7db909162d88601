"""The contract of losses: functions of a target and a prediction, and the constants that theory needs.

A loss V is a NamedTuple, a :func:`loss_class`. Two of its fields are constants: ``lipschitz`` bounds the absolute
slope, ``smoothness`` is the Lipschitz constant of the slope; each is infinite if there is no such number. The other
fields are the loss's parameters. Losses are convex and at least 0. Classification losses take targets -1 and +1.

``value``, ``slope`` (a subgradient in the prediction), ``curvature`` (the second derivative; 0 where there is none, as
at kinks) and ``left_slope`` are cases in compiled loops (:mod:`tunefree.losses.functions`), and called as methods in
Python; they take one target and one prediction, and are finite for all finite arguments. Where the true number cannot
be represented (an exponential, the square of 1e200), the largest finite one stands in.
"""

from __future__ import annotations

import math
from typing import Any


class Loss:
    """Defaults of a loss, which defines ``value``, ``slope`` and ``curvature`` itself.

    >>> from tunefree.losses import Absolute, Hinge, Square, huber, poisson
    >>> Hinge().value(1.0, 0.25), Square().slope(1.0, 0.25), Square().curvature(1.0, 0.25)
    (0.75, -1.5, 2.0)
    >>> Absolute().slope(1.0, 1.0), Absolute().left_slope(1.0, 1.0)
    (0.0, -1.0)
    >>> huber(3.0).rescaled(2.0)
    (Huber(delta=1.5, lipschitz=1.5, smoothness=1.0), 4.0)
    >>> poisson().response(0.0), poisson().prediction_of(1.0), Square().response(2.0)
    (np.float64(1.0), np.float64(0.0), 2.0)
    """

    has_log_link = False  # whether predictions of numbers are logarithms of means; ``power`` is then the variance's

    def left_slope(loss: Any, y: float, prediction: float) -> Any:
        """The left derivative of the loss in the prediction: the slope, unless the loss defines it."""
        return loss.slope(y, prediction)

    def rescaled(loss, unit: float) -> tuple[Any, float]:
        """The loss V' and the factor c with V(y, p) = c V'(y / unit, p / unit)."""
        raise TypeError(f"{type(loss).__name__} is not a regression loss")

    def response(loss, predictions: Any) -> Any:
        """The targets that predictions of numbers (an array) stand for: themselves, unless the loss has a link."""
        return predictions

    def prediction_of(loss, targets: Any) -> Any:
        """The predictions that stand for targets (an array), as :meth:`response` undoes it."""
        return targets


def loss_class(cls: Any) -> Any:
    """Give a NamedTuple class, which cannot have a base, the defaults of :class:`Loss`."""
    for name, default in vars(Loss).items():
        if not hasattr(cls, name):
            setattr(cls, name, default)
    return cls


def has_log_link(loss: Any) -> bool:
    """Whether predictions are logarithms of means; False where there is no loss of numbers, but None."""
    return loss is not None and loss.has_log_link


def is_robust(loss: Any) -> bool:
    """Whether the loss of an outlier grows no faster than its distance; False where there is no loss of numbers."""
    return loss is not None and loss.lipschitz < math.inf
