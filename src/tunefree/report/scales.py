"""Scales of charts: from values to places on an axis, with ticks at round numbers."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

LINEAR, LOG, SYMLOG = "linear", "log", "symlog"
MOST_TICKS = 5
ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)  # times a power of ten, between ticks


class Scale(NamedTuple):
    """An axis from ``low`` to ``high``."""

    low: float
    high: float
    kind: str = LINEAR
    linear_up_to: float = 1.0  # of a symmetric logarithm

    def place(self, values: np.ndarray) -> np.ndarray:
        """Places from 0 to 1, beyond for values outside.

        Parameters
        ----------
        values : array

        Examples
        --------
        >>> Scale(1.0, 100.0, LOG).place(np.array([1.0, 10.0]))
        array([0. , 0.5])
        """
        low, high = self._transform(np.array([self.low, self.high], np.float64))
        return (self._transform(np.asarray(values, np.float64)) - low) / max(high - low, 1e-300)

    def _transform(self, values: np.ndarray) -> np.ndarray:
        if self.kind == LOG:
            return np.log(np.maximum(values, 1e-300))
        if self.kind == SYMLOG:
            return np.arcsinh(values / self.linear_up_to)
        return values

    def ticks(self) -> list[tuple[float, str]]:
        """Round numbers within the axis, as values and texts.

        Examples
        --------
        >>> [text for _, text in Scale(0.0, 0.34).ticks()]
        ['0', '0.1', '0.2', '0.3']
        >>> [text for _, text in Scale(60.0, 33000.0, LOG).ticks()]
        ['100', '1,000', '10,000']
        """
        values = self._linear() if self.kind == LINEAR else self._powers()
        return [(value, told(value)) for value in values]

    def _linear(self) -> list[float]:
        span = self.high - self.low
        if not (math.isfinite(span) and span > 0.0):
            return [self.low]
        unit = 10.0 ** math.floor(math.log10(span / MOST_TICKS))
        step = next(unit * factor for factor in ROUND if span / (unit * factor) <= MOST_TICKS)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(number * step, 12) if abs(step) < 1e6 else number * step for number in range(first, last + 1)]

    def _powers(self) -> list[float]:
        low, high = (self.low, self.high) if self.kind == LOG else (self.linear_up_to, max(-self.low, self.high))
        first, last = math.floor(math.log10(max(low, 1e-300))), math.ceil(math.log10(max(high, 1e-300)))
        between = (1.0, 2.0, 5.0) if last - first <= 2 else (1.0,)
        step = max(1, (last - first) // MOST_TICKS)
        found = [factor * 10.0**power for power in range(first, last + 1, step) for factor in between]
        if self.kind == SYMLOG:
            found = sorted([*(-value for value in found), 0.0, *found])
        return [value for value in found if self.low <= value <= self.high * (1.0 + 1e-9)]


def told(value: float) -> str:
    """A round number as a text.

    Examples
    --------
    >>> told(20000.0), told(0.25), told(1e9), told(-0.0)
    ('20,000', '0.25', '1e+09', '0')
    """
    if value == 0.0:
        return "0"
    return f"{value:,.6g}" if 1e-4 <= abs(value) < 1e7 else f"{value:.3g}"


def spanning(values: np.ndarray, margin: float = 0.05, zero: bool = False) -> tuple[float, float]:
    """The range of finite values with a margin, which holds 0 if ``zero``.

    Examples
    --------
    >>> spanning(np.array([1.0, 3.0, np.nan]), 0.25)
    (0.5, 3.5)
    """
    known = np.asarray(values, np.float64)
    known = known[np.isfinite(known)]
    if zero:
        known = np.append(known, 0.0)
    if not len(known):
        return 0.0, 1.0
    low, high = float(known.min()), float(known.max())
    if low == high:
        room = abs(low) / 2 or 0.5
        return low - room, high + room
    room = margin * (high - low)
    return low - room, high + room


def spread(places: list[float], gap: float, top: float) -> list[float]:
    """Move places apart, as little as possible in the sense of least squares; their order stays.

    Parameters
    ----------
    places : list of float
    gap : float
        Least distance of two places.
    top : float
        The places returned lie between 0 and this, if there is room.

    Returns
    -------
    list of float

    Examples
    --------
    >>> [round(place, 2) for place in spread([0.5, 0.52, 0.1], 0.1, 0.9)]
    [0.46, 0.56, 0.1]
    >>> [round(place, 2) for place in spread([0.95, 0.94], 0.1, 0.9)]
    [0.9, 0.8]
    """
    order = np.argsort(places, kind="stable")
    gaps = gap * np.arange(len(places))
    # Without their gaps the places must not decrease: isotonic regression, by the min-max formula.
    left = np.asarray(places)[order] - gaps
    n = len(left)
    level = [max(min(left[a : b + 1].mean() for b in range(k, n)) for a in range(k + 1)) for k in range(n)]
    moved = np.empty(n)
    moved[order] = np.clip(level, 0.0, max(top - gap * (n - 1), 0.0)) + gaps
    return moved.tolist()
