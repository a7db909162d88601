"""The contract of losses: functions of a target and a prediction, and constants for theory.

A loss V is a NamedTuple, decorated with :func:`loss_class`. Two of its fields are constants: ``lipschitz`` bounds the
absolute slope, ``smoothness`` is the Lipschitz constant of the slope; each is infinite if it does not exist. The other
fields are the loss's parameters. Losses are convex and at least 0. Classification losses take targets -1 and +1.

``value``, ``slope`` (a subgradient in the prediction) and ``curvature`` (the second derivative; 0 where it does not
exist, as at kinks) are cases in compiled loops (:mod:`tunefree.losses.functions`), and methods in Python. They take one
target and one prediction, and are finite for all finite arguments. Results that overflow (an exponential, the square of
1e200) are replaced by the largest finite number.
"""

from __future__ import annotations

import math
from typing import Any


class Loss:
    """Defaults of a loss; each loss defines ``value``, ``slope`` and ``curvature`` itself.

    >>> from tunefree.losses import Hinge, Square, huber, poisson
    >>> Hinge().value(1.0, 0.25), Square().slope(1.0, 0.25), Square().curvature(1.0, 0.25)
    (0.75, -1.5, 2.0)
    >>> huber(3.0).rescaled(2.0)
    (Huber(delta=1.5, lipschitz=1.5, smoothness=1.0), 4.0)
    >>> poisson().response(0.0), poisson().prediction_of(1.0), Square().response(2.0)
    (np.float64(1.0), np.float64(0.0), 2.0)
    """

    has_log_link = False  # whether predictions are logarithms of means; then ``power`` is the power of the variance

    def rescaled(loss, unit: float) -> tuple[Any, float]:
        """The loss V' and the factor c with V(y, p) = c V'(y / unit, p / unit)."""
        raise TypeError(f"{type(loss).__name__} is not a regression loss")

    def response(loss, predictions: Any) -> Any:
        """The targets for an array of numeric predictions: the inverse link; by default the identity."""
        return predictions

    def prediction_of(loss, targets: Any) -> Any:
        """The predictions for an array of targets: the inverse of :meth:`response`."""
        return targets


def loss_class(cls: Any) -> Any:
    """Add the defaults of :class:`Loss` to a NamedTuple class, which cannot have a base class."""
    for name, default in vars(Loss).items():
        if not hasattr(cls, name):
            setattr(cls, name, default)
    return cls


def has_log_link(loss: Any) -> bool:
    """Whether predictions are logarithms of means; False for None, the loss of the softmax."""
    return loss is not None and loss.has_log_link


def is_robust(loss: Any) -> bool:
    """Whether the loss of an outlier grows at most linearly with its distance; False for None."""
    return loss is not None and loss.lipschitz < math.inf
