"""The exponential loss; its predictions are half the log-odds."""

from __future__ import annotations

import math
from typing import NamedTuple

from tunefree.core.numbers import LARGEST_EXPONENT
from tunefree.losses.contract import loss_class


@loss_class
class Exponential(NamedTuple):
    """exp(-y p).

    Examples
    --------
    >>> Exponential().value(1.0, 0.0), Exponential().slope(1.0, 0.0)
    (1.0, -1.0)
    """

    lipschitz: float = math.inf
    smoothness: float = math.inf

    def value(loss, y, prediction):
        return math.exp(min(-y * prediction, LARGEST_EXPONENT))

    def slope(loss, y, prediction):
        return -y * math.exp(min(-y * prediction, LARGEST_EXPONENT))

    def curvature(loss, y, prediction):
        return math.exp(min(-y * prediction, LARGEST_EXPONENT))
