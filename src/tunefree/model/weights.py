"""Weights relative to units of the features: in other units, averaged, and side by side.

A model that learns copies its weights some dozens of times. Each copy is one pass over them, in compiled code.
"""

from __future__ import annotations

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import bounded
from tunefree.model.group import Read


@compiled.inline
def in_unit(weight, own, unit):
    """A weight relative to another unit; 0 where its own is 0, since the feature was never met."""
    if own == unit:
        return weight
    found = weight * (unit / own) if own > 0.0 else 0.0
    return bounded(found) if found == found else 0.0


@compiled.entry
def _place(weights, own, units, first, placed):
    for j in range(len(units)):
        for k in range(weights.shape[1]):
            placed[j, first + k] = in_unit(weights[j, k], own[j], units[j]) if j < len(own) else 0.0


def in_units(read: Read, units: np.ndarray) -> np.ndarray:
    """Weights relative to other units (d,), which may be of more features.

    Examples
    --------
    >>> in_units((np.array([[3.0], [5.0]]), np.array([2.0, 0.0])), np.array([4.0, 1.0, 1.0])).ravel()
    array([6., 0., 0.])
    """
    placed = np.empty((len(units), read[0].shape[1]))
    _place(*read, units, 0, placed)
    return placed


@compiled.entry
def _move(average, own, weights, units, step, moved):
    for j in range(len(units)):
        for k in range(weights.shape[1]):
            old = in_unit(average[j, k], own[j], units[j]) if j < len(own) else 0.0
            moved[j, k] = bounded(old + step * (weights[j, k] - old))


def moved(average: Read | None, now: Read, step: float) -> Read:
    """An average of weights, moved by a part ``step`` of the way to the present weights; these where there is none."""
    if average is None:
        return now
    weights, units = now
    found = np.empty(weights.shape)
    _move(*average, weights, units, step, found)
    return found, units


def common_units(reads: list[Read]) -> np.ndarray:
    """Units (d,) of the features that serve all of some weights: for each feature the largest of theirs."""
    n_features = max(len(units) for _, units in reads)
    units = np.zeros(n_features)
    for _, own in reads:
        np.maximum(units[: len(own)], own, out=units[: len(own)])
    return units


def side_by_side(reads: list[Read]) -> Read:
    """Weights (d, M * K) of M candidates (d, K) in one array, relative to the same units.

    Examples
    --------
    >>> one = np.ones((1, 2))
    >>> side_by_side([(one, np.array([1.0])), (one, np.array([2.0]))])
    (array([[2., 2., 1., 1.]]), array([2.]))
    """
    units, n_outputs = common_units(reads), reads[0][0].shape[1]
    placed = np.empty((len(units), len(reads) * n_outputs))
    for m, read in enumerate(reads):
        _place(*read, units, m * n_outputs, placed)
    return placed, units
