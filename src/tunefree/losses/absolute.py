"""The absolute loss."""

from __future__ import annotations

import math
from typing import NamedTuple

from tunefree.core.numbers import finite, sign
from tunefree.losses.contract import curvature, left_slope, rescaled, slope, value


class Absolute(NamedTuple):
    """|p - y|; a median of the targets minimises its mean.

    Examples
    --------
    >>> value(Absolute(), 3.0, 1.0), slope(Absolute(), 3.0, 1.0)
    (2.0, -1.0)
    """

    lipschitz: float = 1.0
    smoothness: float = math.inf


@value.register(Absolute)
def value_absolute(loss, y, prediction):
    return finite(abs(prediction - y))


@slope.register(Absolute)
def slope_absolute(loss, y, prediction):
    return sign(prediction - y)


@curvature.register(Absolute)
def curvature_absolute(loss, y, prediction):
    return 0.0


@left_slope.register(Absolute)
def left_slope_absolute(loss, y, prediction):
    return 1.0 if prediction > y else -1.0


@rescaled.register(Absolute)
def rescaled_absolute(loss, unit):
    return loss, unit
