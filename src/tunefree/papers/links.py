"""The link function of a loss, its least risk, and its low-noise margin.

Zhang: Statistical behavior and consistency of classification methods based on convex risk minimization (2004); Nitanda,
Suzuki: Stochastic gradient descent with exponential convergence rates of expected classification errors (AISTATS 2019),
section 4. With V(y, h) = phi(y h) and mu the probability of the label +1,

    h*(mu) = argmin_h mu phi(h) + (1 - mu) phi(-h),
    l*(mu) = min_h mu phi(h) + (1 - mu) phi(-h), which h*(mu) attains,
    m(delta) = max(h*(1/2 + delta), |h*(1/2 - delta)|).

The link function of a custom loss can be added by ``link.register`` and ``inverse_link.register``.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np

from tunefree.losses.classification import Exponential, Hinge, Logistic, SmoothedHinge, SquaredHinge
from tunefree.losses.regression import Square


@singledispatch
def link(loss: Any, probability: float) -> float:
    """Return h*(mu) for a probability mu in [0, 1]; infinite at 0 and 1 for some losses.

    Examples
    --------
    >>> link(Square(), 0.75), link(Logistic(), 0.5)
    (0.5, 0.0)
    """
    raise TypeError(f"the {type(loss).__name__} loss has no link function")


@singledispatch
def inverse_link(loss: Any, predictions: Any) -> Any:
    """Return the probabilities of an array of predictions; 0 or 1 outside of the range of h*.

    Examples
    --------
    >>> inverse_link(Square(), [-2.0, 0.0, 0.5]).tolist()
    [0.0, 0.5, 0.75]
    """
    raise TypeError(f"the link function of the {type(loss).__name__} loss has no inverse")


def has_inverse_link(loss: Any) -> bool:
    """Return whether probabilities can be computed from predictions.

    Examples
    --------
    >>> has_inverse_link(Square()), has_inverse_link(Hinge())
    (True, False)
    """
    return inverse_link.dispatch(type(loss)) is not inverse_link.dispatch(object)


@link.register
def _(loss: Logistic, probability: float) -> float:
    return log_odds(probability)


@inverse_link.register
def _(loss: Logistic, predictions: Any) -> Any:
    return sigmoid(predictions)


@link.register
def _(loss: Exponential, probability: float) -> float:
    return 0.5 * log_odds(probability)


@inverse_link.register
def _(loss: Exponential, predictions: Any) -> Any:
    return sigmoid(2.0 * np.clip(predictions, -1e300, 1e300))


@link.register(Square)
@link.register(SquaredHinge)
def _(loss: Any, probability: float) -> float:
    return 2.0 * probability - 1.0


@inverse_link.register(Square)
@inverse_link.register(SquaredHinge)
def _(loss: Any, predictions: Any) -> Any:
    return 0.5 + 0.5 * np.clip(predictions, -1.0, 1.0)


@link.register
def _(loss: Hinge, probability: float) -> float:
    return float(np.sign(probability - 0.5))


@link.register
def _(loss: SmoothedHinge, probability: float) -> float:
    likelier = max(probability, 1.0 - probability)
    return math.copysign((2.0 * likelier - 1.0) / likelier, probability - 0.5)


@inverse_link.register
def _(loss: SmoothedHinge, predictions: Any) -> Any:
    h = np.clip(predictions, -1.0, 1.0)
    likelier = 1.0 / (2.0 - np.abs(h))
    return np.where(h >= 0, likelier, 1.0 - likelier)


def low_noise_margin(loss: Any, delta: float) -> float:
    """Return m(delta), the absolute best prediction if the probability has distance delta from 1/2.

    Parameters
    ----------
    loss : loss
        A loss with a link function.
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
    """Return l*(mu), the expected loss of the best prediction.

    Examples
    --------
    >>> from tunefree.losses import Logistic
    >>> round(least_risk(Logistic(), 0.5), 6)
    0.693147
    """
    return risk(loss, probability, link(loss, probability)) if 0.0 < probability < 1.0 else 0.0


def risk(loss: Any, probability: float, prediction: float) -> float:
    """Return mu phi(h) + (1 - mu) phi(-h), the expected loss of a prediction h.

    Examples
    --------
    >>> from tunefree.losses import Square
    >>> risk(Square(), 0.75, 0.0)
    1.0
    """
    favourable = probability * loss.value(1.0, prediction) if probability > 0.0 else 0.0
    return favourable + ((1.0 - probability) * loss.value(-1.0, prediction) if probability < 1.0 else 0.0)


def log_odds(probability: float) -> float:
    """Return ln(mu / (1 - mu)), infinite at 0 and 1.

    Examples
    --------
    >>> log_odds(0.5), log_odds(1.0)
    (0.0, inf)
    """
    if probability <= 0.0 or probability >= 1.0:
        return -math.inf if probability <= 0.0 else math.inf
    return math.log(probability) - math.log1p(-probability)


def sigmoid(log_odds: Any) -> np.ndarray:
    """Return the probabilities 1 / (1 + exp(-log_odds)), without overflow.

    Examples
    --------
    >>> sigmoid([-1000.0, 0.0])
    array([0. , 0.5])
    """
    small = np.exp(-np.abs(log_odds))
    return np.where(np.asarray(log_odds) >= 0, 1.0, small) / (1.0 + small)
