"""Metrics of counts, amounts and rates: the part of the deviance explained, actual over expected, lift, Gini.

The ordered Lorenz curve is that of Frees, Meyers, Cummings: Insurance ratemaking and a Gini index (Journal of Risk and
Insurance 2014): rows are in the order of the predicted rate, and shares of the claims are drawn over shares of the
exposure.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.losses.deviances import Tweedie
from tunefree.losses.objectives import Objective, measured

DECILES = 10


class Decile(NamedTuple):
    """A tenth of the exposure, in the order of the predicted rates."""

    exposure: float
    predicted: float  # rate
    actual: float  # rate
    actual_over_expected: float


def count_metrics(
    power: float,
    exposure: np.ndarray,
    rates: np.ndarray,
    predicted: np.ndarray,
    weight: np.ndarray,
    losses: np.ndarray,
) -> dict[str, float]:
    """Metrics of rows whose weights in deviances are 0 where they do not count.

    ``power``: of the variance.
    ``exposure`` (n,): times the sample weight.
    ``weight`` (n,): of the deviances of rates.
    ``losses`` (n,): half the deviances.

    >>> y, predicted = np.array([0.0, 2.0]), np.array([0.5, 1.5])
    >>> metrics = count_metrics(1.0, np.ones(2), y, predicted, np.ones(2), np.array([0.5, 0.075364145]))
    >>> {name: round(value, 3) for name, value in metrics.items()}
    {'deviance': 0.575, 'd2': 0.585, 'actual_over_expected': 1.0, 'gini': 0.5}
    """
    total = weight.sum()
    if not total > 0.0:
        return dict.fromkeys(("deviance", "d2", "actual_over_expected", "gini"), math.nan)
    exposure = np.where(weight > 0.0, exposure, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        deviance, mean = 2.0 * float(weight @ losses / total), float(weight @ rates / total)
        at_mean = np.full((len(rates), 1), math.log(mean) if mean > 0.0 else 0.0)
        least = 2.0 * float(weight @ measured(Objective("regression", Tweedie(power)), rates, at_mean) / total)
        actual, expected = float(exposure @ rates), float(exposure @ predicted)
    d2 = 1.0 - deviance / least if least > 0.0 and mean > 0.0 else math.nan
    ratio = actual / expected if expected > 0.0 else math.nan
    return {"deviance": deviance, "d2": d2, "actual_over_expected": ratio, "gini": gini(rates, predicted, exposure)}


def gini(rates: np.ndarray, predicted: np.ndarray, exposure: np.ndarray) -> float:
    """Twice the area between the ordered Lorenz curve and the diagonal; NaN where nothing was counted.

    >>> gini(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.1, 0.1, 0.2, 0.3]), np.ones(4))
    0.5
    """
    order = np.argsort(predicted, kind="stable")
    last = np.append(np.flatnonzero(np.diff(predicted[order])), len(order) - 1)  # rows of one prediction go together
    shares, claims = np.cumsum(exposure[order])[last], np.cumsum((exposure * rates)[order])[last]
    if not (shares[-1] > 0.0 and 0.0 < claims[-1] < math.inf):
        return math.nan
    shares, claims = np.append(0.0, shares / shares[-1]), np.append(0.0, claims / claims[-1])
    return float(1.0 - np.sum(np.diff(shares) * (claims[1:] + claims[:-1])))


def lift(exposure: np.ndarray, rates: np.ndarray, predicted: np.ndarray) -> list[Decile]:
    """Predicted and actual rates, by tenths of the exposure in the order of the predicted rates.

    >>> y, predicted = np.array([0.0, 1.0, 1.0, 2.0]), np.array([0.5, 0.5, 1.0, 2.0])
    >>> [decile.actual_over_expected for decile in lift(np.ones(4), y, predicted)]
    [0.0, 2.0, 1.0, 1.0]
    """
    return [
        Decile(exposed, expected, actual, actual / expected if expected > 0.0 else math.nan)
        for exposed, expected, actual in _by_decile(exposure, predicted, predicted, rates)
    ]


def double_lift(exposure: np.ndarray, rates: np.ndarray, first: np.ndarray, second: np.ndarray) -> list[list[float]]:
    """Rates predicted by two models and actual rates, by tenths of the exposure in the order of the ratio of the two.

    Each has its exposure, and the rates that the first and the second predict and that happened.
    Where models differ most, the better one is nearer to what happened (Goldburd, Khare, Tevet, Guller: Generalized
    linear models for insurance rating, CAS Monograph 5, 2020, section 7.2.2).

    >>> rates, first, second = np.array([0.0, 2.0]), np.array([0.5, 1.5]), np.ones(2)
    >>> double_lift(np.ones(2), rates, first, second)
    [[1.0, 0.5, 1.0, 0.0], [1.0, 1.5, 1.0, 2.0]]
    """
    with np.errstate(divide="ignore", over="ignore"):
        ratio = np.where(second > 0.0, first / np.where(second > 0.0, second, 1.0), math.inf)
    return _by_decile(exposure, ratio, first, second, rates)


def _by_decile(exposure: np.ndarray, scores: np.ndarray, *rates: np.ndarray) -> list[list[float]]:
    """Exposures and mean rates, by tenths of the exposure in the order of scores; none where nothing was exposed."""
    order = np.argsort(scores, kind="stable")
    exposure = exposure[order]
    if not exposure.sum() > 0.0:
        return []
    places = parts_by_mass(exposure, DECILES)
    sums = [np.bincount(places, exposure * of, DECILES) for of in (1.0, *(array[order] for array in rates))]
    return [[size, *(of / size for of in rest)] for size, *rest in np.transpose(sums).tolist() if size > 0.0]


def parts_by_mass(masses: np.ndarray, parts: int) -> np.ndarray:
    """The part (n,) of each of masses in their order, of parts that weigh about the same: that in which its middle is.

    >>> parts_by_mass(np.array([1.0, 1.0, 1.0, 3.0]), 2)
    array([0, 0, 0, 1])
    """
    middles = (np.cumsum(masses) - masses / 2.0) / masses.sum()
    return np.minimum((middles * parts).astype(np.int64), parts - 1)
