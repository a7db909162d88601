"""The problem of growing a generation: columns, targets and weights of some rows, and settings."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core.numbers import MOST
from tunefree.core.schema import Number
from tunefree.generations.bins import Bins, bins_of, codes_of
from tunefree.generations.bundles import Exclusive, exclusive_of
from tunefree.losses import Square
from tunefree.losses.contract import has_log_link, is_robust

MOST_SCORE = 1e15  # largest score, so that sums fit in single precision
FARTHEST = 1e15  # largest distance of a target from the centre in spreads, for the same reason
FAR = 16.0  # likewise for robust losses: targets beyond do not show where rows differ
LEAST_DISPERSION = 1e-6  # used where all targets are equal
LEAST_WEIGHT = 1e-30  # smallest weight over the largest, so that it is above 0 in single precision
ROW_FIELDS = ("columns", "targets", "weights", "digests")
Multiple = Annotated[float, Number(1.0 / 64.0, 256.0)]


def mean_and_dispersion(targets: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """The mean of targets, 1 if all are 0, and their dispersion, for a loss with a logarithmic link.

    The dispersion is the mean of the squared slope over the mean of the expected curvature, for targets over their
    mean, with weights of mean 1.

    >>> mean_and_dispersion(np.array([0.0, 0.0, 0.0, 1.0]), np.ones(4))
    (0.25, 3.0)
    """
    shares = weights / weights.sum()
    mean = float(min(np.sum(shares * np.maximum(targets, 0.0)), MOST)) or 1.0
    slopes = np.clip(weights * (1.0 - targets / mean), -1e100, 1e100)
    return mean, max(float(np.sum(slopes**2) / weights.sum()), LEAST_DISPERSION)


class Binned(NamedTuple):
    """The codes of rows, with their bins and bundles."""

    bins: Bins
    codes: np.ndarray  # (c, n) uint8
    exclusive: Exclusive


class Problem(NamedTuple):
    """Rows to fit a batch model to."""

    columns: np.ndarray  # (n, c) float64, NaN for missing values
    is_categorical: np.ndarray  # (c,) bool: ids of categories, which have no order
    targets: np.ndarray  # (n,) float64: class numbers, or numbers
    weights: np.ndarray  # (n,) float64 above 0, with mean 1
    n_classes: int  # 0 for numbers
    loss: Any  # of numbers, see tunefree.losses.contract; None for classes, which have log-loss
    binned: Any = None  # Binned, which all kinds of trees share, see prepared()
    digests: Any = None  # (n,) of the observations, or of the groups; None if no settings are inherited
    signs: Any = None  # (c,) int8: 1 for columns with which predictions rise, -1 where they fall, else 0; or None

    def part(self, rows: np.ndarray) -> Problem:
        """A selection of the rows, without codes."""
        arrays: dict[str, Any] = {name: np.ascontiguousarray(getattr(self, name)[rows]) for name in ROW_FIELDS}
        return self._replace(binned=None, **arrays)

    @property
    def n_outputs(self) -> int:
        """The number of margins of a row: one for numbers and for two classes."""
        return self.n_classes if self.n_classes > 2 else 1

    @property
    def has_log_link(self) -> bool:
        """Whether margins are logarithms of the targets' means."""
        return has_log_link(self.loss)

    def start(self) -> np.ndarray:
        """The margins (K,) of a model without columns; 0 for numbers, to which the centre is added."""
        if self.n_classes == 0:
            return np.zeros(1)
        counts = np.bincount(self.targets.astype(np.int64), self.weights, self.n_classes) + 0.5
        logs = np.log(counts / counts.sum())
        return logs if self.n_classes > 2 else logs[1:] - logs[:1]


def prepared(problem: Problem) -> Problem:
    """A problem in the form that growers take: weights with mean 1, and codes of the columns."""
    problem = problem._replace(weights=relative(problem.weights))
    bins = bins_of(problem.columns, problem.is_categorical, scores_of(problem))
    codes = np.ascontiguousarray(codes_of(bins, problem.columns).T)
    exclusive = exclusive_of(codes, bins.n_codes, problem.is_categorical)
    return problem._replace(binned=Binned(bins, codes, exclusive))


def relative(weights: np.ndarray) -> np.ndarray:
    """Weights above 0, scaled to mean 1."""
    shares = np.maximum(weights / weights.max(initial=0.0), LEAST_WEIGHT)
    return shares / shares.mean() if len(shares) else shares


