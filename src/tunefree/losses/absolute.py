"""The absolute loss."""

from __future__ import annotations

import math
from typing import NamedTuple

from tunefree.core.numbers import finite, sign
from tunefree.losses.contract import loss_class


@loss_class
class Absolute(NamedTuple):
    """|p - y|; a median of the targets minimises its mean.

    Examples
    --------
    >>> Absolute().value(3.0, 1.0), Absolute().slope(3.0, 1.0)
    (2.0, -1.0)
    """

    lipschitz: float = 1.0
    smoothness: float = math.inf

    def value(loss, y, prediction):
        return finite(abs(prediction - y))

    def slope(loss, y, prediction):
        return sign(prediction - y)

    def curvature(loss, y, prediction):
        return 0.0

    def left_slope(loss, y, prediction):
        return 1.0 if prediction > y else -1.0

    def rescaled(loss, unit):
        return loss, unit
