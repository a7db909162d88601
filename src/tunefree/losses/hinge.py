"""The hinge loss."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

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

    def link(loss, probability):
        return float(np.sign(probability - 0.5))
