"""Losses for regression, functions of the error p - y; the power losses are from Lin, Rosasco, Zhou 2016, Section 2."""

from __future__ import annotations

import math
from typing import NamedTuple

from tunefree.core.numbers import finite, raised, sign
from tunefree.losses.contract import loss_class


@loss_class
class Square(NamedTuple):
    """(p - y)^2; with y in {-1, +1} this is (1 - y p)^2.

    >>> Square().value(3.0, 1.0), Square().slope(3.0, 1.0)
    (4.0, -4.0)
    """

    lipschitz: float = math.inf
    smoothness: float = 2.0

    def value(loss, y, prediction):
        error = finite(prediction - y)
        return finite(error * error)

    def slope(loss, y, prediction):
        return finite(2.0 * finite(prediction - y))

    def curvature(loss, y, prediction):
        return 2.0

    def rescaled(loss, unit):
        return loss, raised(unit, 2.0)


@loss_class
class Absolute(NamedTuple):
    """|p - y|; its mean is minimised by a median of the targets.

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

    def rescaled(loss, unit):
        return loss, unit


@loss_class
class Quantile(NamedTuple):
    """tau (y - p) below the target, (1 - tau) (p - y) above it; made by :func:`quantile`.

    Its mean is minimised by a tau-quantile of the targets.
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

    def rescaled(loss, unit):
        return loss, unit


def quantile(tau: float = 0.5) -> Quantile:
    """The quantile (pinball) loss.

    Parameters
    ----------
    tau : float, default 0.5
        The level of the predicted quantile, between 0 and 1.

    Examples
    --------
    >>> quantile(0.75).value(2.0, 1.0), quantile(0.75).value(2.0, 3.0)
    (0.75, 0.25)
    """
    if not 0 < tau < 1:
        raise ValueError(f"tau must lie between 0 and 1, not {tau}")
    return Quantile(tau, max(tau, 1.0 - tau), math.inf)


@loss_class
class Huber(NamedTuple):
    """(p - y)^2 / 2 where |p - y| <= delta, else delta (|p - y| - delta / 2); made by :func:`huber`."""

    delta: float  # above 0
    lipschitz: float
    smoothness: float

    def value(loss, y, prediction):
        error = abs(prediction - y)
        if error <= loss.delta:
            return finite(0.5 * error * error)
        return finite(loss.delta * (error - 0.5 * loss.delta))

    def slope(loss, y, prediction):
        return min(max(prediction - y, -loss.delta), loss.delta)

    def curvature(loss, y, prediction):
        return 1.0 if abs(prediction - y) < loss.delta else 0.0

    def rescaled(loss, unit):
        delta = finite(loss.delta / unit)
        return loss._replace(delta=delta, lipschitz=delta), raised(unit, 2.0)


def huber(delta: float = 1.0) -> Huber:
    """Huber's loss.

    Parameters
    ----------
    delta : float, default 1
        The largest absolute error with a quadratic loss; above 0.

    Examples
    --------
    >>> [huber(1.0).value(0.0, prediction) for prediction in (0.5, 3.0)]
    [0.125, 2.5]
    """
    if not (delta > 0 and math.isfinite(delta)):
        raise ValueError(f"delta must be a number above 0, not {delta}")
    return Huber(delta, delta, 1.0)


@loss_class
class Power(NamedTuple):
    """max(|p - y|^power - epsilon, 0); made by :func:`power_loss` and :func:`epsilon_insensitive`."""

    epsilon: float  # at least 0; subtracted from the power of the error
    power: float  # at least 1
    lipschitz: float
    smoothness: float

    def value(loss, y, prediction):
        return finite(max(raised(finite(abs(prediction - y)), loss.power) - loss.epsilon, 0.0))

    def slope(loss, y, prediction):
        error = finite(abs(prediction - y))
        if loss.epsilon > 0.0 and raised(error, loss.power) <= loss.epsilon:
            return 0.0
        return sign(prediction - y) * finite(loss.power * raised(error, loss.power - 1.0))

    def curvature(loss, y, prediction):
        error = finite(abs(prediction - y))
        if loss.epsilon > 0.0 and raised(error, loss.power) <= loss.epsilon:
            return 0.0
        return second_derivative(loss.power, error)

    def rescaled(loss, unit):
        factor = raised(unit, loss.power)
        if loss.epsilon == 0.0:
            return loss, factor
        return loss._replace(epsilon=finite(loss.epsilon / factor) if factor > 0.0 else finite(math.inf)), factor


def power_loss(power: float = 1.5) -> Power:
    """The p-loss |p - y|^power.

    Parameters
    ----------
    power : float, default 1.5
        At least 1.

    Examples
    --------
    >>> power_loss(3.0).value(3.0, 1.0), power_loss(3.0).slope(3.0, 1.0)
    (8.0, -12.0)
    """
    return epsilon_insensitive(0.0, power)


def epsilon_insensitive(epsilon: float = 0.1, power: float = 1.0) -> Power:
    """The epsilon-insensitive loss max(|p - y|^power - epsilon, 0).

    Parameters
    ----------
    epsilon : float, default 0.1
        At least 0.
    power : float, default 1
        At least 1.

    Examples
    --------
    >>> epsilon_insensitive(0.5).value(3.0, 1.0), epsilon_insensitive(0.5).value(3.0, 2.75)
    (1.5, 0.0)
    """
    if not (epsilon >= 0 and math.isfinite(epsilon)):
        raise ValueError(f"epsilon must be a number of at least 0, not {epsilon}")
    if not (power >= 1 and math.isfinite(power)):
        raise ValueError(f"the power must be at least 1, not {power}")
    smooth = 2.0 if power == 2 and epsilon == 0 else math.inf  # with epsilon the slope jumps to 2 sqrt(epsilon)
    return Power(epsilon, power, 1.0 if power == 1 else math.inf, smooth)


def second_derivative(power, error):
    """The second derivative of error^power; 0 where it is infinite."""
    if power == 1.0 or (error == 0.0 and power < 2.0):
        return 0.0
    return finite(power * (power - 1.0) * (raised(error, power - 2.0) if power >= 2.0 else error ** (power - 2.0)))
