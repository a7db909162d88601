"""Calibration: rows in parts by a probability, or by the width of their intervals, beside the share that is expected.

Intervals have a coverage, a width, and a score, which weighs both. Gneiting, Raftery: Strictly proper scoring rules,
prediction, and estimation (JASA 2007), eq. 43: the score of an interval (l, u) of coverage c = 1 - a for the target y
is

    u - l + 2 / a (l - y) 1[y < l] + 2 / a (y - u) 1[y > u],

which is least on average for the quantiles of the levels a / 2 and 1 - a / 2.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.numbers import MOST
from tunefree.pool.quantiles import target_intervals
from tunefree.stream.batch import Batch
from tunefree.workflows.metrics import Measure, Scored, parts_by_mass, share_of

BINS = 15  # of the calibration error
TENTHS = 10
MOST_CLASSES = 5  # that are looked at, the rarest
COVERAGE, WIDTH, SCORE = "interval_coverage", "interval_width", "interval_score"  # names of metrics


class Part(NamedTuple):
    """Some of the rows, in the order of a probability or of the widths of their intervals."""

    rows: int
    weight: float
    mean: float  # probability, or width
    share: Measure  # of the rows that have a flag: are of the class, or inside


def equal_parts(scored: Scored, values: np.ndarray, flags: np.ndarray, parts: int = TENTHS) -> list[Part]:
    """Parts of the scored rows of about the same weight, in the order of values (n,); equal values are in one part.

    >>> scored = Scored(np.ones(20), {})
    >>> [(part.mean, part.share.value) for part in equal_parts(scored, np.arange(20.0), np.arange(20) > 2)][:3]
    [(0.5, 0.0), (2.5, 0.5), (4.5, 1.0)]
    """
    order = np.argsort(values, kind="stable")
    order = order[scored.weight[order] > 0.0]
    if not len(order):
        return []
    starts = np.flatnonzero(np.append(True, np.diff(values[order]) > 0.0))
    masses = np.add.reduceat(scored.weight[order], starts)
    part = np.repeat(parts_by_mass(masses, parts), np.diff(np.append(starts, len(order))))
    return [_part(scored, order[part == k], values, flags) for k in np.unique(part)]


def _part(scored: Scored, rows: np.ndarray, values: np.ndarray, flags: np.ndarray) -> Part:
    weight, groups = scored.weight[rows], None if scored.groups is None else scored.groups[rows]
    mean = float(np.average(values[rows], weights=weight))
    return Part(len(rows), float(weight.sum()), mean, share_of(flags[rows], weight, groups))


def calibration_error(scored: Scored) -> float:
    """The expected calibration error of the most probable class of each row, with 15 bins of equal mass.

    >>> scored = Scored(np.ones(10), {}, np.repeat([0, 1], [7, 3]), np.zeros(10, int), probability=np.full(10, 0.8))
    >>> round(calibration_error(scored), 6)
    0.1
    """
    parts = equal_parts(scored, scored.probability, scored.codes == scored.chosen, BINS)
    distances = [abs(part.share.value - part.mean) for part in parts]
    return float(np.average(distances, weights=[part.weight for part in parts])) if parts else math.nan


def interval_metrics(
    model: Any, coverage: float, batch: Batch, predictions: np.ndarray, targets: np.ndarray
) -> dict[str, np.ndarray]:
    """The terms (n,) of the rows of a batch in metrics of intervals, which are means; targets of counts are rates."""
    low, high = target_intervals(model, batch.rows, predictions, np.array([coverage]), batch.exposure)[:, 0].T
    if batch.exposure is not None:
        low, high = low / batch.exposure, high / batch.exposure
    with np.errstate(over="ignore", invalid="ignore"):
        missed = np.maximum(low - targets, 0.0) + np.maximum(targets - high, 0.0)
        width = np.minimum(high - low, MOST)
        score = np.minimum(width + 2.0 / (1.0 - coverage) * missed, MOST)
    return {COVERAGE: ((low <= targets) & (targets <= high)).astype(np.float64), WIDTH: width, SCORE: score}


class ClassReliability(NamedTuple):
    """The probabilities of a class, and the number of its rows."""

    label: Any
    rows: int
    share: float  # of all rows
    probability: float  # the mean
    tenths: list[Part]
    is_predicted: bool  # for any row

    @property
    def ratio(self) -> float:
        """The ratio of actual to expected rows."""
        return self.share / max(self.probability, 1e-300)


def class_reliability(scored: Scored, labels: list[Any]) -> list[ClassReliability]:
    """The reliability of the classes that rows have, the rarest first.

    ``scored``: rows of a class that was never seen in training are left out.
    Returns: of two classes the rarer one, which tells of both; of more the MOST_CLASSES rarest. Empty in regression,
    and where there are too many probabilities to be kept.

    >>> codes, scores = np.array([0, 0, 0, 1] * 50), np.array([[0.25]] * 200)
    >>> scored = Scored(np.ones(200), {}, codes, np.zeros(200, int), scores, n_classes=2)
    >>> [rarest] = class_reliability(scored, ["no", "yes"])
    >>> rarest.label, rarest.rows, rarest.ratio, rarest.is_predicted, len(rarest.tenths)
    ('yes', 50, 1.0, False, 1)
    """
    if scored.scores is None:
        return []
    chosen = scored.chosen
    scored = scored.part((scored.codes < scored.n_classes) & (scored.weight > 0.0))
    codes, weight = scored.codes, scored.weight
    weights = np.bincount(codes, weight, scored.n_classes)
    rarest = [k for k in np.lexsort((-np.arange(len(weights)), weights)).tolist() if weights[k] > 0.0]
    reliabilities = []
    for k in rarest[: 1 if scored.n_classes == 2 else MOST_CLASSES]:
        probability, is_of_class = scored.probability_of(k), codes == k
        share, mean = (float(np.average(values, weights=weight)) for values in (is_of_class, probability))
        tenths, is_predicted = equal_parts(scored, probability, is_of_class), bool((chosen == k).any())
        reliabilities.append(ClassReliability(labels[k], int(is_of_class.sum()), share, mean, tenths, is_predicted))
    return reliabilities
