"""Targets as the subgradient method takes them, and probabilities of the margins that it predicts.

Classes are encoded, and numbers are in units of their spread. Margins become probabilities by the loss's link function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from tunefree.losses import Logistic
from tunefree.losses.objectives import Objective
from tunefree.papers.early_stopping.preparation import shares
from tunefree.papers.links import has_inverse_link, inverse_link
from tunefree.papers.subgradient import absolute_errors, wrong_classes
from tunefree.pool.calibration import margins_of_classes


class Goal(NamedTuple):
    """The objective in the method's units, and its predictions in those of the targets."""

    objective: Objective
    loss: Any  # of one output, in the method's units
    errors: Callable[[np.ndarray, np.ndarray], np.ndarray]
    n_outputs: int = 1
    bound: float = 1.0  # largest absolute target
    unit: float = 1.0  # of predictions
    loss_unit: float = 1.0  # of losses
    centre: float = 0.0  # prediction that f = 0 stands for


class Targets(NamedTuple):
    """Targets of rows."""

    y: np.ndarray  # (n,) float64, as the method takes them
    exact: np.ndarray  # (n,) float64, the same without any rounding: by them rows are told apart
    strata: np.ndarray  # (n,) rows held out are a share of each stratum


def goal_of_classes(loss: Any, n_classes: int) -> Goal:
    """The goal of a loss of classes."""
    if n_classes == 2:
        return Goal(Objective("classification", loss), loss, wrong_classes)
    objective = Objective("classification", None if isinstance(loss, Logistic) else loss)
    return Goal(objective, loss, wrong_classes, n_classes)


def goal_of_numbers(loss: Any, bound: float, unit: float, centre: float) -> Goal:
    """The goal of a loss of numbers, which follows their unit."""
    scaled, loss_unit = loss.rescaled(unit)
    return Goal(Objective("classification", scaled), scaled, absolute_errors, 1, bound, unit, loss_unit, centre)


def targets_of_classes(codes: np.ndarray, n_classes: int) -> Targets:
    """Targets of classes, from the place of each row's label among them."""
    return Targets(2.0 * codes - 1.0 if n_classes == 2 else 1.0 * codes, 1.0 * codes, codes)


def goal_and_targets_of_numbers(loss: Any, y: np.ndarray, weight: np.ndarray) -> tuple[Goal, Targets]:
    """Targets minus their mean, in units of the power of two below their standard deviation."""
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
    goal = goal_of_numbers(loss, float(np.abs(targets).max(initial=0.0)), unit, centre / power)
    return goal, Targets(targets, relative, np.zeros(len(y), np.int64))


def log_odds(loss: Any, margins: np.ndarray) -> np.ndarray:
    """Logarithms (n, classes) of numbers proportional to the probabilities, none of which is taken for 0."""
    if _are_log_odds(loss):
        return margins_of_classes(margins)
    return np.log(np.maximum(probabilities(loss, margins), np.finfo(np.float64).eps))


def probabilities(loss: Any, margins: np.ndarray) -> np.ndarray:
    """Class probabilities (n, classes) of margins."""
    if _are_log_odds(loss):
        return softmax(margins_of_classes(margins), axis=1)
    each = inverse_link(loss, margins)
    if margins.shape[1] == 1:
        return np.hstack([1.0 - each, each])
    each[~each.any(axis=1)] = 1.0
    return each / each.sum(axis=1, keepdims=True)


def _are_log_odds(loss: Any) -> bool:
    """Whether margins are log-odds, or taken for them where the loss's link function has no inverse."""
    return isinstance(loss, Logistic) or not has_inverse_link(loss)
