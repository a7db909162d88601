"""Estimates of the excess risk and the excess classification error, if the probability of the label +1 is known.

Nitanda, Suzuki 2019, (1) and (3). The identity (3) is due to Zhang (2004): the excess risk is the expected Bregman
divergence of -l* between the probability that the link function assigns to a prediction and the true one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tunefree.papers.links import inverse_link, least_risk, link, risk


def excess_risk(loss: Any, predictions: ArrayLike, probabilities: ArrayLike) -> float:
    """Compute the mean over rows of the expected loss minus the least possible expected loss.

    The expectation over the labels is exact, so label noise does not affect the estimate.

    Parameters
    ----------
    loss : loss
        A loss with a link function.
    predictions : (n,) array
        g(x) for rows drawn from the distribution.
    probabilities : (n,) array
        Conditional probability of the label +1 for each row.

    Examples
    --------
    >>> from tunefree.losses import Logistic
    >>> excess_risk(Logistic(), [0.0, 0.0], [0.5, 0.5])
    0.0
    """
    pairs = zip(*_checked(predictions, probabilities), strict=True)
    return float(np.mean([risk(loss, mu, h) - least_risk(loss, mu) for h, mu in pairs]))


def excess_risk_by_bregman(loss: Any, predictions: ArrayLike, probabilities: ArrayLike) -> float:
    """Compute the excess risk by (3), E d(h*^-1(g(X)), P(1 | X)), for losses whose link function has an inverse.

    Parameters
    ----------
    loss, predictions, probabilities
        As in :func:`excess_risk`. Predictions must lie in the range of the link function.

    Examples
    --------
    >>> from tunefree.losses import Logistic
    >>> by_bregman = excess_risk_by_bregman(Logistic(), [1.0, -0.5], [0.6, 0.1])
    >>> abs(by_bregman - excess_risk(Logistic(), [1.0, -0.5], [0.6, 0.1])) < 1e-15
    True
    """
    predictions, probabilities = _checked(predictions, probabilities)
    pairs = zip(inverse_link(loss, predictions).tolist(), probabilities.tolist(), strict=True)
    return float(np.mean([bregman(loss, a, b) for a, b in pairs]))


def bregman(loss: Any, first: float, second: float) -> float:
    """Compute d(a, b) = -l*(b) + l*(a) + l*'(a) (b - a), the Bregman divergence of -l*.

    Parameters
    ----------
    loss : loss
        A loss with a link function.
    first, second : float
        Probabilities, the first strictly between 0 and 1.

    Returns
    -------
    divergence : float
        For the logistic loss, the Kullback-Leibler divergence KL(second || first) of the two Bernoulli distributions.

    Examples
    --------
    >>> from tunefree.losses import Square
    >>> round(bregman(Square(), 0.3, 0.8), 12)
    1.0
    """
    if not (0.0 < first < 1.0 and 0.0 <= second <= 1.0):
        raise ValueError(f"probabilities must lie between 0 and 1, not {first} and {second}")
    best = link(loss, first)
    slope = loss.value(1.0, best) - loss.value(-1.0, best)  # l*'(a), by the envelope theorem
    return -least_risk(loss, second) + least_risk(loss, first) + slope * (second - first)


def excess_error(predictions: ArrayLike, probabilities: ArrayLike) -> float:
    """Compute the classification error of the sign of the predictions minus the error of the Bayes rule.

    Parameters
    ----------
    predictions, probabilities
        As in :func:`excess_risk`. A prediction of 0 means the label -1, as everywhere in this package.

    Examples
    --------
    >>> excess_error([1.0, -1.0], [0.9, 0.75])
    0.25
    """
    predictions, probabilities = _checked(predictions, probabilities)
    wrong = (predictions > 0) != (probabilities > 0.5)
    return float(np.mean(np.where(wrong, np.abs(2.0 * probabilities - 1.0), 0.0)))


def _checked(predictions: ArrayLike, probabilities: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    predictions, probabilities = (np.asarray(a, np.float64).reshape(-1) for a in (predictions, probabilities))
    if len(predictions) != len(probabilities) or not len(predictions):
        raise ValueError(
            f"{len(predictions)} predictions and {len(probabilities)} probabilities: there must be equally many, at "
            "least one"
        )
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise ValueError("probabilities must lie between 0 and 1")
    return predictions, probabilities
