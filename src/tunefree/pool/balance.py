"""Balance: constants that make the sum of predicted means equal to the sum of the targets after training.

Wuthrich: Bias regularization in neural network models for general insurance pricing (European Actuarial Journal 10,
2020): a model of means is balanced if the total of its predictions for the learned rows equals the total of their
targets. Boosted trees of all rows are balanced (:mod:`tunefree.generations.boosted`). A mixture of logarithms is not.
So a constant is added to the logarithms at the end of a pass, which makes the total of the predictions for a sample of
rows equal to the total of the newest boosted trees. The constants of known rows and new rows give equal totals. The
targets of the sample are not used: they vary more than predictions.

Where the mean has changed along the stream, the total over all rows disagrees with the latest rows. So the constant is
moved into an interval that the evidence supports. With predictions mu_t of rows t before they were learned, and weights
w_t = t^2, like the weights of rows in the means of the mixture, its ends are the logarithms of

    (sum w_t y_t -/+ SURE sqrt(sum w_t^2 (y_t - mu_t)^2)) / sum w_t mu_t.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np

from tunefree.core.part import FIXED, LEARNED, RECORD, Part, array, children, number
from tunefree.core.rows import Block, rows_at, together
from tunefree.core.schema import Number
from tunefree.intervals.conformal import HASTE, SURE
from tunefree.losses.rates import logarithm_of_few
from tunefree.pool.contexts import NEW
from tunefree.pool.ledger import LearnedRows, joined
from tunefree.pool.members import Members
from tunefree.pool.slots import TREES, WHOLE, Slot
from tunefree.pool.weights_record import running

WIDE = 2**7  # columns
MOST_ROWS = 2**13  # the largest size of the sample; it is smaller for rows of more than WIDE columns
MOST_TERM = 1e145  # the largest term of a sum, so that sums of squares are finite


class Sampled(NamedTuple):
    """Rows of a sample, and their weights."""

    X: Block
    weights: Annotated[np.ndarray, "float64[n]"]


class Balance(Part):
    """The constants that are added to the logarithms predicted by a pool, and the sums that determine them.

    ``shifts`` are the constants of each context (:mod:`tunefree.pool.contexts`). The sample consists of the rows whose
    number is a multiple of ``step``, a power of two. ``sums`` are the sums of targets, predictions and squared
    residuals of rows that are evidence, weighted by w_t, and the sum of all targets, weighted by sample weights.
    """

    shifts = array("float64", (2,), FIXED)
    step = number(LEARNED, Number(1, 2**62, whole=True))
    sums = array("float64", (4,), FIXED, low=0)
    parts: list[Sampled] = children(Sampled, RECORD, axes={"p": "P"}, blank=lambda _: [])

    def __init__(self) -> None:
        self.shifts, self.step, self.sums = np.zeros(2), 1, np.zeros(4)
        self.parts = []

    def observe(self, rows: LearnedRows) -> None:
        """Add rows to the sums; rows of a weight above 0 are candidates for the sample."""
        evidence, y = np.where(rows.contexts == NEW, rows.judging, 0.0), rows.y
        with np.errstate(over="ignore"):
            means = np.minimum(np.exp(rows.mixed[:, 0]), MOST_TERM)
            weights = evidence * rows.numbers.astype(np.float64) ** HASTE
            residuals = np.clip(weights * (np.minimum(y, MOST_TERM) - means), -MOST_TERM, MOST_TERM)
            terms = np.stack([weights * y, weights * means, residuals**2, rows.weight * y], axis=1)
            self.sums = running(self.sums, np.minimum(terms, MOST_TERM**2))
        if rows.members.growth is not None:
            self._sample(rows.X, rows.weight, rows.numbers, len(rows.members.growth.columns.keys))

    def _sample(self, X: Block, weight: np.ndarray, numbers: np.ndarray, n_columns: int) -> None:
        """Add rows to the sample, by their numbers, and thin it out if it is too large for so many columns."""
        rows = np.flatnonzero((weight > 0.0) & (numbers % self.step == 0))
        if len(rows):
            self.parts.append(Sampled(together([rows_at(X, rows)]), weight[rows]))
        most = MOST_ROWS * WIDE // max(n_columns, WIDE)
        while sum(len(part.weights) for part in self.parts) > most:
            self.step *= 2
            sample, weights = self.sample
            rows = np.arange(1, len(weights), 2)  # the sample has every multiple of the old step
            self.parts = [Sampled(rows_at(sample, rows), weights[rows])]

    @property
    def sample(self) -> Sampled:
        """The rows of the sample, which must not be empty."""
        sample: Sampled = joined(self.parts)
        return sample

    def prepare(self) -> None:
        """Concatenate the rows of the sample."""
        self.parts = [self.sample] if self.parts else []

    def finish(self, members: Members, predict: Callable[[int, np.ndarray], np.ndarray]) -> None:
        """Compute the constants for predictions of future rows.

        ``predict`` computes logarithms (n, 1) for rows of a context from the logarithms of members (n, M, 1).
        """
        targets, predicted, squares, _ = self.sums.tolist()
        trees, totals = self._totals(members, predict)
        shift = trees - totals[0]
        if predicted > 0.0:
            ends = [targets + sign * SURE * math.sqrt(squares) for sign in (-1.0, 1.0)]
            low, high = (math.log(end / predicted) if end > 0.0 else -math.inf for end in ends)
            shift = min(max(shift, low), high) if high > -math.inf else shift
        self.shifts = shift + totals[0] - totals

    def _totals(self, members: Members, predict: Callable[[int, np.ndarray], np.ndarray]) -> tuple[float, np.ndarray]:
        """Logarithms of the totals predicted for the sample by the newest boosted trees and by each context; else 0."""
        growth = members.growth
        if growth is None or not growth.generations_of(WHOLE, TREES[0]) or not self.parts:
            return 0.0, np.zeros(2)
        X, weights = self.sample
        predictions = members.predict(X)
        tree_predictions = predictions[:, members.slots[Slot(WHOLE, TREES[0], 0, 0)], 0]
        totals = [_total(predict(number, predictions)[:, 0], weights) for number in range(2)]
        return _total(tree_predictions, weights), np.array(totals)


def write_before_events(
    sums: tuple[float, float], y: np.ndarray, weight: np.ndarray, evidence: np.ndarray, logarithms: np.ndarray
) -> None:
    """Overwrite the logarithms (n, 1) predicted for rows up to the first event (a target above 0) that is evidence.

    ``sums`` are the weighted sum of targets and the sum of weights of earlier rows, none of which was such an event.
    """
    events = np.flatnonzero((y > 0.0) & (evidence > 0.0))
    n = int(events[0]) + 1 if len(events) else len(y)
    with np.errstate(over="ignore"):
        terms = np.stack([weight * y, weight], axis=1)[: n - 1]
    totals = np.cumsum(np.concatenate([[sums], terms]), axis=0)
    logarithms[:n, 0] = logarithm_of_few(*totals.T)


def _total(logarithms: np.ndarray, weights: np.ndarray) -> float:
    """The logarithm of the weighted sum of means, from their logarithms.

    >>> round(_total(np.log([2.0, 4.0]), np.array([1.0, 0.5])), 9) == round(math.log(4.0), 9)
    True
    """
    peak = float(logarithms.max())
    return peak + math.log(float(weights @ np.exp(logarithms - peak)))
