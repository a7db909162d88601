"""Targets of losses with a logarithmic link, and exposures: counts of some time, amounts of some policies.

A row of exposure e has a mean e exp(eta): ln e is an offset of its prediction. By the deviance of
:mod:`tunefree.losses.deviances` that is a row of the rate y / e, whose weight is multiplied by e^(2 - p).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import LARGEST, MOST
from tunefree.losses import kind_of
from tunefree.losses.contract import has_log_link

NAMES = ("poisson", "gamma", "tweedie")
LOG_LINK = "poisson, gamma or tweedie"


class Fault(NamedTuple):
    """Why a number cannot be used."""

    row: int
    problem: str
    remedy: str


def has_rates(name: str | None) -> bool:
    """Whether the loss of this name has a logarithmic link."""
    return kind_of(name) in NAMES


def logarithm_of_few(events: Any, total: Any) -> Any:
    """The logarithm of the rate of rows, from the sum of their events and their total weight.

    It is the mean (k + 1/2) / (n + 1/2) of the rate under a prior near that of Jeffreys (An invariant form for the
    prior probability in estimation problems, Proceedings of the Royal Society A 186, 1946), in whose denominator 1/2 is
    added so that the first row is predicted, too.

    >>> round(float(np.exp(logarithm_of_few(0.0, 49.5))), 9)
    0.01
    """
    return np.log1p(2.0 * np.minimum(events, LARGEST)) - np.log1p(2.0 * np.minimum(total, LARGEST))


def check_has_rates(loss: Any, name: str | None) -> None:
    """Raise a ModelError if predictions of a loss are no logarithms, to which an exposure is added."""
    if not has_log_link(loss):
        raise ModelError(
            f"`exposure` is for losses of counts and amounts{f', not for {name}' if name else ''}; "
            f"pass `loss` {LOG_LINK}, or leave `exposure` out"
        )


def are_impossible(loss: Any, y: np.ndarray) -> np.ndarray:
    """A mask (n,) of targets outside the support of the distribution of a loss."""
    if not has_log_link(loss):
        return np.zeros(len(y), bool)
    return y <= 0.0 if loss.power == 2.0 else y < 0.0


def fault_of_targets(loss: Any, y: np.ndarray) -> Fault | None:
    """The first target that the distribution of a loss does not have; None if there is none.

    >>> from tunefree.losses import gamma, poisson
    >>> fault_of_targets(poisson(), np.array([1.0, 0.0, -1.0])).problem
    'the target is -1, and counts are numbers of at least 0'
    >>> fault_of_targets(gamma(), np.array([1.0, 0.0])).row
    1
    """
    is_bad = are_impossible(loss, y)
    if not is_bad.any():
        return None
    row = int(np.argmax(is_bad))
    if loss.power == 2.0:
        remedy = "leave rows without an amount out, or pass `loss` tweedie, which has amounts of 0"
        return Fault(row, f"the target is {y[row]:g}, and amounts of the gamma loss are above 0", remedy)
    kind = "counts are" if loss.power == 1.0 else "amounts of the tweedie loss are"
    remedy = "correct it, or pass `loss` square for numbers of both signs"
    return Fault(row, f"the target is {y[row]:g}, and {kind} numbers of at least 0", remedy)


def fault_of_exposures(exposure: np.ndarray) -> Fault | None:
    """The first exposure that is no number above 0; None if there is none."""
    is_bad = ~(np.isfinite(exposure) & (exposure > 0.0))
    if not is_bad.any():
        return None
    row = int(np.argmax(is_bad))
    number = "missing" if np.isnan(exposure[row]) else f"{exposure[row]:g}"
    remedy = "correct it, or leave the row out: what was exposed for no time tells nothing"
    return Fault(row, f"the exposure is {number}, and exposures are numbers above 0", remedy)


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
