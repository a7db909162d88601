"""Arithmetic of terms that stays finite where numbers to predict are near the largest ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tunefree.core.numbers import LARGEST, power_below


def unit_of(arrays: Iterable[np.ndarray]) -> float:
    """The power of two next below the largest size: in units of it squares are finite, and nothing is rounded.

    >>> unit_of([np.array([-5.0, 1.0]), np.zeros(0)]), unit_of([np.zeros(2)])
    (4.0, 1.0)
    """
    longest = max((float(np.abs(array).max(initial=0.0)) for array in arrays), default=0.0)
    return float(power_below(longest)) if longest > 0.0 else 1.0


def cut(terms: np.ndarray) -> np.ndarray:
    """Terms (n, t, k) so small that sums over them, and differences of these, are finite.

    >>> cut(np.array([[[1.0], [-np.inf]]]))[0, :, 0].tolist()
    [1.0, -1.25e+307]
    """
    most = LARGEST / (4 * terms.shape[1])
    return np.clip(terms, -most, most)


def mean_of(terms: np.ndarray) -> np.ndarray:
    """The mean over rows, which is finite where the sum is not.

    >>> mean_of(np.array([1e308, 1.5e308])).item()
    1.25e+308
    """
    return (terms / max(len(terms), 1)).sum(axis=0)
