"""The hinge loss, the smoothed one of Orabona 2014 (Appendix C), and its square."""

from __future__ import annotations

import math
from typing import NamedTuple

from tunefree.core.numbers import finite
from tunefree.losses.contract import loss_class


@loss_class
class Hinge(NamedTuple):
    """max(0, 1 - y p).

    Examples
    --------
    >>> Hinge().value(1.0, 0.25), Hinge().value(-1.0, 0.25)
    (0.75, 1.25)
    """

    lipschitz: float = 1.0
    smoothness: float = math.inf

    def value(loss, y, prediction):
        return max(0.0, 1.0 - y * prediction)

    def slope(loss, y, prediction):
        return -y if y * prediction <= 1.0 else 0.0

    def curvature(loss, y, prediction):
        return 0.0

    def left_slope(loss, y, prediction):
        margin = y * prediction
        return -y if margin < 1.0 or (margin == 1.0 and y > 0.0) else 0.0


@loss_class
class SmoothedHinge(NamedTuple):
    """With the margin m = y p: 0 for m >= 1, (1 - m)^2 for 0 < m < 1, and 1 - 2 m for m <= 0.

    Examples
    --------
    >>> [SmoothedHinge().value(1.0, margin) for margin in (2.0, 0.5, -1.0)]
    [0.0, 0.25, 3.0]
    """

    lipschitz: float = 2.0
    smoothness: float = 2.0

    def value(loss, y, prediction):
        margin = y * prediction
        if margin >= 1.0:
            return 0.0
        return (1.0 - margin) ** 2 if margin > 0.0 else finite(1.0 - 2.0 * margin)

    def slope(loss, y, prediction):
        margin = y * prediction
        if margin >= 1.0:
            return 0.0
        return -2.0 * y * (1.0 - margin) if margin > 0.0 else -2.0 * y

    def curvature(loss, y, prediction):
        return 2.0 if 0.0 < y * prediction < 1.0 else 0.0


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
