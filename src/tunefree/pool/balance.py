"""Balance: constants that make the sum of predicted means equal to the sum of the targets after training.

Wuthrich: Bias regularization in neural network models for general insurance pricing (European Actuarial Journal 10,
2020): a model of means is balanced if its predictions of the rows that it learned are as large in total as their
targets. Boosted trees of all rows are (:mod:`tunefree.generations.boosted`). A mixture of logarithms is not, so a
constant is added to them when the pass ends, which makes its predictions of a sample of the rows as large in total as
those of the newest boosted trees. Known rows are predicted to be as large in total as new ones would be. Targets of the
sample would be a worse measure: they vary more than predictions do.

Where the mean has changed along the stream, the sum over all rows is not what the latest ones tell. So the constant is
the nearest that the evidence does not refute: with predictions mu_t of rows t that nobody had learned, and weights
w_t = t^2, as those of the mixture in their means, it lies between the logarithms of

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

WIDE = 2**7
MOST_ROWS = 2**13  # of the sample; of rows of more than WIDE columns it has fewer
MOST_TERM = 1e145  # of a sum, so that sums of squares are finite


class Sampled(NamedTuple):
    """Rows of a sample, and their weights."""

    X: Block
    weights: Annotated[np.ndarray, "float64[n]"]


class Balance(Part):
    """The constants by which the logarithms that a pool predicts are raised, and the sums that decide them.

    ``shifts`` are these constants for rows of each context (:mod:`tunefree.pool.contexts`). Rows whose number the
    ``step`` divides, a power of two, are the sample. ``sums`` are of the targets, predictions and squared residuals of
    rows that are evidence, with weights w_t, and of the targets of all rows, with their own.
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
        """Let rows be candidates, whose numbers count those learned with each, and which have so many columns."""
        rows = np.flatnonzero((weight > 0.0) & (numbers % self.step == 0))
        if len(rows):
            self.parts.append(Sampled(together([rows_at(X, rows)]), weight[rows]))
        most = MOST_ROWS * WIDE // max(n_columns, WIDE)
        while sum(len(part.weights) for part in self.parts) > most:
            self.step *= 2
            sample, weights = self.sample
            rows = np.arange(1, len(weights), 2)  # numbers of the sample are all multiples of the step before
            self.parts = [Sampled(rows_at(sample, rows), weights[rows])]

    @property
    def sample(self) -> Sampled:
        """The rows of the sample, which is not empty."""
        sample: Sampled = joined(self.parts)
        return sample

    def prepare(self) -> None:
        """Bring the rows of the sample together."""
        self.parts = [self.sample] if self.parts else []

    def finish(self, members: Members, predict: Callable[[int, np.ndarray], np.ndarray]) -> None:
        """Know the constants for predictions of rows to come.

        ``predict`` makes logarithms (n, 1) of rows of a context from those of members, (n, M, 1).
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
        """Logarithms of the totals over the sample by the newest boosted trees, and by each context; 0 if unknown."""
        growth = members.growth
        if growth is None or not growth.awake.get((WHOLE, TREES[0])) or not self.parts:
            return 0.0, np.zeros(2)
        X, weights = self.sample
        predictions = members.predict(X)
        tree_predictions = predictions[:, members.slots[Slot(WHOLE, TREES[0], 0, 0)], 0]
        totals = [_total(predict(number, predictions)[:, 0], weights) for number in range(2)]
        return _total(tree_predictions, weights), np.array(totals)


def write_before_events(
    sums: tuple[float, float], y: np.ndarray, weight: np.ndarray, evidence: np.ndarray, logarithms: np.ndarray
) -> None:
    """Write the logarithms (n, 1) predicted of rows up to the first event that is evidence, where there was none.

    ``sums`` are those of the weighted targets and of the weights of the rows before.
    """
    events = np.flatnonzero((y > 0.0) & (evidence > 0.0))
    n = int(events[0]) + 1 if len(events) else len(y)
    with np.errstate(over="ignore"):
        terms = np.stack([weight * y, weight], axis=1)[: n - 1]
    totals = np.cumsum(np.concatenate([[sums], terms]), axis=0)
    logarithms[:n, 0] = logarithm_of_few(*totals.T)


def _total(logarithms: np.ndarray, weights: np.ndarray) -> float:
    """The logarithm of the sum of means, by weight.

    >>> round(_total(np.log([2.0, 4.0]), np.array([1.0, 0.5])), 9) == round(math.log(4.0), 9)
    True
    """
    peak = float(logarithms.max())
    return peak + math.log(float(weights @ np.exp(logarithms - peak)))
