"""The logistic loss; its predictions are log-odds."""

from __future__ import annotations

import math
from typing import NamedTuple

from tunefree.core.numbers import softplus
from tunefree.losses.contract import loss_class


@loss_class
class Logistic(NamedTuple):
    """ln(1 + exp(-y p)), in nats.

    Examples
    --------
    >>> round(Logistic().value(1.0, 0.0), 6)
    0.693147
    """

    lipschitz: float = 1.0
    smoothness: float = 0.25

    def value(loss, y, prediction):
        return softplus(-y * prediction)

    def slope(loss, y, prediction):
        margin = y * prediction
        if margin > 0:
            odds = math.exp(-margin)
            return -y * odds / (1.0 + odds)
        return -y / (1.0 + math.exp(margin))

    def curvature(loss, y, prediction):
        odds = math.exp(-abs(prediction))
        return odds / ((1.0 + odds) * (1.0 + odds))
