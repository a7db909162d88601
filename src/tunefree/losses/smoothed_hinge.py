"""The smoothed hinge loss of Orabona 2014, Appendix C."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.core.numbers import finite
from tunefree.losses.contract import loss_class


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

    def link(loss, probability):
        likelier = max(probability, 1.0 - probability)
        return math.copysign((2.0 * likelier - 1.0) / likelier, probability - 0.5)

    def inverse_link(loss, predictions):
        h = np.clip(predictions, -1.0, 1.0)
        likelier = 1.0 / (2.0 - np.abs(h))
        return np.where(h >= 0, likelier, 1.0 - likelier)
