"""Which prediction a loss wants where a label has a given probability, and back: the link functions of losses.

Zhang: Statistical behavior and consistency of classification methods based on convex risk minimization (2004); Nitanda,
Suzuki: Stochastic gradient descent with exponential convergence rates of expected classification errors (AISTATS 2019),
section 4. With V(y, h) = phi(y h) and mu the probability of the label +1,

    h*(mu) = argmin_h mu phi(h) + (1 - mu) phi(-h),    l*(mu) = the minimum,
    m(delta) = max(h*(1/2 + delta), |h*(1/2 - delta)|).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tunefree import losses
from tunefree.core.generic import generic
from tunefree.losses import value


@generic
def link(loss: Any, probability: float) -> float:
    """h*(mu), for a probability between 0 and 1; infinite at the ends for some losses."""
    raise TypeError(f"the {type(loss).__name__} loss has no link function")


@generic
def inverse_link(loss: Any, predictions: Any) -> Any:
    """The probabilities of predictions (an array); 0 or 1 beyond what h* takes on."""
    raise TypeError(f"the link function of the {type(loss).__name__} loss has no inverse")


def has_inverse_link(loss: Any) -> bool:
    """Whether probabilities can be read from predictions.

    Examples
    --------
    >>> from tunefree.losses import Hinge, Logistic
    >>> has_inverse_link(Logistic()), has_inverse_link(Hinge())
    (True, False)
    """
    return type(loss) in _INVERTIBLE


def low_noise_margin(loss: Any, delta: float) -> float:
    """m(delta): how far from 0 the best prediction lies where probabilities keep a distance delta from 1/2.

    Parameters
    ----------
    loss : loss
        One with a link function.
    delta : float
        Between 0 and 1/2.

    Examples
    --------
    >>> from tunefree.losses import Logistic, Square
    >>> round(low_noise_margin(Logistic(), 0.25), 6), low_noise_margin(Square(), 0.25)
    (1.098612, 0.5)
    """
    if not 0.0 < delta < 0.5:
        raise ValueError(f"delta must lie between 0 and 1/2, not {delta}")
    return max(link(loss, 0.5 + delta), abs(link(loss, 0.5 - delta)))


def least_risk(loss: Any, probability: float) -> float:
    """l*(mu): the expected loss of the best prediction.

    Examples
    --------
    >>> from tunefree.losses import Logistic
    >>> round(least_risk(Logistic(), 0.5), 6)
    0.693147
    """
    return risk(loss, probability, link(loss, probability)) if 0.0 < probability < 1.0 else 0.0


def risk(loss: Any, probability: float, prediction: float) -> float:
    """mu phi(h) + (1 - mu) phi(-h): the expected loss of a prediction h."""
    favourable = probability * value(loss, 1.0, prediction) if probability > 0.0 else 0.0
    return favourable + ((1.0 - probability) * value(loss, -1.0, prediction) if probability < 1.0 else 0.0)


def log_odds(probability: float) -> float:
    """ln(mu / (1 - mu)), infinite at 0 and 1."""
    if probability <= 0.0 or probability >= 1.0:
        return -math.inf if probability <= 0.0 else math.inf
    return math.log(probability) - math.log1p(-probability)


def sigmoid(log_odds: Any) -> np.ndarray:
    """The probabilities of log-odds, without overflow."""
    small = np.exp(-np.abs(log_odds))
    return np.where(np.asarray(log_odds) >= 0, 1.0, small) / (1.0 + small)


@link.register(losses.Logistic)
def link_logistic(loss, probability):
    return log_odds(probability)


@inverse_link.register(losses.Logistic)
def inverse_link_logistic(loss, predictions):
    return sigmoid(predictions)


@link.register(losses.Exponential)
def link_exponential(loss, probability):
    return 0.5 * log_odds(probability)


@inverse_link.register(losses.Exponential)
def inverse_link_exponential(loss, predictions):
    return sigmoid(2.0 * np.clip(predictions, -1e300, 1e300))


for quadratic in (losses.Square, losses.SquaredHinge):

    @link.register(quadratic)
    def link_quadratic(loss, probability):
        return 2.0 * probability - 1.0

    @inverse_link.register(quadratic)
    def inverse_link_quadratic(loss, predictions):
        return 0.5 + 0.5 * np.clip(predictions, -1.0, 1.0)


@link.register(losses.Hinge)
def link_hinge(loss, probability):
    return float(np.sign(probability - 0.5))


@link.register(losses.SmoothedHinge)
def link_smoothed_hinge(loss, probability):
    likelier = max(probability, 1.0 - probability)
    return math.copysign((2.0 * likelier - 1.0) / likelier, probability - 0.5)


@inverse_link.register(losses.SmoothedHinge)
def inverse_link_smoothed_hinge(loss, predictions):
    h = np.clip(predictions, -1.0, 1.0)
    likelier = 1.0 / (2.0 - np.abs(h))
    return np.where(h >= 0, likelier, 1.0 - likelier)


_INVERTIBLE = (losses.Logistic, losses.Exponential, losses.Square, losses.SquaredHinge, losses.SmoothedHinge)
