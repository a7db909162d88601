"""The quantile (pinball) loss."""

from __future__ import annotations

import math
from typing import NamedTuple

from tunefree.core.numbers import finite
from tunefree.losses.contract import curvature, left_slope, rescaled, slope, value


class Quantile(NamedTuple):
    """tau (y - p) below the target, (1 - tau) (p - y) above it; made by :func:`quantile`.

    A tau-quantile of the targets minimises its mean.

    Examples
    --------
    >>> value(quantile(0.75), 2.0, 1.0), value(quantile(0.75), 2.0, 3.0)
    (0.75, 0.25)
    """

    tau: float  # between 0 and 1
    lipschitz: float
    smoothness: float


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


@value.register(Quantile)
def value_quantile(loss, y, prediction):
    return finite(loss.tau * (y - prediction) if prediction < y else (1.0 - loss.tau) * (prediction - y))


@slope.register(Quantile)
def slope_quantile(loss, y, prediction):
    if prediction == y:
        return 0.0
    return -loss.tau if prediction < y else 1.0 - loss.tau


@curvature.register(Quantile)
def curvature_quantile(loss, y, prediction):
    return 0.0


@left_slope.register(Quantile)
def left_slope_quantile(loss, y, prediction):
    return 1.0 - loss.tau if prediction > y else -loss.tau


@rescaled.register(Quantile)
def rescaled_quantile(loss, unit):
    return loss, unit
