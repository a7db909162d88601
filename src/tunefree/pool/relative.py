"""Weights of rows over their running mean, for learners and mixtures that must not depend on the scale of weights."""

from __future__ import annotations

import numpy as np

from tunefree.core.numbers import power_below
from tunefree.core.part import LEARNED, Part, number
from tunefree.core.schema import COUNT, Number

MOST = 1e280  # times the first weight, so that sums do not overflow


class RelativeWeights(Part):
    """Divides weights by the mean of those before; each weight is in its mean.

    The ``unit`` is the power of two next below the first weight, and ``mass`` the sum of the weights in such units,
    over ``rows`` of a weight above 0.

    >>> RelativeWeights().of(np.array([7.0, 0.0, 21.0]))
    array([1. , 0. , 1.5])
    """

    rows = number(LEARNED, COUNT)
    unit = number(LEARNED, Number(0))
    mass = number(LEARNED, Number(0))

    def __init__(self) -> None:
        self.rows, self.unit, self.mass = 0, 0.0, 0.0

    def of(self, weight: np.ndarray) -> np.ndarray:
        """Relative weights (n,) of the next rows; 0 stays 0.

        In single precision, so that rounding does not tell constant weights from none.
        """
        if self.unit == 0.0 and (weight > 0.0).any():
            self.unit = float(power_below(weight[weight > 0.0][0]))
        if self.unit > 0.0 and self.mass == self.rows and (weight == self.unit).all():  # all weights so far are one
            self.rows, self.mass = self.rows + len(weight), self.mass + len(weight)
            return np.ones(len(weight))
        terms = np.empty(len(weight) + 1)
        terms[0], scaled = self.mass, terms[1:]
        with np.errstate(over="ignore"):
            scaled[:] = np.minimum(weight / self.unit, MOST) if self.unit > 0.0 else weight
        totals, counts = terms.cumsum()[1:], self.rows + (weight > 0.0).cumsum()
        if len(weight):
            self.mass, self.rows = float(totals[-1]), int(counts[-1])
        relative = np.divide(scaled * counts, totals, out=np.zeros(len(weight)), where=totals > 0.0)
        return relative.astype(np.float32).astype(np.float64)

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return min(self.unit * self.mass, MOST)
