"""The record of a pass for intervals and sets: scores of rows, each predicted before it was learned.

A row counts if it is evidence: no member has learned its observation, and one row of each group counts (see
:mod:`tunefree.pool.members`). The mixture's prediction gives its score. Weights are relative, so a row of weight 2
counts as two rows after the stream, but as one row while levels follow the stream.

The score of a number is its residual in units that depend on the row (:mod:`tunefree.intervals.widths`). For the
losses of counts and amounts it is Pearson's residual (McCullagh, Nelder: Generalized linear models, 1989, eq. 2.11)

    (y - mu) / sqrt(mu^p / w)

of the rate y with the mean mu, where p is the power of the variance, and w the weight, which an exposure multiplies.
Such a row counts once whatever its weight, as the weight is its exposure. A target of 0 has the smallest possible score
whatever mu is: else intervals of rows with large means would exclude 0, even where nearly all targets are 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core.numbers import CEILING, LOG_CEILING, clipped
from tunefree.core.part import FIXED, LEARNED, RECORD, Part, argument, child, number
from tunefree.core.schema import COUNT, Number
from tunefree.generations.reservoir import Reservoir
from tunefree.intervals.adaptive import Adaptive, follow, most_missed
from tunefree.intervals.conformal import check_enough, evidence_for, levels_around, quantile, recency
from tunefree.intervals.learning_curve import LearningCurve
from tunefree.intervals.sets import class_scores
from tunefree.intervals.widths import Widths
from tunefree.losses.contract import has_log_link

COVERAGES = (0.5, 0.8, 0.9, 0.95, 0.99)  # followed on a stream
TAILS = tuple(sorted((0.5, *((1.0 + sign * coverage) / 2.0 for coverage in COVERAGES for sign in (-1.0, 1.0)))))
MOST_SCORES, MOST_RESIDUALS = 2**13, 2**12
LEAST = 2.0**-1022  # smallest exposure, so that its logarithm is finite
FIRST = 32  # rows learned before the first score; widths are grown after them, and at each doubling


def scores_of(loss: Any, candidates: np.ndarray, y: np.ndarray, units: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """The scores (n, C) of several predictions (n, C, K) of rows: residuals in units (n,), or scores of classes."""
    if loss is not None:
        residuals = clipped(y[:, None] - loss.response(candidates[:, :, 0]))
        scores = np.clip(residuals / units[:, None], -CEILING, CEILING)
        return np.where(y[:, None] <= 0.0, -CEILING, scores) if has_log_link(loss) else scores
    codes = np.arange(len(y)), y.astype(np.int64)
    return np.stack([class_scores(candidates[:, c], draws)[codes] for c in range(candidates.shape[1])], axis=1)


class Units(NamedTuple):
    """The units of residuals: widths by columns, or standard deviations by the power of the variance."""

    widths: Widths | None  # None before there are any
    power: float | None  # of the variance, for counts and amounts

    def of(self, matrix: np.ndarray, predictions: np.ndarray, exposures: np.ndarray) -> np.ndarray:
        """The units (n,) of rows by their columns, predictions and exposures; 1 before there are widths."""
        if self.power is not None:
            logs = 0.5 * (self.power * predictions - np.log(np.maximum(exposures, LEAST)))
            return np.exp(np.clip(logs, -LOG_CEILING, LOG_CEILING))
        return np.ones(len(predictions)) if self.widths is None else self.widths.of(matrix, clipped(predictions))


class ConformalRecord(Part):
    """Scores of the rows of a pass, and widths of residuals."""

    loss, power = argument(), argument()  # the loss is None for classes, the power without a logarithmic link
    rows = number(LEARNED, COUNT)  # number of learned rows
    next = number(LEARNED, Number(1, 2**62, whole=True))  # row after which widths are grown
    # A uniform sample: its targets are scores, its digests row numbers, and its column is the unit or the class.
    scores = child(Reservoir, LEARNED)
    # A uniform sample of residuals, with the prediction and the columns of each row. Widths are grown on it.
    residuals = child(Reservoir, RECORD, blank=lambda record: Reservoir(most=MOST_RESIDUALS))
    widths = child(Widths, FIXED, may_be_none=True)  # units of scores of numbers
    adaptive = child(Adaptive, LEARNED)  # follows the scores of a stream

    def __init__(self, loss: Any) -> None:
        self.loss, self.rows, self.next = loss, 0, FIRST
        self.power = loss.power if has_log_link(loss) else None
        self.scores, self.residuals = Reservoir(most=MOST_SCORES), Reservoir(most=MOST_RESIDUALS)
        self.widths = None
        self.adaptive = Adaptive.create(COVERAGES if loss is None else TAILS)

    def observe(self, rows: Any, keys: list[int], fills: list[float]) -> None:
        """Learn rows, :class:`tunefree.pool.ledger.LearnedRows`, that judge the mixture.

        Columns of trees have keys, and fill values for earlier rows without the column.
        """
        start = 0
        while start < len(rows.numbers):
            if rows.numbers[start] > self.next:  # other workers learned the rows between
                self._grow(int(rows.numbers[start]) - 1, keys)
            stop = int(np.searchsorted(rows.numbers, self.next, "right"))
            evidence = start + np.flatnonzero(rows.judging[start:stop] > 0.0)
            if len(evidence):
                self._learn(rows, evidence, fills)
            start, self.rows = stop, int(rows.numbers[stop - 1])
            if self.rows >= self.next:
                self._grow(self.rows, keys)

    def _grow(self, rows: int, keys: list[int]) -> None:
        """Grow widths after so many rows, and set the row after which they are grown again."""
        if self.loss is not None and self.power is None:
            self.widths = Widths.grown(self.residuals.kept(), keys, rows)
        while self.next <= rows:
            self.next *= 2

    def _learn(self, rows: Any, evidence: np.ndarray, fills: list[float]) -> None:
        arrays = rows.matrix, rows.mixed, rows.y, rows.weight, rows.judging, rows.numbers, rows.draws
        matrix, predictions, targets, exposures, weights, numbers, draws = (array[evidence] for array in arrays)
        digests, units = numbers.astype(np.uint64), self.units.of(matrix, predictions[:, 0], exposures)
        scores = scores_of(self.loss, predictions[:, None], targets, units, draws)[:, 0]
        columns = (targets if self.loss is None else units)[:, None]
        weights = weights if self.power is None else np.ones(len(scores))
        if self.loss is not None and self.power is None:
            residuals = clipped(targets - predictions[:, 0])
            features = np.column_stack([clipped(predictions), matrix])
            self.residuals.add(features, residuals, weights, digests, [0.0, *fills[: matrix.shape[1]]])
        if numbers[0] > FIRST:
            self.scores.add(columns, scores, weights, digests, [0.0])
            follow(self.adaptive, np.ascontiguousarray(scores))

    @property
    def units(self) -> Units:
        """The present units of residuals."""
        return Units(self.widths, self.power)

    def curve(self) -> LearningCurve:
        """The learning curve of residuals; flat for classes, counts, amounts, and quantiles except the median."""
        kept = self.scores.kept()
        if self.widths is None or not len(kept["targets"]) or getattr(self.loss, "tau", 0.5) != 0.5:
            return LearningCurve(0.0, 0.0, self.rows, is_known=False)
        numbers = kept["digests"].astype(np.float64)
        roots = np.sqrt(np.abs(kept["targets"])) * np.sqrt(kept["columns"][:, 0])
        weights = kept["weights"] * recency(numbers)
        return LearningCurve.fitted(numbers, roots, weights, self.rows)

    def give_up_trees(self) -> None:
        """Discard the columns: from now on all rows have the same width."""
        self.residuals = Reservoir(most=MOST_RESIDUALS)
        if self.widths is not None:
            self.widths = Widths(self.widths.mean)

    def quantile(
        self, level: float, is_over: bool, asked: str, code: int | None = None, curve: LearningCurve | None = None
    ) -> float:
        """The quantile of the scores of future rows, or a ModelError for ``asked`` if there are too few scores.

        ``is_over``: if the stream is over, all scores count, later ones more; else the quantile follows the stream.
        ``code``: a class; only its scores count, as if the stream were over.
        ``curve``: a learning curve, which scales the scores of earlier rows to future rows.
        """
        if not is_over and code is None:
            check_enough(asked, level, self.adaptive.n_latest)
            return self.adaptive.quantile(level)
        scores, weights = self._weighted(code, level)
        check_enough(asked, level, float(weights.sum()))
        stream_quantile = quantile(scores, weights, level)
        return stream_quantile if curve is None else stream_quantile * float(curve.factors(np.array([self.rows]))[0])

    def levels_around(self, levels: np.ndarray) -> np.ndarray:
        """Levels (c, 2) of the ends of intervals after the stream, shifted to include the prediction."""
        kept = self.scores.kept()
        return levels_around(levels, kept["targets"], kept["weights"] * recency(kept["digests"].astype(np.float64)))

    def has_enough(self, levels: list[float], is_over: bool, code: int | None = None) -> bool:
        """Whether there are enough scores for quantiles of these levels."""
        if not is_over and code is None:
            return all(self.adaptive.n_latest >= evidence_for(level) for level in levels)
        return all(self._weighted(code, level)[1].sum() >= evidence_for(level) for level in levels)

    def _weighted(self, code: int | None, level: float) -> tuple[np.ndarray, np.ndarray]:
        """The kept scores of a class or of all rows, and weights; later ones count more if that is enough evidence."""
        kept = self.scores.kept()
        weights = kept["weights"]
        counts = weights > 0.0
        if code is not None:
            counts &= kept["columns"][:, 0] == code if len(weights) else False
        late = (weights * recency(kept["digests"].astype(np.float64)))[counts]
        return kept["targets"][counts], late if late.sum() >= evidence_for(level) else weights[counts]

    def followed(self) -> dict[float, tuple[float, float]]:
        """For each coverage, the share of rows that were covered, and the smallest possible share for any rows."""
        state, covered = self.adaptive, {}
        rows = int(state.rows[0])
        below = dict(zip(state.targets.tolist(), state.below.tolist(), strict=True))
        for coverage in COVERAGES:
            sides = [coverage] if self.loss is None else [(1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0]
            n_covered = below[sides[-1]] - (0.0 if self.loss is None else below[sides[0]])
            n_missed = sum(most_missed(side, rows) for side in sides)
            covered[coverage] = (n_covered / max(rows, 1), max(1.0 - n_missed / max(rows, 1), 0.0))
        return covered
