"""The ratio of the expected error of predictions of rows to come to the error of earlier predictions.

Row t is predicted by generations of trees that were grown on the b rows up to the last birth, and by online members and
a mixture that learned all rows before; rows to come are predicted by generations that were grown on all n rows. So the
expected root E of a residual is a function of r = sqrt(b t), and of n for rows to come. A line in log r, which is what
a power law nearly is over a few doublings (Hestness et al.: Deep learning scaling is predictable, empirically, 2017),
is fitted to the roots by weighted least squares,

    E(r) = m (1 + s (log r - x)),      m and x the means of the roots and of log r,

and a residual, whose size is the square of its root, is expected to be (E(n) / E(r))^2 times as large. The slope s is
known up to a standard error (White: A heteroskedasticity-consistent covariance matrix, Econometrica 1980). So that
intervals are too wide rather than too narrow, one standard error is added to it; and within one of 0 it counts as 0.
It is above 0 where the world changes, and later rows are harder. Where residuals fall faster than a line can, as where
the columns determine the target, the line would end below them: they are expected to fall by at most 1 / r.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.generations import clocks
from tunefree.generations.reservoir import MOST_ROWS

LEAST = 0.1  # of E(r) over m


class LearningCurve(NamedTuple):
    """Expected roots of residuals by the rows that were learned before.

    >>> numbers = np.arange(33, 6000)
    >>> roots = rows_learned(numbers) ** -0.1
    >>> curve = LearningCurve.fitted(numbers, roots, np.ones(len(roots)), 6000)
    >>> curve.factors(np.array([1000, 5999])).round(2)
    array([0.65, 0.96])
    """

    slope: float  # s
    middle: float  # x
    rows: int  # n
    is_known: bool = True  # whether residuals tell of it; else it is flat

    @classmethod
    def fitted(cls, numbers: np.ndarray, roots: np.ndarray, weights: np.ndarray, rows: int) -> LearningCurve:
        """The curve of rows by their numbers (n,), from 1, and the roots of their residuals, of so many rows."""
        logs, total, largest = np.log(rows_learned(numbers)), float(weights.sum()), float(roots.max(initial=0.0))
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
        """Ratios (n,) of the expected residuals of rows to come to the residuals of rows with these numbers."""
        at_end = 0.5 * np.log(max(float(min(self.rows, MOST_ROWS)) * self.rows, 1.0))
        logs = np.log(rows_learned(numbers))
        factors: np.ndarray = (self._expected(at_end) / self._expected(logs)) ** 2
        return np.maximum(factors, np.exp(np.minimum(logs - at_end, 0.0)))

    def _expected(self, logs: Any) -> Any:
        """E(r) over m."""
        return np.maximum(1.0 + self.slope * (logs - self.middle), LEAST)


def rows_learned(numbers: np.ndarray) -> np.ndarray:
    """r of the rows of these numbers (n,), from 1: the mean of logarithms over trees and what learns online.

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
