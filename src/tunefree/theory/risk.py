"""Online-to-batch conversion: a bound on the risk from the progressive losses of one pass.

Each row is predicted before it is learned. For independent and identically distributed rows, the conditional mean of
the loss X_t, scaled to [0, 1], is the risk mu_t of the model at round t. So sum (mu_t - X_t) is a martingale. For every
l > 0

    prod_t exp(-l X_t) / (1 - c mu_t),  c = 1 - exp(-l),        (Hoeffding 1963, (4.1): E exp(-l X) <= 1 - c mu)
    prod_t exp(l (mu_t - X_t) - psi(l) (X_t - m_t)^2),  psi(l) = -ln(1 - l) - l, l < 1, m_t known before X_t,
                                                      (Fan, Grama, Liu 2015; Howard et al. 2021, Theorem 4)

are supermartingales that start at 1, and so is every average of them. With S = sum X_t, V = sum (X_t - m_t)^2 and mu
the mean of mu_1 .. mu_T, the first is at least exp(-l S - T ln(1 - c mu)) by Jensen, and the second is
exp(l (T mu - S) - psi(l) V). By Ville's inequality the probability that their average ever exceeds 1 / delta is at most
delta. So with probability at least 1 - delta, for all T at once, mu is at most the value at which the average reaches
1 / delta. The first kind is tighter for classification errors, the second for losses of small variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from tunefree.core.schema import Number, Size
from tunefree.theory.exchangeability import log_mean

_CHERNOFF = 2.0 ** np.arange(3, -14, -1)  # grid of l; averaging over N values costs at most a factor N in 1 / delta
_BERNSTEIN = 2.0 ** np.arange(-1, -14, -1)


@dataclass
class Progressive:
    """Progressive validation (prequential) losses, and the implied bound on the risk.

    Losses are clipped to a ceiling: 1 for errors. With B for log-losses in nats, the bound is for the risk of
    min(log-loss, B); the log-loss of probabilities of K classes, mixed with a share K exp(-B) of the uniform
    distribution, exceeds it by at most -ln(1 - K exp(-B)).

    >>> errors = Progressive()
    >>> errors.add(np.ones(1000), np.arange(1000) % 10 == 0)
    >>> round(errors.total / errors.rows, 3), round(errors.bound(0.05), 3)
    (0.1, 0.135)
    """

    ceiling: Annotated[float, Number(5e-324)] = 1.0
    rows: int = 0
    total: Size = 0.0  # S: sum of the losses, clipped and divided by the ceiling
    spread: Size = 0.0  # V: sum of squared differences between each loss and the mean of the losses before it
    unweighted: bool = True  # whether all sample weights were 1

    def add(self, weight: ArrayLike, losses: ArrayLike) -> None:
        """Add rows in the order in which they were learned; the sums do not depend on batch boundaries."""
        clipped = np.clip(np.asarray(losses, np.float64), 0.0, self.ceiling) / self.ceiling
        totals = np.cumsum(np.concatenate([[self.total], clipped]))
        means = (totals[:-1] + 0.5) / (self.rows + np.arange(1.0, len(clipped) + 1.0))
        self.spread = float(np.cumsum(np.concatenate([[self.spread], (clipped - means) ** 2]))[-1])
        self.total, self.rows = float(totals[-1]), self.rows + len(clipped)
        self.unweighted = self.unweighted and bool((np.asarray(weight) == 1.0).all())

    def bound(self, delta: float = 0.05) -> float | None:
        """Upper bound on the mean risk of the models of all rounds, with probability at least 1 - delta.

        The bound holds for one pass over independent and identically distributed rows, for any stopping time. The mean
        risk is the risk of the model of a round drawn at random. For log-loss it also bounds the risk of the average of
        the predicted probabilities (not margins) over the rounds. It does not bound the risk of the last model or of
        averaged weights. It is None if there are no rows or a sample weight is not 1, since the inequality is for
        unweighted means.
        """
        if not self.unweighted or self.rows == 0:
            return None
        low, high = self.total / self.rows, 1.0
        for _ in range(60):
            middle = (low + high) / 2.0
            low, high = (low, middle) if self._log_evidence(middle) >= -math.log(delta) else (middle, high)
        return high * self.ceiling

    def _log_evidence(self, mean: float) -> float:
        """Logarithm of the average of the supermartingales at a mean risk of ``mean``."""
        chernoff = -_CHERNOFF * self.total - self.rows * np.log1p(np.expm1(-_CHERNOFF) * mean)
        variance = -np.log1p(-_BERNSTEIN) - _BERNSTEIN
        bernstein = _BERNSTEIN * (self.rows * mean - self.total) - variance * self.spread
        return log_mean(np.concatenate([chernoff, bernstein]))
