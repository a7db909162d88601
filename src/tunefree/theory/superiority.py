"""Which of two sequences of predictions is better: evidence that may be looked at after any row.

Let x_t in [-1, 1] be the advantage of the first sequence at row t, and g_t in [-1, 1] a guess of it from the rows
before. For each b in [0, 1 / 2)

    exp(b sum_t (x_t - E_{t-1} x_t) - psi(b) sum_t (x_t - g_t)^2),    psi(b) = (-log(1 - 2 b) - 2 b) / 4

is a supermartingale that starts at 1 (Howard, Ramdas, McAuliffe, Sekhon 2021, theorem 4; for forecasters: Choe, Ramdas
2024, theorem 2). If the first sequence is not better on the average of the rows up to t, for any t, then the average
over several b of

    exp(b sum_t x_t - psi(b) sum_t (x_t - g_t)^2)

exceeds 1 / level at some row with probability at most ``level`` (Ville's inequality). Losses need be neither
independent nor alike. With -x_t for x_t the same holds of the second sequence.

The advantage is the difference of the two losses as a part of ``LARGEST_ADVANTAGE`` mean losses of both over the rows
before, and at most 1: a single row counts no more than that. The first row has no such mean, and is left out.

References
----------
Howard, Ramdas, McAuliffe, Sekhon. Time-uniform, nonparametric, nonasymptotic confidence sequences. Annals of
Statistics 49, 2021. Choe, Ramdas. Comparing sequential forecasters. Operations Research 72, 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tunefree.theory.exchangeability import log_mean

LEVEL = 0.001  # probability that the worse one is called better
LARGEST_ADVANTAGE = 4.0  # mean losses that a row counts, at most
_BETS = 0.45 * 2.0 ** -np.arange(12.0)  # b, on large advantages and on small ones
_COSTS = (-np.log1p(-2.0 * _BETS) - 2.0 * _BETS) / 4.0  # psi(b)


@dataclass
class Superiority:
    """Sums over rows that two sequences of predictions have in common; :meth:`add` adds rows.

    Parameters
    ----------
    rows : int
        Of positive weight, with both losses.
    weight, first, second : float
        Sum of the weights, and of the weighted losses of both.
    advantage, spread : float
        Sum of x_t, and of (x_t - g_t)^2.

    Examples
    --------
    >>> losses = np.random.default_rng(0).exponential(size=5000)
    >>> comparison = Superiority()
    >>> comparison.add(losses, losses + 0.1, np.ones(5000))
    >>> comparison.is_first_better(), comparison.is_second_better()
    (True, False)
    """

    rows: int = 0
    weight: float = 0.0
    first: float = 0.0
    second: float = 0.0
    advantage: float = 0.0
    spread: float = 0.0

    def add(self, first: np.ndarray, second: np.ndarray, weight: np.ndarray) -> None:
        """Add the losses (n,) of rows in their order; rows of weight 0, or without one of the losses, are left out.

        Nothing depends on how rows are divided into batches.
        """
        weighted = np.stack([weight * first, weight * second, weight])
        for one, other, of_row in weighted[:, (weight > 0.0) & np.isfinite(weighted).all(axis=0)].T.tolist():
            unit = LARGEST_ADVANTAGE * (self.first + self.second) / (2.0 * self.rows) if self.rows else 0.0
            if unit > 0.0:
                guess = self.advantage / self.rows
                x = min(max((other - one) / unit, -1.0), 1.0)
                self.advantage += x
                self.spread += (x - guess) ** 2
            self.rows += 1
            self.weight += of_row
            self.first += one
            self.second += other

    def means(self) -> tuple[float, float]:
        """The mean losses of both; NaN before the first row."""
        return (self.first / self.weight, self.second / self.weight) if self.weight > 0.0 else (math.nan, math.nan)

    def log_evidence(self) -> tuple[float, float]:
        """Natural logarithms of the evidence that the first is better, and that the second is."""
        cost = _COSTS * self.spread
        return log_mean(_BETS * self.advantage - cost), log_mean(-_BETS * self.advantage - cost)

    def is_first_better(self) -> bool:
        """Whether the first is better on the average of the rows so far, of which the level is ``LEVEL``."""
        return self.log_evidence()[0] >= -math.log(LEVEL)

    def is_second_better(self) -> bool:
        """Likewise of the second."""
        return self.log_evidence()[1] >= -math.log(LEVEL)
