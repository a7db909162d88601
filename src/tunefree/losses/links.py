"""What follows from a loss's link function: least risks, the low-noise margin, and the logistic function.

Zhang: Statistical behavior and consistency of classification methods based on convex risk minimization (2004); Nitanda,
Suzuki: Stochastic gradient descent with exponential convergence rates of expected classification errors (AISTATS 2019),
section 4. With V(y, h) = phi(y h) and mu the probability of the label +1,

    l*(mu) = min_h mu phi(h) + (1 - mu) phi(-h), which h*(mu) attains,
    m(delta) = max(h*(1/2 + delta), |h*(1/2 - delta)|).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


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
    return max(loss.link(0.5 + delta), abs(loss.link(0.5 - delta)))


def least_risk(loss: Any, probability: float) -> float:
    """l*(mu): the expected loss of the best prediction.

    Examples
    --------
    >>> from tunefree.losses import Logistic
    >>> round(least_risk(Logistic(), 0.5), 6)
    0.693147
    """
    return risk(loss, probability, loss.link(probability)) if 0.0 < probability < 1.0 else 0.0


def risk(loss: Any, probability: float, prediction: float) -> float:
    """mu phi(h) + (1 - mu) phi(-h): the expected loss of a prediction h.

    Examples
    --------
    >>> from tunefree.losses import Square
    >>> risk(Square(), 0.75, 0.0)
    1.0
    """
    favourable = probability * loss.value(1.0, prediction) if probability > 0.0 else 0.0
    return favourable + ((1.0 - probability) * loss.value(-1.0, prediction) if probability < 1.0 else 0.0)


def log_odds(probability: float) -> float:
    """ln(mu / (1 - mu)), infinite at 0 and 1.

    Examples
    --------
    >>> log_odds(0.5), log_odds(1.0)
    (0.0, inf)
    """
    if probability <= 0.0 or probability >= 1.0:
        return -math.inf if probability <= 0.0 else math.inf
    return math.log(probability) - math.log1p(-probability)


def sigmoid(log_odds: Any) -> np.ndarray:
    """1 / (1 + exp(-log_odds)), without overflow: the probabilities of log-odds.

    Examples
    --------
    >>> sigmoid([-1000.0, 0.0])
    array([0. , 0.5])
    """
    small = np.exp(-np.abs(log_odds))
    return np.where(np.asarray(log_odds) >= 0, 1.0, small) / (1.0 + small)
