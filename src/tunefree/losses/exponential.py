"""The exponential loss; its predictions are half the log-odds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.core.numbers import LARGEST_EXPONENT
from tunefree.losses.contract import curvature, inverse_link, link, slope, value
from tunefree.losses.links import log_odds, sigmoid


class Exponential(NamedTuple):
    """exp(-y p).

    Examples
    --------
    >>> value(Exponential(), 1.0, 0.0), slope(Exponential(), 1.0, 0.0)
    (1.0, -1.0)
    """

    lipschitz: float = math.inf
    smoothness: float = math.inf


@value.register(Exponential)
def value_exponential(loss, y, prediction):
    return math.exp(min(-y * prediction, LARGEST_EXPONENT))


@slope.register(Exponential)
def slope_exponential(loss, y, prediction):
    return -y * math.exp(min(-y * prediction, LARGEST_EXPONENT))


@curvature.register(Exponential)
def curvature_exponential(loss, y, prediction):
    return math.exp(min(-y * prediction, LARGEST_EXPONENT))


@link.register(Exponential)
def link_exponential(loss, probability):
    return 0.5 * log_odds(probability)


@inverse_link.register(Exponential)
def inverse_link_exponential(loss, predictions):
    return sigmoid(2.0 * np.clip(predictions, -1e300, 1e300))
