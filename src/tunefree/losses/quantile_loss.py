"""The quantile (pinball) loss."""

from __future__ import annotations

import math
from typing import NamedTuple

from tunefree.core.numbers import finite
from tunefree.losses.contract import loss_class


@loss_class
class Quantile(NamedTuple):
    """tau (y - p) below the target, (1 - tau) (p - y) above it; made by :func:`quantile`.

    A tau-quantile of the targets minimises its mean.

    Examples
    --------
    >>> quantile(0.75).value(2.0, 1.0), quantile(0.75).value(2.0, 3.0)
    (0.75, 0.25)
    """

    tau: float  # between 0 and 1
    lipschitz: float
    smoothness: float

    def value(loss, y, prediction):
        return finite(loss.tau * (y - prediction) if prediction < y else (1.0 - loss.tau) * (prediction - y))

    def slope(loss, y, prediction):
        if prediction == y:
            return 0.0
        return -loss.tau if prediction < y else 1.0 - loss.tau

    def curvature(loss, y, prediction):
        return 0.0

    def left_slope(loss, y, prediction):
        return 1.0 - loss.tau if prediction > y else -loss.tau

    def rescaled(loss, unit):
        return loss, unit


def quantile(tau: float = 0.5) -> Quantile:
    """The quantile (pinball) loss.

    Parameters
    ----------
    tau : float, default 0.5
        The quantile that is predicted, between 0 and 1.

    Examples
    --------
    >>> quantile(0.75)
    Quantile(tau=0.75, lipschitz=0.75, smoothness=inf)
    """
    if not 0 < tau < 1:
        raise ValueError(f"tau must lie between 0 and 1, not {tau}")
    return Quantile(tau, max(tau, 1.0 - tau), math.inf)
