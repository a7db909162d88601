"""From margins to class probabilities: by the loss's link function, or by temperature scaling where it has none."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from tunefree.losses import Logistic
from tunefree.model.calibration import of_classes


def log_odds(loss: Any, margins: np.ndarray, temperature: Any) -> np.ndarray:
    """Logarithms (n, classes) of what is proportional to the probabilities, none of which is taken for 0.

    Parameters
    ----------
    loss : loss
    margins : (n, K) array
    temperature : float or None
        What margins are multiplied by; None for losses whose link function has an inverse.
    """
    if isinstance(loss, Logistic):
        return of_classes(margins)
    if not loss.has_inverse_link:
        return temperature * of_classes(margins)
    return np.log(np.maximum(probabilities(loss, margins, temperature), np.finfo(np.float64).eps))


def probabilities(loss: Any, margins: np.ndarray, temperature: Any) -> np.ndarray:
    """Class probabilities (n, classes) of margins; see :func:`log_odds`."""
    if not loss.has_inverse_link:
        return softmax(temperature * of_classes(margins), axis=1)
    if margins.shape[1] == 1:
        upper = loss.inverse_link(margins[:, 0])
        return np.stack([1.0 - upper, upper], axis=1)
    if isinstance(loss, Logistic):
        return softmax(margins, axis=1)
    each = loss.inverse_link(margins)
    each[~each.any(axis=1)] = 1.0
    return each / each.sum(axis=1, keepdims=True)


def fit_temperature(margins: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> float:
    """The a for which softmax(a m) has the least log-loss: temperature scaling (Guo, Pleiss, Sun, Weinberger 2017).

    Parameters
    ----------
    margins : (n, K) array
    codes : (n,) array
        The class of each row.
    weight : (n,) array
        Of sum 1.

    Returns
    -------
    float
        Between 0.001 and 1000 over the margins' mean size.
    """
    size = float(weight @ np.abs(margins).max(axis=1))
    if not size > 0.0:
        return 1.0
    scaled = margins / size

    def log_loss(logarithm: float) -> float:
        odds = log_softmax(np.exp(logarithm) * scaled, axis=1)
        return -float(weight @ odds[np.arange(len(codes)), codes])

    return float(np.exp(minimize_scalar(log_loss, bounds=(-7.0, 7.0), method="bounded").x)) / size
