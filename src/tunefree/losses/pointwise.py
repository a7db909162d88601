"""Losses of one prediction: value, slope, and the constants that theory asks for.

A loss is a NamedTuple of its parameters. ``value(loss, y, prediction)``, ``slope`` and ``curvature`` take one target
and one prediction; classification losses take targets -1 and +1. The slope is a subgradient in the prediction.
Where the true number is not representable (an exponential, the square of 1e200) the largest finite one stands in.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tunefree.core import compiled
from tunefree.core.generic import generic
from tunefree.core.numbers import LARGEST_EXPONENT, finite, raised, sign, softplus


class Logistic(NamedTuple):
    """ln(1 + exp(-y p)), in nats."""

    lipschitz: float = 1.0
    smoothness: float = 0.25


class Hinge(NamedTuple):
    """max(0, 1 - y p)."""

    lipschitz: float = 1.0
    smoothness: float = math.inf


class SmoothedHinge(NamedTuple):
    """The hinge with its kink rounded off (Orabona 2014, Appendix C)."""

    lipschitz: float = 2.0
    smoothness: float = 2.0


class SquaredHinge(NamedTuple):
    """max(0, 1 - y p)^2."""

    lipschitz: float = math.inf
    smoothness: float = 2.0


class Exponential(NamedTuple):
    """exp(-y p)."""

    lipschitz: float = math.inf
    smoothness: float = math.inf


class Square(NamedTuple):
    """(p - y)^2; with y in {-1, +1} this is (1 - y p)^2."""

    lipschitz: float = math.inf
    smoothness: float = 2.0


class Absolute(NamedTuple):
    """|p - y|."""

    lipschitz: float = 1.0
    smoothness: float = math.inf


class Power(NamedTuple):
    """|p - y|^power, power >= 1 (the p-loss)."""

    power: float
    lipschitz: float
    smoothness: float


class EpsilonInsensitive(NamedTuple):
    """max(|p - y|^power - epsilon, 0), power >= 1."""

    epsilon: float
    power: float
    lipschitz: float
    smoothness: float


class Huber(NamedTuple):
    """Square within ``delta`` of the target (half of it), linear beyond."""

    delta: float
    lipschitz: float
    smoothness: float


class Quantile(NamedTuple):
    """tau (y - p) below the target, (1 - tau) (p - y) above it: its minimiser is the tau-quantile."""

    tau: float
    lipschitz: float
    smoothness: float


def power_loss(power: float = 1.5) -> Power:
    """The p-loss |p - y|^power."""
    _require(power >= 1 and math.isfinite(power), f"the power of a p-loss must be at least 1, not {power}")
    return Power(power, 1.0 if power == 1 else math.inf, 2.0 if power == 2 else math.inf)


def epsilon_insensitive(epsilon: float = 0.1, power: float = 1.0) -> EpsilonInsensitive:
    """The epsilon-insensitive loss max(|p - y|^power - epsilon, 0)."""
    _require(epsilon >= 0 and math.isfinite(epsilon), f"epsilon must be a number of at least 0, not {epsilon}")
    _require(power >= 1 and math.isfinite(power), f"the power must be at least 1, not {power}")
    return EpsilonInsensitive(epsilon, power, 1.0 if power == 1 else math.inf, math.inf)


def huber(delta: float = 1.0) -> Huber:
    """Huber's loss."""
    _require(delta > 0 and math.isfinite(delta), f"delta must be a number above 0, not {delta}")
    return Huber(delta, delta, 1.0)


def quantile(tau: float = 0.5) -> Quantile:
    """The quantile (pinball) loss."""
    _require(0 < tau < 1, f"tau must lie between 0 and 1, not {tau}")
    return Quantile(tau, max(tau, 1.0 - tau), math.inf)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


@generic
def value(loss: Any, y: float, prediction: float) -> float:
    """The loss of a prediction."""
    raise TypeError(f"{type(loss).__name__} is not a loss")


@generic
def slope(loss: Any, y: float, prediction: float) -> float:
    """A subgradient of the loss in the prediction."""
    raise TypeError(f"{type(loss).__name__} is not a loss")


@generic
def curvature(loss: Any, y: float, prediction: float) -> float:
    """The second derivative of the loss in the prediction; 0 where there is none (at kinks, on straight pieces)."""
    raise TypeError(f"{type(loss).__name__} is not a loss")


@generic
def left_slope(loss: Any, y: float, prediction: float) -> float:
    """The left derivative of the loss in the prediction: the slope, or at a kink that of the piece to the left."""
    raise TypeError(f"{type(loss).__name__} is not a loss")


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


@value.register(Hinge)
def value_hinge(loss, y, prediction):
    return max(0.0, 1.0 - y * prediction)


@slope.register(Hinge)
def slope_hinge(loss, y, prediction):
    return -y if y * prediction <= 1.0 else 0.0


@value.register(SmoothedHinge)
def value_smoothed_hinge(loss, y, prediction):
    margin = y * prediction
    if margin >= 1.0:
        return 0.0
    return (1.0 - margin) ** 2 if margin > 0.0 else finite(1.0 - 2.0 * margin)


@slope.register(SmoothedHinge)
def slope_smoothed_hinge(loss, y, prediction):
    margin = y * prediction
    if margin >= 1.0:
        return 0.0
    return -2.0 * y * (1.0 - margin) if margin > 0.0 else -2.0 * y


@value.register(SquaredHinge)
def value_squared_hinge(loss, y, prediction):
    shortfall = max(0.0, 1.0 - y * prediction)
    return finite(shortfall * shortfall)


