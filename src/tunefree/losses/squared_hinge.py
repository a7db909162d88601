"""The squared hinge loss."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.core.numbers import finite
from tunefree.losses.contract import Growth, curvature, growth, inverse_link, link, slope, value


class SquaredHinge(NamedTuple):
    """max(0, 1 - y p)^2.

    Examples
    --------
    >>> value(SquaredHinge(), 1.0, 0.5), value(SquaredHinge(), 1.0, 2.0)
    (0.25, 0.0)
    """

    lipschitz: float = math.inf
    smoothness: float = 2.0


@value.register(SquaredHinge)
def value_squared_hinge(loss, y, prediction):
    shortfall = max(0.0, 1.0 - y * prediction)
    return finite(shortfall * shortfall)


@slope.register(SquaredHinge)
def slope_squared_hinge(loss, y, prediction):
    return finite(-2.0 * y * max(0.0, 1.0 - y * prediction))


@curvature.register(SquaredHinge)
def curvature_squared_hinge(loss, y, prediction):
    return 2.0 if y * prediction < 1.0 else 0.0


@growth.register(SquaredHinge)
def growth_squared_hinge(loss, bound):
    return Growth(1.0, 2.0 * max(1.0, bound))


@link.register(SquaredHinge)
def link_squared_hinge(loss, probability):
    return 2.0 * probability - 1.0


@inverse_link.register(SquaredHinge)
def inverse_link_squared_hinge(loss, predictions):
    return 0.5 + 0.5 * np.clip(predictions, -1.0, 1.0)
