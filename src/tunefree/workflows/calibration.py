"""Calibration: the coverage of intervals, and the shares of classes, compared with their probabilities.

Intervals have a coverage, a width, and a score, which weighs both. Gneiting, Raftery: Strictly proper scoring rules,
prediction, and estimation (JASA 2007), eq. 43: the score of an interval (l, u) of coverage c = 1 - a for the target y
is

    u - l + 2 / a (l - y) 1[y < l] + 2 / a (y - u) 1[y > u],

which is least on average for the quantiles of the levels a / 2 and 1 - a / 2. Of classes, actual and expected rows are
counted by tenth of a probability.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.numbers import MOST
from tunefree.intervals.conformal import checked_parts
from tunefree.pool.quantiles import has_intervals, target_intervals
from tunefree.stream.batch import Batch
from tunefree.workflows.metrics import Scored, parts_by_mass, share_of

CELLS = 1000  # of equal width, in which probabilities of the most probable class are counted
BINS = 15  # of equal mass, into which cells are gathered
MOST_CLASSES = 5  # that are looked at, the rarest
ASKED = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # coverages of the curve
TENTHS, TWENTIETHS = 10, 20
SURENESS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # probabilities from which on rows are counted together
WIDTH_DIGITS = 2  # decimals of the first digit in which widths of intervals differ
BAND = 1.96  # standard errors of 95 %
ONE_SIDED = 2.326  # those that are exceeded in 1 %
TOLERATED = 0.01  # calibration error that does not matter
UNRESOLVED = 0.05  # calibration error by chance beyond which rows are too few to tell
COVERAGE, WIDTH, SCORE = "interval_coverage", "interval_width", "interval_score"  # names of metrics


class Covered(NamedTuple):
    """Rows that intervals of a coverage hold."""

    asked: float
    covered: float
    low: float  # ends of what chance explains where the coverage is as asked for, in 95 % of samples
    high: float


class Tenth(NamedTuple):
    """A tenth of the rows, in the order of the widths of their intervals or of a probability."""

    rows: int
    weight: float
    mean: float  # width, or probability
    share: float  # of rows that are inside, or of the class
    low: float | None  # 95 % interval of the share
    high: float | None


def _tenth(rows: np.ndarray, scored: Scored, values: np.ndarray, flags: np.ndarray) -> Tenth:
    """The mean, the share and its interval of some rows, from values and flags (n,) of all."""
    weight, groups = scored.weight[rows], None if scored.groups is None else scored.groups[rows]
    mean = float(np.average(values[rows], weights=weight))
    return Tenth(len(rows), float(weight.sum()), mean, *share_of(flags[rows], weight, groups))


class IntervalScores:
    """Metrics of intervals, batch by batch.

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
        """The terms of each row of a batch in metrics that are means; targets of counts are rates."""
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
    """Coverage by tenth of the width; fewer parts where many intervals are of one width, by three digits.

    ``scored``: rows with the metrics of :class:`IntervalScores`.

    >>> widths = np.arange(20.0)
    >>> scored = Scored(np.ones(20), {WIDTH: widths, COVERAGE: np.ones(20)})
    >>> [(tenth.mean, tenth.share) for tenth in tenths_of(scored)][:2]
    [(0.5, 1.0), (2.5, 1.0)]
    """
    widths, inside = scored.means[WIDTH], scored.means[COVERAGE]
    unit = 10.0 ** (np.floor(np.log10(np.maximum(widths, np.finfo(float).tiny))) - WIDTH_DIGITS)
    rounded = np.rint(widths / unit) * unit
    edges = np.unique(np.quantile(rounded, np.arange(1, TENTHS) / TENTHS, method="lower"))
    places = np.searchsorted(edges, rounded, side="left") if len(edges) > 1 else np.zeros(len(widths), np.int64)
    is_used = scored.weight > 0.0
    parts = (np.flatnonzero((places == place) & is_used) for place in np.unique(places[is_used]))
    return [_tenth(rows, scored, widths, inside) for rows in parts]


def by_sureness(scored: Scored) -> list[tuple[float, float, Tenth]]:
    """Rows by the probability of their most probable class: from which on, their share of all, and how many are right.

    >>> scored = Scored(np.ones(4), {}, probability=np.array([0.6, 0.7, 0.75, 1.0]), is_right=np.arange(4) > 0)
    >>> [(low, share, part.rows, part.share) for low, share, part in by_sureness(scored)]
    [(0.6, 0.25, 1, 0.0), (0.7, 0.5, 2, 1.0), (0.99, 0.25, 1, 1.0)]
    """
    probability, is_right, weight = scored.probability, scored.is_right, scored.weight
    if probability is None or is_right is None:
        return []
    places = np.where(weight > 0.0, np.searchsorted(SURENESS, probability, "right") - 1, -1)
    parts = ((SURENESS[place], np.flatnonzero(places == place)) for place in np.unique(places[places >= 0]))
    return [
        (low, float(weight[rows].sum() / weight.sum()), _tenth(rows, scored, probability, is_right))
        for low, rows in parts
    ]


def counts_of(probability: np.ndarray, weight: np.ndarray) -> list[int]:
    """The number of rows that count, by twentieth of the probability."""
    counts: list[int] = np.histogram(probability[weight > 0.0], TWENTIETHS, (0.0, 1.0))[0].tolist()
    return counts


