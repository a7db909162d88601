"""The ratio of the expected error of future predictions to the error of earlier predictions.

Row t is predicted by generations of trees that were grown on the b rows up to the last birth, and by online members and
a mixture that learned all earlier rows. Future rows are predicted by generations that were grown on all n rows. So the
expected root E of a residual is a function of r = sqrt(b t), and of n for future rows. A line in log r is fitted to the
roots by weighted least squares, as a power law is nearly such a line over a few doublings (Hestness et al.: Deep
learning scaling is predictable, empirically, 2017),

    E(r) = m (1 + s (log r - x)),      m and x the means of the roots and of log r,

and a residual, whose size is the square of its root, is expected to be (E(n) / E(r))^2 times as large. The slope s has
a standard error (White: A heteroskedasticity-consistent covariance matrix, Econometrica 1980). To make intervals too
wide rather than too narrow, one standard error is added to s; a slope within one standard error of 0 counts as 0. The
slope is positive where the distribution changes and later rows are harder. Residuals may fall faster than a line, for
example where the columns determine the target. Then the line would be too low: the expected decrease is at most 1 / r.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.generations import clocks
from tunefree.generations.reservoir import MOST_ROWS

LEAST = 0.1  # smallest E(r) / m


class LearningCurve(NamedTuple):
    """Expected roots of residuals by the number of rows that were learned before.

    >>> numbers = np.arange(33, 6000)
    >>> roots = rows_learned(numbers) ** -0.1
    >>> curve = LearningCurve.fitted(numbers, roots, np.ones(len(roots)), 6000)
    >>> curve.factors(np.array([1000, 5999])).round(2)
    array([0.65, 0.96])
    """

    slope: float  # s
    middle: float  # x
    rows: int  # n
    is_known: bool = True  # whether it is fitted to residuals; else it is flat

    @classmethod
    def fitted(cls, numbers: np.ndarray, roots: np.ndarray, weights: np.ndarray, rows: int) -> LearningCurve:
        """The curve after so many rows, fitted to row numbers (n,), from 1, and the roots of their residuals."""
        logs, total, largest = np.log(rows_learned(numbers)), float(weights.sum()), float(roots.max(initial=0.0))
        if not (total > 0.0 and largest > 0.0):
            return cls(0.0, 0.0, rows)
        roots = roots / largest
        middle, mean = float(weights @ logs) / total, float(weights @ roots) / total
        centred = logs - middle
        spread = float(weights @ centred**2)
        if not (spread > 0.0 and mean > 0.0):  # a single row
            return cls(0.0, middle, rows)
        slope = float(weights @ (centred * roots)) / spread
        residuals = roots - mean - slope * centred
        error = math.sqrt(float(weights**2 @ (centred * residuals) ** 2)) / spread
        return cls((slope + error) / mean if abs(slope) > error else 0.0, middle, rows)

    def factors(self, numbers: np.ndarray) -> np.ndarray:
        """Ratios (n,) of the expected residuals of future rows to the residuals of rows with these numbers."""
        at_end = 0.5 * np.log(max(float(min(self.rows, MOST_ROWS)) * self.rows, 1.0))
        logs = np.log(rows_learned(numbers))
        factors: np.ndarray = (self._expected(at_end) / self._expected(logs)) ** 2
        return np.maximum(factors, np.exp(np.minimum(logs - at_end, 0.0)))

    def _expected(self, logs: Any) -> Any:
        """E(r) over m."""
        return np.maximum(1.0 + self.slope * (logs - self.middle), LEAST)


def rows_learned(numbers: np.ndarray) -> np.ndarray:
    """r of rows by their numbers (n,), from 1: the geometric mean of the rows learned by trees and by online members.

    >>> (rows_learned(np.array([17, 4096, 4608, 4609])) ** 2 / [17, 4096, 4608, 4609]).round()
    array([  16., 2896., 2896., 4096.])
    """
    births, takeovers, last = [clocks.FIRST / 2.0], list[int](), int(np.max(numbers, initial=0))
    while not takeovers or takeovers[-1] < last:
        birth, takeover = clocks.births(int(births[-1]))
        births.append(float(birth))
        takeovers.append(takeover)
    grown_on = np.minimum(np.array(births)[np.searchsorted(takeovers, numbers)], MOST_ROWS)
    learned: np.ndarray = np.sqrt(grown_on * numbers)
    return learned
