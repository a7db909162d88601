"""How well intervals hold targets: coverage, width, and the interval score, which weighs both.

Gneiting, Raftery: Strictly proper scoring rules, prediction, and estimation (JASA 2007), eq. 43: the score of an
interval (l, u) of coverage c = 1 - a for the target y is

    u - l + 2 / a (l - y) 1[y < l] + 2 / a (y - u) 1[y > u],

which is least on average for the quantiles of the levels a / 2 and 1 - a / 2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import MOST
from tunefree.intervals.conformal import checked_parts
from tunefree.pool.quantiles import has_intervals, target_intervals
from tunefree.stream.batch import Batch
from tunefree.workflows.metrics import Scored, wilson

ASKED = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # coverages of the curve
TENTHS = 10
BAND = 1.96  # standard errors of 95 %
COVERAGE, WIDTH, SCORE = "interval_coverage", "interval_width", "interval_score"  # names of metrics


class Covered(NamedTuple):
    """Rows that intervals of a coverage hold."""

    asked: float
    covered: float
    low: float  # ends of what chance explains where the coverage is as asked for, in 95 % of samples
    high: float


class Tenth(NamedTuple):
    """A tenth of the rows in the order of the widths of their intervals."""

    width: float  # mean
    rows: int
    covered: float
    low: float | None  # ends of the 95 % interval of the coverage
    high: float | None


class IntervalScores:
    """What intervals add to metrics, batch by batch.

    ``coverage``: of the intervals that are measured.
    """

    def __init__(self, model: Any, coverage: float) -> None:
        if len(checked_parts("interval", coverage)) != 1 or np.ndim(coverage):
            raise ModelError("`interval` is the coverage of the intervals that are measured; pass one number")
        if model.pool is None:
            raise ModelError("`interval` needs the evidence that the pool has; train without `learner`")
        if model.task != "regression":
            raise ModelError("`interval` is for numbers, and this model predicts classes; leave it out")
        self.model, self.coverage = model, float(coverage)
        self.asked = [part for part in ASKED if part == coverage or has_intervals(model, part)]
        self.inside, self.weight, self.squares = np.zeros(len(self.asked)), 0.0, 0.0

    def add(self, batch: Batch, predictions: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> dict[str, Any]:
        """What each row of a batch adds to metrics that are means; targets of counts are rates."""
        levels = np.array([*self.asked, self.coverage])
        bounds = target_intervals(self.model, batch.rows, predictions, levels, batch.exposure)
        if batch.exposure is not None:
            bounds = bounds / batch.exposure[:, None, None]
        y = targets[:, None]
        is_in = ((bounds[:, :, 0] <= y) & (y <= bounds[:, :, 1])).astype(np.float64)
        self.inside += weight @ is_in[:, :-1]
        self.weight, self.squares = self.weight + float(weight.sum()), self.squares + float(weight @ weight)
        low, high = bounds[:, -1].T
        with np.errstate(over="ignore", invalid="ignore"):
            missed = np.maximum(low - targets, 0.0) + np.maximum(targets - high, 0.0)
            width = np.minimum(high - low, MOST)
            score = np.minimum(width + 2.0 / (1.0 - self.coverage) * missed, MOST)
        return {COVERAGE: is_in[:, -1], WIDTH: width, SCORE: score}

    def curve(self) -> list[Covered]:
        """The part of the rows covered by each coverage asked for."""
        if not self.weight > 0.0:
            return []
        rows = self.weight**2 / self.squares  # Kish's effective number
        errors = [BAND * np.sqrt(part * (1.0 - part) / rows) for part in self.asked]
        shares = (self.inside / self.weight).tolist()
        return [
            Covered(part, share, max(part - float(error), 0.0), min(part + float(error), 1.0))
            for part, share, error in zip(self.asked, shares, errors, strict=True)
        ]


def tenths_of(scored: Scored) -> list[Tenth]:
    """Coverage by tenth of the width; fewer parts where many intervals are of one width.

    ``scored``: rows with the metrics of :class:`IntervalScores`.

    >>> widths = np.arange(20.0)
    >>> scored = Scored(np.ones(20), {WIDTH: widths, COVERAGE: np.ones(20)})
    >>> [(tenth.width, tenth.covered) for tenth in tenths_of(scored)][:2]
    [(0.5, 1.0), (2.5, 1.0)]
    """
    widths, inside = scored.means[WIDTH], scored.means[COVERAGE]
    edges = np.unique(np.quantile(widths, np.arange(1, TENTHS) / TENTHS, method="lower"))
    places = np.searchsorted(edges, widths, side="left") if len(edges) > 1 else np.zeros(len(widths), np.int64)
    tenths = []
    for place in np.unique(places[scored.weight > 0.0]).tolist():
        rows = (places == place) & (scored.weight > 0.0)
        weight = scored.weight[rows]
        share = float(weight @ inside[rows] / weight.sum())
        tenths.append(
            Tenth(float(weight @ widths[rows] / weight.sum()), int(rows.sum()), share, *wilson(share, weight))
        )
    return tenths
