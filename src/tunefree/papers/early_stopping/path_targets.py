"""Targets as the subgradient method takes them, and probabilities of the margins that it predicts.

Classes are encoded, and numbers are in units of their spread. Margins become probabilities by the loss's link function,
or by temperature scaling where it has none.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from tunefree.losses import Logistic
from tunefree.losses.objectives import Binary, Multinomial, OneAgainstAll
from tunefree.model.calibration import of_classes as margins_of_classes
from tunefree.papers.early_stopping.preparation import shares
from tunefree.papers.early_stopping.problem import absolute_errors, wrong_classes


class Targets(NamedTuple):
    """Targets as the method takes them, and how to read what it predicts."""

    y: np.ndarray  # (n,) float64
    exact: np.ndarray  # (n,) float64, the same without any rounding: by them rows are told apart
    strata: np.ndarray  # (n,) rows held out are a share of each stratum
    objective: Any
    loss: Any  # of one output, in the method's units
    n_outputs: int
    errors: Any
    bound: float  # largest absolute target
    unit: float = 1.0  # of predictions
    loss_unit: float = 1.0  # of losses
    centre: float = 0.0  # prediction that f = 0 stands for

    def some(self, rows: np.ndarray) -> Targets:
        """Those of some rows."""
        return self._replace(y=self.y[rows], exact=self.exact[rows], strata=self.strata[rows])


def of_classes(loss: Any, codes: np.ndarray, n_classes: int) -> Targets:
    """Targets of classes, from the place of each row's label among them."""
    if n_classes == 2:
        return Targets(2.0 * codes - 1.0, 1.0 * codes, codes, Binary(loss, 0.0), loss, 1, wrong_classes, 1.0)
    objective: Any = Multinomial(1.0) if isinstance(loss, Logistic) else OneAgainstAll(loss, 0.0)
    return Targets(1.0 * codes, 1.0 * codes, codes, objective, loss, n_classes, wrong_classes, 1.0)


def of_numbers(loss: Any, y: np.ndarray, weight: np.ndarray) -> Targets:
    """Targets minus their mean, in units of the power of two below their standard deviation; the loss follows."""
    _, exponent = np.frexp(np.abs(y).max(initial=0.0))
    largest = np.ldexp(1.0, max(int(exponent) - 1, -1022))
    relative, share = y / largest, shares(weight)
    centre = float((share * relative).sum())
    spread = float(np.sqrt((share * np.square(relative - centre)).sum()))
    _, exponent = np.frexp(spread)
    power = float(np.ldexp(1.0, int(exponent) - 1)) if spread > 1e-12 else 1.0
    unit = max(power * largest, 2.0**-1022)
    power = unit / largest
    targets = (relative - centre) / power
    return in_units(loss, targets, relative, float(np.abs(targets).max(initial=0.0)), unit, centre / power)


def in_units(loss: Any, targets: np.ndarray, exact: np.ndarray, bound: float, unit: float, centre: float) -> Targets:
    """Targets that are in units already; the loss follows."""
    scaled_loss, loss_unit = loss.rescaled(unit)
    strata = np.zeros(len(targets), np.int64)
    return Targets(
        targets,
        exact,
        strata,
        Binary(scaled_loss, 0.0),
        scaled_loss,
        1,
        absolute_errors,
        bound,
        unit,
        loss_unit,
        centre,
    )


def log_odds(loss: Any, margins: np.ndarray, temperature: Any) -> np.ndarray:
    """Logarithms (n, classes) of what is proportional to the probabilities, none of which is taken for 0.

    ``temperature``: what margins are multiplied by; None for losses whose link function has an inverse.
    """
    if isinstance(loss, Logistic):
        return margins_of_classes(margins)
    if not loss.has_inverse_link:
        return temperature * margins_of_classes(margins)
    return np.log(np.maximum(probabilities(loss, margins, temperature), np.finfo(np.float64).eps))


def probabilities(loss: Any, margins: np.ndarray, temperature: Any) -> np.ndarray:
    """Class probabilities (n, classes) of margins; see :func:`log_odds`."""
    if not loss.has_inverse_link:
        return softmax(temperature * margins_of_classes(margins), axis=1)
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

    ``codes`` (n,): the class of each row.
    ``weight`` (n,): of sum 1.
    Returns: between 0.001 and 1000 over the margins' mean size.
    """
    size = float(weight @ np.abs(margins).max(axis=1))
    if not size > 0.0:
        return 1.0
    scaled = margins / size

    def log_loss(logarithm: float) -> float:
        odds = log_softmax(np.exp(logarithm) * scaled, axis=1)
        return -float(weight @ odds[np.arange(len(codes)), codes])

    return float(np.exp(minimize_scalar(log_loss, bounds=(-7.0, 7.0), method="bounded").x)) / size
