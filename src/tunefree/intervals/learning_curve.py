"""How far off predictions of rows to come will be, over how far off earlier ones were.

A row is predicted by generations of trees that were grown on the b rows up to the last birth, so the expected root E of
a residual is a function of b; rows to come are predicted by generations that were grown on all n rows. A line in log b,
which is what a power law nearly is over a few doublings (Hestness et al.: Deep learning scaling is predictable,
empirically, 2017), is fitted to the roots by weighted least squares,

    E(b) = m (1 + s (log b - x)),      m and x the means of the roots and of log b,

and a residual, whose size is the square of its root, is expected to be (E(n) / E(b))^2 times as large. The slope s is
known up to a standard error (White: A heteroskedasticity-consistent covariance matrix, Econometrica 1980). So that
intervals are too wide rather than too narrow, one standard error is added to it; and within one of 0 it counts as 0.
It is above 0 where the world changes, and later rows are harder.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tunefree.generations import clocks
from tunefree.generations.reservoir import MOST_ROWS

LEAST = 0.1  # of E(b) over m


class LearningCurve(NamedTuple):
    """Expected roots of residuals by the rows that generations were grown on.

    Examples
    --------
    >>> numbers = np.arange(33, 6000)
    >>> roots = rows_grown_on(numbers) ** -0.1
    >>> curve = LearningCurve.fitted(numbers, roots, np.ones(len(roots)), 6000)
    >>> curve.factors(np.array([1000, 5999])).round(2)
    array([0.63, 0.91])
    """

    slope: float  # s
    middle: float  # x
    rows: int  # n

    @classmethod
    def fitted(cls, numbers: np.ndarray, roots: np.ndarray, weights: np.ndarray, rows: int) -> LearningCurve:
        """The curve of rows by their numbers (n,), from 1, and the roots of their residuals, of so many rows."""
        logs, total, largest = np.log(rows_grown_on(numbers)), float(weights.sum()), float(roots.max(initial=0.0))
        if not (total > 0.0 and largest > 0.0):
            return cls(0.0, 0.0, rows)
        roots = roots / largest
        middle, mean = float(weights @ logs) / total, float(weights @ roots) / total
        centred = logs - middle
        spread = float(weights @ centred**2)
        if not (spread > 0.0 and mean > 0.0):  # all of one birth
            return cls(0.0, middle, rows)
        slope = float(weights @ (centred * roots)) / spread
        residuals = roots - mean - slope * centred
        error = math.sqrt(float(weights**2 @ (centred * residuals) ** 2)) / spread
        return cls((slope + error) / mean if abs(slope) > error else 0.0, middle, rows)

    def factors(self, numbers: np.ndarray) -> np.ndarray:
        """How much larger (n,) residuals of rows to come are expected to be than those of rows by their numbers."""
        at_end = np.log(min(self.rows, MOST_ROWS))
        expected = self._expected(np.log(rows_grown_on(numbers)))
        factors: np.ndarray = (self._expected(at_end) / expected) ** 2
        return factors

    def _expected(self, logs: np.ndarray) -> np.ndarray:
        """E(b) over m."""
        return np.maximum(1.0 + self.slope * (logs - self.middle), LEAST)


def rows_grown_on(numbers: np.ndarray) -> np.ndarray:
    """How many rows generations were grown on that predicted the rows of these numbers (n,), from 1.

    Examples
    --------
    >>> rows_grown_on(np.array([10, 17, 4096, 4608, 4609]))
    array([   8.,   16., 2896., 2896., 4096.])
    """
    births, takeovers, last = [clocks.FIRST / 2.0], list[int](), int(np.max(numbers, initial=0))
    while not takeovers or takeovers[-1] < last:
        birth, takeover = clocks.births(int(births[-1]))
        births.append(float(birth))
        takeovers.append(takeover)
    counts = np.array(births)[np.searchsorted(takeovers, numbers)]
    return np.minimum(counts, MOST_ROWS)
