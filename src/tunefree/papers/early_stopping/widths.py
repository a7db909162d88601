"""The width of a kernel for batch methods, by a few short trials along the ladder of widths."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

LEAST, MOST = -2, 6  # log2 of multiples of the median rule's gamma: the ladder's ends


def best_gamma(gamma: float, validation_loss: Callable[[float], float]) -> float:
    """The multiple of gamma by a power of two, from a quarter to 64, with the least validation loss.

    Every second one is evaluated, then the neighbours of the best of them. ``gamma`` is that of the median rule.

    Examples
    --------
    >>> asked = []
    >>> best_gamma(1.0, lambda gamma: asked.append(gamma) or abs(gamma - 7.0))
    8.0
    >>> asked
    [0.25, 1.0, 4.0, 16.0, 64.0, 2.0, 8.0]
    """
    loss = cache(lambda exponent: validation_loss(gamma * 2.0**exponent))
    coarse = min(range(LEAST, MOST + 1, 2), key=loss)
    near = [exponent for exponent in (coarse - 1, coarse + 1, coarse) if LEAST <= exponent <= MOST]
    return gamma * 2.0 ** min(near, key=loss)
