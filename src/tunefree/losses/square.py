"""The square loss, of labels and of numbers."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.core.numbers import finite, raised
from tunefree.losses.contract import (
    Growth,
    curvature,
    growth,
    inverse_link,
    link,
    rescaled,
    slope,
    value,
    variance_exponent,
)


class Square(NamedTuple):
    """(p - y)^2; with y in {-1, +1} this is (1 - y p)^2.

    Examples
    --------
    >>> value(Square(), 3.0, 1.0), slope(Square(), 3.0, 1.0)
    (4.0, -4.0)
    """

    lipschitz: float = math.inf
    smoothness: float = 2.0


@value.register(Square)
def value_square(loss, y, prediction):
    error = finite(prediction - y)
    return finite(error * error)


@slope.register(Square)
def slope_square(loss, y, prediction):
    return finite(2.0 * finite(prediction - y))


@curvature.register(Square)
def curvature_square(loss, y, prediction):
    return 2.0


@growth.register(Square)
def growth_square(loss, bound):
    return Growth(1.0, 2.0 * max(1.0, bound))


@variance_exponent.register(Square)
def variance_exponent_square(loss):
    return 1.0


@rescaled.register(Square)
def rescaled_square(loss, unit):
    return loss, raised(unit, 2.0)


@link.register(Square)
def link_square(loss, probability):
    return 2.0 * probability - 1.0


@inverse_link.register(Square)
def inverse_link_square(loss, predictions):
    return 0.5 + 0.5 * np.clip(predictions, -1.0, 1.0)
