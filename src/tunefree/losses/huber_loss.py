"""Huber's loss."""

from __future__ import annotations

import math
from typing import NamedTuple

from tunefree.core.numbers import finite, raised
from tunefree.losses.contract import loss_class


@loss_class
class Huber(NamedTuple):
    """(p - y)^2 / 2 where |p - y| <= delta, else delta (|p - y| - delta / 2); made by :func:`huber`.

    Examples
    --------
    >>> [huber(1.0).value(0.0, prediction) for prediction in (0.5, 3.0)]
    [0.125, 2.5]
    """

    delta: float  # above 0
    lipschitz: float
    smoothness: float

    def value(loss, y, prediction):
        error = abs(prediction - y)
        if error <= loss.delta:
            return finite(0.5 * error * error)
        return finite(loss.delta * (error - 0.5 * loss.delta))

    def slope(loss, y, prediction):
        return min(max(prediction - y, -loss.delta), loss.delta)

    def curvature(loss, y, prediction):
        return 1.0 if abs(prediction - y) < loss.delta else 0.0

    def rescaled(loss, unit):
        delta = finite(loss.delta / unit)
        return loss._replace(delta=delta, lipschitz=delta), raised(unit, 2.0)


def huber(delta: float = 1.0) -> Huber:
    """Huber's loss.

    Parameters
    ----------
    delta : float, default 1
        Up to which error the loss is a square; above 0.

    Examples
    --------
    >>> huber(2.0)
    Huber(delta=2.0, lipschitz=2.0, smoothness=1.0)
    """
    if not (delta > 0 and math.isfinite(delta)):
        raise ValueError(f"delta must be a number above 0, not {delta}")
    return Huber(delta, delta, 1.0)
