"""The squared hinge loss."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.core.numbers import finite
from tunefree.losses.contract import Growth, loss_class


@loss_class
class SquaredHinge(NamedTuple):
    """max(0, 1 - y p)^2.

    Examples
    --------
    >>> SquaredHinge().value(1.0, 0.5), SquaredHinge().value(1.0, 2.0)
    (0.25, 0.0)
    """

    lipschitz: float = math.inf
    smoothness: float = 2.0

    def value(loss, y, prediction):
        shortfall = max(0.0, 1.0 - y * prediction)
        return finite(shortfall * shortfall)

    def slope(loss, y, prediction):
        return finite(-2.0 * y * max(0.0, 1.0 - y * prediction))

    def curvature(loss, y, prediction):
        return 2.0 if y * prediction < 1.0 else 0.0

    def growth(loss, bound):
        return Growth(1.0, 2.0 * max(1.0, bound))

    def link(loss, probability):
        return 2.0 * probability - 1.0

    def inverse_link(loss, predictions):
        return 0.5 + 0.5 * np.clip(predictions, -1.0, 1.0)