@slope.register(SquaredHinge)
def slope_squared_hinge(loss, y, prediction):
    return finite(-2.0 * y * max(0.0, 1.0 - y * prediction))


@value.register(Exponential)
def value_exponential(loss, y, prediction):
    return math.exp(min(-y * prediction, LARGEST_EXPONENT))


@slope.register(Exponential)
def slope_exponential(loss, y, prediction):
    return -y * math.exp(min(-y * prediction, LARGEST_EXPONENT))


@value.register(Square)
def value_square(loss, y, prediction):
    error = finite(prediction - y)
    return finite(error * error)


@slope.register(Square)
def slope_square(loss, y, prediction):
    return finite(2.0 * finite(prediction - y))


@value.register(Absolute)
def value_absolute(loss, y, prediction):
    return finite(abs(prediction - y))


@slope.register(Absolute)
def slope_absolute(loss, y, prediction):
    return sign(prediction - y)


@value.register(Power)
def value_power(loss, y, prediction):
    return raised(finite(abs(prediction - y)), loss.power)


@slope.register(Power)
def slope_power(loss, y, prediction):
    side = sign(prediction - y)
    return side * finite(loss.power * raised(finite(abs(prediction - y)), loss.power - 1.0))


@value.register(EpsilonInsensitive)
def value_epsilon_insensitive(loss, y, prediction):
    return finite(max(raised(finite(abs(prediction - y)), loss.power) - loss.epsilon, 0.0))


@slope.register(EpsilonInsensitive)
def slope_epsilon_insensitive(loss, y, prediction):
    error = finite(abs(prediction - y))
    if raised(error, loss.power) <= loss.epsilon:
        return 0.0
    side = sign(prediction - y)
    return side * finite(loss.power * raised(error, loss.power - 1.0))


@value.register(Huber)
def value_huber(loss, y, prediction):
    error = abs(prediction - y)
    if error <= loss.delta:
        return 0.5 * error * error
    return finite(loss.delta * (error - 0.5 * loss.delta))


@slope.register(Huber)
def slope_huber(loss, y, prediction):
    return min(max(prediction - y, -loss.delta), loss.delta)


@value.register(Quantile)
def value_quantile(loss, y, prediction):
    return finite(loss.tau * (y - prediction) if prediction < y else (1.0 - loss.tau) * (prediction - y))


@slope.register(Quantile)
def slope_quantile(loss, y, prediction):
    if prediction == y:
        return 0.0
    return -loss.tau if prediction < y else 1.0 - loss.tau


@curvature.register(Logistic)
def curvature_logistic(loss, y, prediction):
    odds = math.exp(-abs(prediction))
    return odds / ((1.0 + odds) * (1.0 + odds))


@curvature.register(SmoothedHinge)
def curvature_smoothed_hinge(loss, y, prediction):
    return 2.0 if 0.0 < y * prediction < 1.0 else 0.0


@curvature.register(SquaredHinge)
def curvature_squared_hinge(loss, y, prediction):
    return 2.0 if y * prediction < 1.0 else 0.0


@curvature.register(Exponential)
def curvature_exponential(loss, y, prediction):
    return math.exp(min(-y * prediction, LARGEST_EXPONENT))


@curvature.register(Square)
def curvature_square(loss, y, prediction):
    return 2.0


@curvature.register(Power)
def curvature_power(loss, y, prediction):
    return bent(loss.power, finite(abs(prediction - y)))


@curvature.register(EpsilonInsensitive)
def curvature_epsilon_insensitive(loss, y, prediction):
    error = finite(abs(prediction - y))
    return bent(loss.power, error) if raised(error, loss.power) > loss.epsilon else 0.0


@compiled.inline
def bent(power, error):
    """The second derivative of error^power."""
    if power == 1.0 or (error == 0.0 and power < 2.0):
        return 0.0
    return finite(power * (power - 1.0) * (raised(error, power - 2.0) if power >= 2.0 else error ** (power - 2.0)))


@curvature.register(Huber)
def curvature_huber(loss, y, prediction):
    return 1.0 if abs(prediction - y) < loss.delta else 0.0


for straight in (Hinge, Absolute, Quantile):

    @curvature.register(straight)
    def curvature_of_straight_pieces(loss, y, prediction):
        return 0.0


for smooth, body in (
    (Logistic, slope_logistic),
    (SmoothedHinge, slope_smoothed_hinge),
    (SquaredHinge, slope_squared_hinge),
    (Exponential, slope_exponential),
    (Square, slope_square),
    (Huber, slope_huber),
):
    left_slope.register(smooth)(body)


@left_slope.register(Hinge)
def left_slope_hinge(loss, y, prediction):
    margin = y * prediction
    return -y if margin < 1.0 or (margin == 1.0 and y > 0.0) else 0.0


@left_slope.register(Absolute)
def left_slope_absolute(loss, y, prediction):
    return 1.0 if prediction > y else -1.0


@left_slope.register(Power)
def left_slope_power(loss, y, prediction):
    side = 1.0 if prediction > y else -1.0
    return side * finite(loss.power * raised(finite(abs(prediction - y)), loss.power - 1.0))


@left_slope.register(EpsilonInsensitive)
def left_slope_epsilon_insensitive(loss, y, prediction):
    error = finite(abs(prediction - y))
    above = raised(error, loss.power) - loss.epsilon
    if above < 0.0 or (above == 0.0 and prediction > y):
        return 0.0
    side = 1.0 if prediction > y else -1.0
    return side * finite(loss.power * raised(error, loss.power - 1.0))


@left_slope.register(Quantile)
def left_slope_quantile(loss, y, prediction):
    return 1.0 - loss.tau if prediction > y else -loss.tau
