"""The square loss, of labels and of numbers."""

from __future__ import annotations

import math
from typing import NamedTuple

from tunefree.core.numbers import finite, raised
from tunefree.losses.contract import loss_class


@loss_class
class Square(NamedTuple):
    """(p - y)^2; with y in {-1, +1} this is (1 - y p)^2.

    Examples
    --------
    >>> Square().value(3.0, 1.0), Square().slope(3.0, 1.0)
    (4.0, -4.0)
    """

    lipschitz: float = math.inf
    smoothness: float = 2.0

    def value(loss, y, prediction):
        error = finite(prediction - y)
        return finite(error * error)

    def slope(loss, y, prediction):
        return finite(2.0 * finite(prediction - y))

    def curvature(loss, y, prediction):
        return 2.0

    def rescaled(loss, unit):
        return loss, raised(unit, 2.0)