class ClassReliability(NamedTuple):
    """The probabilities of a class, and the number of its rows."""

    label: Any
    rows: int
    share: float  # of all rows
    probability: float  # the mean
    highest: float  # probability
    tenths: list[Tenth]
    counts: list[int]  # of rows, by twentieth of the probability
    is_predicted: bool  # for any row

    @property
    def ratio(self) -> float:
        """The ratio of actual to expected rows."""
        return self.share / max(self.probability, 1e-300)

    @property
    def error(self) -> float:
        """The mean distance of actual and expected shares over the tenths, relative to the share of the class."""
        weights, distances = zip(*((tenth.weight, abs(tenth.share - tenth.mean)) for tenth in self.tenths), strict=True)
        return float(np.average(distances, weights=weights)) / self.share


def class_reliability(scored: Scored, labels: list[Any]) -> list[ClassReliability]:
    """The reliability of the classes that rows have, the rarest first.

    ``scored``: rows of a class that was never seen in training are left out.
    Returns: of two classes the rarer one, which tells of both; of more the MOST_CLASSES rarest. Empty in regression,
    and where there are too many probabilities to be kept.

    >>> codes, scores = np.array([0, 0, 0, 1] * 50), np.array([[0.25]] * 200)
    >>> scored = Scored(np.ones(200), {}, codes, np.zeros(200, int), scores, n_classes=2)
    >>> [rarest] = class_reliability(scored, ["no", "yes"])
    >>> rarest.label, rarest.rows, rarest.ratio, rarest.error, rarest.is_predicted, len(rarest.tenths)
    ('yes', 50, 1.0, 0.0, False, 1)
    """
    if scored.scores is None:
        return []
    chosen = scored.chosen
    scored = scored.part((scored.codes < scored.n_classes) & (scored.weight > 0.0))
    codes, weight, scores = scored.codes, scored.weight, scored.scores
    weights = np.bincount(codes, weight, scored.n_classes)
    rarest = [k for k in np.lexsort((-np.arange(len(weights)), weights)).tolist() if weights[k] > 0.0]
    reliabilities = []
    for k in rarest[: 1 if scored.n_classes == 2 else MOST_CLASSES]:
        probability = scores[:, k] if scores.shape[1] > 1 else np.abs(1 - k - scores[:, 0])
        tenths, is_of_class = _tenths(scored, probability, codes == k), codes == k
        share, mean = (float(np.average(values, weights=weight)) for values in (is_of_class, probability))
        is_predicted = bool((chosen == k).any())
        highest = float(probability.max())
        counts = counts_of(probability, weight)
        reliabilities.append(
            ClassReliability(labels[k], int(is_of_class.sum()), share, mean, highest, tenths, counts, is_predicted)
        )
    return reliabilities


def _tenths(scored: Scored, probability: np.ndarray, is_of_class: np.ndarray) -> list[Tenth]:
    """Ten parts of about the same weight; rows of one probability are in the same."""
    order = np.argsort(probability, kind="stable")
    starts = np.flatnonzero(np.append(True, np.diff(probability[order]) > 0.0))
    masses = np.add.reduceat(scored.weight[order], starts)
    part = np.repeat(parts_by_mass(masses, TENTHS), np.diff(np.append(starts, len(order))))
    return [_tenth(order[part == k], scored, probability, is_of_class) for k in np.unique(part)]


class Calibration(NamedTuple):
    """The distance of probabilities from the shares of rows that are right."""

    error: float  # expected calibration error
    by_chance: float  # what that of calibrated probabilities exceeds in 1 % of samples of so many rows

    @property
    def is_calibrated(self) -> bool:
        """Whether the error is no larger than chance explains, or too small to matter."""
        return self.error <= max(self.by_chance, TOLERATED)

    @property
    def words(self) -> str:
        """A phrase on whether probabilities are calibrated, and by how much they are off if not."""
        if self.is_calibrated and self.by_chance > UNRESOLVED:
            return "too few rows to tell whether probabilities are calibrated"
        if self.is_calibrated:
            return "probabilities are calibrated"
        return f"probabilities are off by {100.0 * self.error:.1f} points on average"


def calibration(
    probability: np.ndarray, is_right: np.ndarray, weight: np.ndarray, groups: np.ndarray | None = None
) -> Calibration:
    """Expected calibration error of the most probable class of each row, with 15 bins of equal mass.

    In each bin it is the distance between the share of rows that are right and the mean probability; bins count by the
    weight of their rows. Rows are counted in cells of equal width, which are not split. For independent rows and
    calibrated probabilities, the distance of a bin is about normal, with the variance of its share; for independent
    groups, whose numbers these are, with that of their sums.

    >>> round(calibration(np.full(10, 0.8), np.arange(10) < 7, np.ones(10)).error, 6)
    0.1
    """
    if not weight.sum() > 0.0:
        return Calibration(0.0, 0.0)
    cell = np.minimum((probability * CELLS).astype(np.int64), CELLS - 1)
    variance = weight**2 * probability * (1.0 - probability)
    columns = (weight, weight * is_right, weight * probability, variance)
    sums = [np.bincount(cell, column, CELLS) for column in columns]
    bins = parts_by_mass(sums[0], BINS)
    mass, right, expected, variances = (np.bincount(bins, column, BINS) for column in sums)
    if groups is not None:
        n = int(groups.max()) + 1
        units = np.bincount(bins[cell] * n + groups, weight * (is_right - probability), BINS * n)
        variances = (units.reshape(BINS, n) ** 2).sum(axis=1)
    mean = math.sqrt(2.0 / math.pi) * np.sqrt(variances).sum()
    by_chance = mean + ONE_SIDED * math.sqrt((1.0 - 2.0 / math.pi) * variances.sum())
    return Calibration(float(np.abs(right - expected).sum() / mass.sum()), float(by_chance / mass.sum()))
