"""Whether the probabilities of classes are true: actual and expected rows of a class, by tenth of its probability."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.workflows.count_metrics import parts_by_mass
from tunefree.workflows.metrics import Scored, wilson

CELLS = 1000  # of equal width, in which probabilities of the most probable class are counted
BINS = 15  # of equal mass, into which cells are gathered
TENTHS = 10
MOST_CLASSES = 5  # that are looked at, the rarest


class Tenth(NamedTuple):
    """Rows of neighbouring probabilities of a class."""

    rows: int
    weight: float
    probability: float  # the mean
    share: float  # of the rows that are of the class
    low: float  # 95 % interval of the share
    high: float


class ClassReliability(NamedTuple):
    """The probabilities of a class, and how many rows were of it."""

    label: Any
    rows: int
    share: float  # of all rows
    probability: float  # the mean
    highest: float  # probability
    tenths: list[Tenth]
    is_predicted: bool  # for any row

    @property
    def ratio(self) -> float:
        """Actual rows over expected ones."""
        return self.share / max(self.probability, 1e-300)

    @property
    def error(self) -> float:
        """The mean distance of actual and expected shares over the tenths, relative to the share of the class."""
        weights, distances = zip(
            *((tenth.weight, abs(tenth.share - tenth.probability)) for tenth in self.tenths), strict=True
        )
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
    if scored.scores is None or scored.codes is None or scored.chosen is None:
        return []
    used = (scored.codes < scored.n_classes) & (scored.weight > 0.0)
    codes, weight, scores = scored.codes[used], scored.weight[used], scored.scores[used]
    weights = np.bincount(codes, weight, scored.n_classes)
    rarest = [k for k in np.lexsort((-np.arange(len(weights)), weights)).tolist() if weights[k] > 0.0]
    of_classes = []
    for k in rarest[: 1 if scored.n_classes == 2 else MOST_CLASSES]:
        probability = scores[:, k] if scores.shape[1] > 1 else np.abs(1 - k - scores[:, 0])
        tenths, is_of_class = _tenths(probability, codes == k, weight), codes == k
        share, mean = (float(np.average(values, weights=weight)) for values in (is_of_class, probability))
        is_predicted = bool((scored.chosen == k).any())
        highest = float(probability.max())
        of_classes.append(
            ClassReliability(labels[k], int(is_of_class.sum()), share, mean, highest, tenths, is_predicted)
        )
    return of_classes


def _tenths(probability: np.ndarray, is_of_class: np.ndarray, weight: np.ndarray) -> list[Tenth]:
    """Ten parts of about the same weight; rows of one probability are in the same."""
    order = np.argsort(probability, kind="stable")
    probability, is_of_class, weight = probability[order], is_of_class[order], weight[order]
    starts = np.flatnonzero(np.append(True, np.diff(probability) > 0.0))
    masses = np.add.reduceat(weight, starts)
    part = np.repeat(parts_by_mass(masses, TENTHS), np.diff(np.append(starts, len(weight))))
    tenths = []
    for rows in (np.flatnonzero(part == tenth) for tenth in np.unique(part)):
        share, mean = (float(np.average(values[rows], weights=weight[rows])) for values in (is_of_class, probability))
        low, high = wilson(share, weight[rows])
        tenths.append(Tenth(len(rows), float(weight[rows].sum()), mean, share, low or 0.0, high or 0.0))
    return tenths


def calibration_error(probability: np.ndarray, is_right: np.ndarray, weight: np.ndarray) -> float:
    """Expected calibration error of the most probable class of each row, with 15 bins of equal mass.

    In each bin it is the distance between the share of rows that are right and the mean probability; bins count by the
    weight of their rows. Rows are counted in cells of equal width, which are not split.

    >>> round(calibration_error(np.full(10, 0.8), np.arange(10) < 7, np.ones(10)), 6)
    0.1
    """
    if not weight.sum() > 0.0:
        return 0.0
    cell = np.minimum((probability * CELLS).astype(np.int64), CELLS - 1)
    of_cells = [np.bincount(cell, column, CELLS) for column in (weight, weight * is_right, weight * probability)]
    bins = parts_by_mass(of_cells[0], BINS)
    mass, right, expected = (np.bincount(bins, column, BINS) for column in of_cells)
    return float(np.abs(right - expected).sum() / mass.sum())
