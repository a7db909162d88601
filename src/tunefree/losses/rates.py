"""Targets and exposures for losses with a logarithmic link, such as counts per year or amounts per policy.

A row of exposure e has the mean e exp(eta): ln e is an offset of its prediction. For the deviances of
:mod:`tunefree.losses.deviances` this is equivalent to a row with the rate y / e and a weight multiplied by e^(2 - p).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import LARGEST, MOST
from tunefree.losses import kind_of
from tunefree.losses.contract import has_log_link

NAMES = ("poisson", "gamma", "tweedie")


def has_rates(name: str | None) -> bool:
    """Whether the loss with this name has a logarithmic link."""
    return kind_of(name) in NAMES


def logarithm_of_few(events: Any, total: Any) -> Any:
    """An estimate of the logarithm of the rate, from the sum of events and the total weight.

    It is the mean (k + 1/2) / (n + 1/2) of the rate under a prior close to Jeffreys' prior (An invariant form for the
    prior probability in estimation problems, Proceedings of the Royal Society A 186, 1946); the 1/2 in the denominator
    makes it finite before the first row.

    >>> round(float(np.exp(logarithm_of_few(0.0, 49.5))), 9)
    0.01
    """
    return np.log1p(2.0 * np.minimum(events, LARGEST)) - np.log1p(2.0 * np.minimum(total, LARGEST))


def check_has_rates(name: str | None) -> None:
    """Raise a ModelError if predictions of a loss are not logarithms, so that exposures do not apply."""
    if not has_rates(name):
        problem = f"`exposure` is for losses of counts and amounts{f', not for {name}' if name else ''}"
        raise ModelError(f"{problem}; pass `loss` poisson, gamma or tweedie, or leave `exposure` out")


def are_impossible(loss: Any, y: np.ndarray) -> np.ndarray:
    """A mask (n,) of targets outside the support of the loss's distribution."""
    if not has_log_link(loss):
        return np.zeros(len(y), bool)
    return y <= 0.0 if loss.power == 2.0 else y < 0.0


def problem_of_target(loss: Any, target: float) -> tuple[str, str]:
    """Why a target is outside the support of the loss's distribution, and the remedy.

    >>> from tunefree.losses import poisson
    >>> problem_of_target(poisson(), -1.0)[0]
    'the target is -1, and counts are numbers of at least 0'
    """
    if loss.power == 2.0:
        remedy = "leave rows without an amount out, or pass `loss` tweedie, which has amounts of 0"
        return f"the target is {target:g}, and amounts of the gamma loss are above 0", remedy
    kind = "counts are" if loss.power == 1.0 else "amounts of the tweedie loss are"
    remedy = "correct it, or pass `loss` square for numbers of both signs"
    return f"the target is {target:g}, and {kind} numbers of at least 0", remedy


def as_rates(loss: Any, y: np.ndarray, weight: np.ndarray, exposure: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rates (n,) and their weights, equivalent to targets with these exposures.

    >>> from tunefree.losses import gamma, poisson
    >>> y, ones, exposure = np.array([1.0, 0.0]), np.ones(2), np.array([0.5, 0.25])
    >>> as_rates(poisson(), y, ones, exposure)
    (array([2., 0.]), array([0.5 , 0.25]))
    >>> as_rates(gamma(), np.ones(2), ones, exposure)
    (array([2., 4.]), array([1., 1.]))
    """
    with np.errstate(over="ignore"):
        return np.minimum(y / exposure, MOST), weight * exposure ** (2.0 - loss.power)
