"""The logistic loss; its predictions are log-odds."""

from __future__ import annotations

import math
from typing import NamedTuple

from tunefree.core.numbers import softplus
from tunefree.losses.contract import curvature, inverse_link, link, slope, value
from tunefree.losses.links import log_odds, sigmoid


class Logistic(NamedTuple):
    """ln(1 + exp(-y p)), in nats.

    Examples
    --------
    >>> round(value(Logistic(), 1.0, 0.0), 6)
    0.693147
    """

    lipschitz: float = 1.0
    smoothness: float = 0.25


@value.register(Logistic)
def value_logistic(loss, y, prediction):
    return softplus(-y * prediction)


@slope.register(Logistic)
def slope_logistic(loss, y, prediction):
    margin = y * prediction
    if margin > 0:
        odds = math.exp(-margin)
        return -y * odds / (1.0 + odds)
    return -y / (1.0 + math.exp(margin))


@curvature.register(Logistic)
def curvature_logistic(loss, y, prediction):
    odds = math.exp(-abs(prediction))
    return odds / ((1.0 + odds) * (1.0 + odds))


@link.register(Logistic)
def link_logistic(loss, probability):
    return log_odds(probability)


@inverse_link.register(Logistic)
def inverse_link_logistic(loss, predictions):
    return sigmoid(predictions)