def scores_of(problem: Problem) -> np.ndarray:
    """Scores (n,) of rows, whose means order categories: the target, or the rank of its class by frequency."""
    if problem.n_classes > 2:
        classes = problem.targets.astype(np.int64)
        order = np.argsort(-np.bincount(classes, minlength=problem.n_classes), kind="stable")
        return np.argsort(order)[classes].astype(np.float64)
    if problem.has_log_link:
        mean, _ = mean_and_dispersion(problem.targets, problem.weights)
        return np.clip(problem.weights * (problem.targets / mean - 1.0), -MOST_SCORE, MOST_SCORE)
    return np.clip(scaled_targets(problem).targets, -FAR, FAR)


def median_of(numbers: np.ndarray, weights: np.ndarray) -> float:
    """The lower weighted median of numbers."""
    order = np.argsort(numbers, kind="stable")
    sums = np.cumsum(weights[order])
    return float(numbers[order[np.searchsorted(sums, (0.5 - 1e-12) * sums[-1])]])


def spread_of(targets: np.ndarray, weights: np.ndarray, centre: float) -> float:
    """The power of two next below the median distance from a centre, over targets that differ from it; 1 for none."""
    with np.errstate(over="ignore"):
        distances = np.minimum(np.abs(targets - centre), 1e300)
    differs = distances > 0.0
    if not differs.any():
        return 1.0
    return 2.0 ** max(math.floor(math.log2(median_of(distances[differs], weights[differs]))), -1000)


class ScaledTargets(NamedTuple):
    """Targets in the scale of tree growth: in spreads from a centre, or relative to their mean."""

    centre: float  # their weighted mean for the square loss, for other losses the median
    spread: float
    targets: np.ndarray  # (n,)
    loss: Any = None  # the loss whose minimiser is the value of a leaf; None if this is the mean
    dispersion: float = 1.0  # of targets over their mean


def scaled_targets(problem: Problem) -> ScaledTargets:
    """The scaled targets of a problem, with class numbers unchanged; robust losses clip targets at FAR spreads."""
    if problem.n_classes:
        return ScaledTargets(0.0, 1.0, problem.targets)
    if problem.has_log_link:
        mean, dispersion = mean_and_dispersion(problem.targets, problem.weights)
        return ScaledTargets(0.0, mean, np.clip(problem.targets / mean, 0.0, FARTHEST), None, dispersion)
    if isinstance(problem.loss, Square):
        centre = float(np.sum(problem.weights / problem.weights.sum() * problem.targets))
    else:
        centre = median_of(problem.targets, problem.weights)
    spread = spread_of(problem.targets, problem.weights, centre)
    loss = None if isinstance(problem.loss, Square) else problem.loss.rescaled(spread)[0]
    # Otherwise a leaf of few rows may have more outliers than others, or an outlier may decide a split.
    predicts_median = is_robust(loss) and getattr(loss, "tau", 0.5) == 0.5
    farthest = FAR if predicts_median else FARTHEST
    targets = np.clip(problem.targets / spread - centre / spread, -farthest, farthest)
    return ScaledTargets(centre, spread, targets, loss)


class Settings(NamedTuple):
    """Settings of tree growth: multiples of the values that follow from the number of rows, columns and classes.

    A generation inherits them from the previous generation (:mod:`tunefree.generations.inheritance`).

    >>> Settings(trees=2.0**0.5, columns=2.0).in_words()
    '1.41 times the trees, 2 times the columns'
    """

    trees: Multiple = 1.0
    columns: Multiple = 1.0  # drawn for a tree, or tried at a node
    leaves: Multiple = 1.0
    rate: Multiple = 1.0
    least: Multiple = 1.0  # fewest rows of a leaf, or of a node that is split

    @property
    def fewest_trees(self) -> float:
        """The multiple of trees that compensates for a shrinkage rate below the rate of the first generation."""
        return 1.0 / self.rate

    def in_words(self) -> str:
        """The settings that differ from the first generation, in words."""
        nouns = {"rate": "shrinkage rate", "least": "rows of the smallest node"}
        parts = [
            f"{multiple:.3g} times the {nouns.get(name, name)}"
            for name, multiple in self._asdict().items()
            if multiple != 1.0
        ]
        return ", ".join(parts) or "as at first"


USUAL = Settings()
