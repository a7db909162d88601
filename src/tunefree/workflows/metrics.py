"""Metrics of predictions with known targets, their confidence intervals, and calibration by groups of rows.
For counts, amounts and rates there are the explained share of the deviance, actual over expected, lift and the Gini
index. The ordered Lorenz curve follows Frees, Meyers, Cummings: Insurance ratemaking and a Gini index (Journal of Risk
and Insurance 2014): rows are sorted by predicted rate, and the cumulative share of claims is plotted over the
cumulative share of exposure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.numbers import CEILING, MOST
from tunefree.losses.deviances import Tweedie
from tunefree.losses.objectives import Objective, measured

GROUPS = 20  # parts of the delete-a-group jackknife
STUDENT = 2.093  # 97.5 % quantile of Student's t with GROUPS - 1 degrees of freedom
NORMAL = 1.96  # 97.5 % quantile of the normal distribution
LEAST_ROWS = 2 * GROUPS  # rows or groups needed for a jackknife interval
MOST_RANKED = 20  # largest number of classes for intervals of areas under curves
MOST_SCORES = 2**27  # largest number of probabilities kept for these areas: 1 GiB
PROPORTIONS = ("error", "coverage", "interval_coverage")  # shares of rows
UNIT = ("balanced_error", "f1", "auc", "average_precision")  # other metrics between 0 and 1
SIGNED = ("r2", "d2", "gini")  # metrics that may be negative
TENTHS = 10
BINS = 15  # bins of the calibration error
MOST_CLASSES = 5  # rarest classes whose reliability is computed


class Measure(NamedTuple):
    """A metric and its 95 % confidence interval, whose ends are None if unknown."""

    value: float
    low: float | None = None
    high: float | None = None


class Ranking:
    """Rows sorted by descending score; rows with equal scores are counted together."""

    def __init__(self, scores: np.ndarray) -> None:
        self.order = np.argsort(-scores, kind="stable")
        ranked = scores[self.order]
        self.last = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
        self.scores = ranked[self.last]

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Cumulative sums of values (n,), from the highest score down to each distinct score."""
        return np.asarray(np.cumsum(values[self.order])[self.last])

    def areas(self, positive: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
        """The area under the ROC curve and the average precision; NaN without positive or without negative rows.

        >>> scores, positive = np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])
        >>> Ranking(scores).areas(positive, np.ones(4))
        (0.75, 0.8333333333333333)
        """
        hits, alarms = self.sums(np.where(positive, weight, 0.0)), self.sums(np.where(positive, 0.0, weight))
        if not (hits[-1] > 0.0 and alarms[-1] > 0.0):
            return math.nan, math.nan
        new_hits, new_alarms = np.diff(hits, prepend=0.0), np.diff(alarms, prepend=0.0)
        auc = np.sum(new_alarms * (hits - new_hits / 2)) / (hits[-1] * alarms[-1])
        selected = hits + alarms
        precision = hits / np.where(selected > 0.0, selected, 1.0)
        return float(auc), float(np.sum(new_hits * precision) / hits[-1])


@dataclass
class Scored:
    """Targets and predictions of the evaluated rows; arrays that do not apply are None."""

    weight: np.ndarray
    means: dict[str, np.ndarray]  # per-row values of metrics that are means; NaN if undefined
    codes: Any = None  # (n,) class indices; n_classes for a class never seen in training
    chosen: Any = None  # (n,) indices of the predicted classes
    scores: Any = None  # (n, C) class probabilities, or (n, 1) for the second of two classes
    targets: Any = None  # (n,) in regression; with `power`, targets and predictions are rates
    predictions: Any = None
    n_classes: int = 0
    power: float | None = None  # variance power of a loss for counts, amounts or rates
    exposure: Any = None  # (n,) exposure times sample weight
    probability: Any = None  # (n,) probability of the most probable class
    groups: Any = None  # (n,) group codes from 0; rows are independent between groups only

    def probability_of(self, k: int) -> np.ndarray:
        """The probability (n,) of a class in each row."""
        scores: np.ndarray = self.scores
        return scores[:, k] if scores.shape[1] > 1 else np.abs(1 - k - scores[:, 0])

    def part(self, rows: np.ndarray) -> Scored:
        """A subset of the rows."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        arrays = {name: array[rows] for name, array in columns.items() if isinstance(array, np.ndarray)}
        return replace(self, means={name: values[rows] for name, values in self.means.items()}, **arrays)

    def share(self, flags: np.ndarray, rows: np.ndarray) -> Measure:
        """The share of the given rows whose flag (n,) is set, with its interval."""
        return share_of(flags[rows], self.weight[rows], None if self.groups is None else self.groups[rows])

    @cached_property
    def rankings(self) -> list[Ranking]:
        """Rankings by the probability of each class, or of the second of two classes."""
        return [] if self.scores is None else [Ranking(scores) for scores in self.scores.T]

    def metrics(self, weight: np.ndarray, ranked: bool = True) -> dict[str, float]:
        """All metrics with the given row weights; areas under curves only if ``ranked``."""
        metrics = {name: _mean(values, weight) for name, values in self.means.items()}
        if self.codes is None:
            metrics |= self._number_metrics(weight)
        else:
            metrics |= _confusion_metrics(self.confusion(weight), self.n_classes)
        if ranked and self.rankings:
            known, first = np.where(self.codes < self.n_classes, weight, 0.0), int(len(self.rankings) == 1)
            areas = [ranking.areas(self.codes == k, known) for k, ranking in enumerate(self.rankings, first)]
            valid = np.array([area for area in areas if not math.isnan(area[0])])
            metrics["auc"], metrics["average_precision"] = valid.mean(axis=0) if len(valid) else (math.nan, math.nan)
        return {name: float(value) for name, value in metrics.items()}

    def _number_metrics(self, weight: np.ndarray) -> dict[str, float]:
        """Metrics of squared errors, which are scaled to avoid overflow."""
        errors, targets = self.means["mean_absolute_error"], self.targets
        unit = max(_unit(errors), _unit(targets))
        squares, centred = _mean((errors / unit) ** 2, weight), targets / unit
        spread = _mean((centred - _mean(centred, weight)) ** 2, weight)
        r2 = 1.0 - squares / spread if spread > 0.0 else math.nan
        metrics = {"root_mean_squared_error": _finite(math.sqrt(squares) * unit), "r2": r2}
        return metrics if self.power is None else metrics | self._rate_metrics(self.power, weight)

    def _rate_metrics(self, power: float, weight: np.ndarray) -> dict[str, float]:
        """Metrics of rates: deviances weighted by ``weight``, sums by exposure times sample weight.

        Gini index: twice the area between the ordered Lorenz curve and the diagonal.
        """
        total, rates = weight.sum(), self.targets
        if not total > 0.0:
            return dict.fromkeys(("deviance", "d2", "actual_over_expected", "gini"), math.nan)
        exposure, ranking = np.where(weight > 0.0, self.exposure, 0.0), Ranking(-self.predictions)
        with np.errstate(over="ignore", invalid="ignore"):
            deviance, mean = 2.0 * float(weight @ self.means["loss"] / total), float(weight @ rates / total)
            at_mean = np.full((len(rates), 1), math.log(mean) if mean > 0.0 else 0.0)
            least = 2.0 * float(weight @ measured(Objective("regression", Tweedie(power)), rates, at_mean) / total)
            actual, expected = float(exposure @ rates), float(exposure @ self.predictions)
            shares, claims = ranking.sums(exposure), ranking.sums(exposure * rates)
        metrics = {"deviance": deviance, "d2": 1.0 - deviance / least if least > 0.0 and mean > 0.0 else math.nan}
        metrics |= {"actual_over_expected": actual / expected if expected > 0.0 else math.nan, "gini": math.nan}
        if shares[-1] > 0.0 and 0.0 < claims[-1] < math.inf:
            shares, claims = np.append(0.0, shares / shares[-1]), np.append(0.0, claims / claims[-1])
            metrics["gini"] = float(1.0 - np.sum(np.diff(shares) * (claims[1:] + claims[:-1])))
        return metrics

    def confusion(self, weight: np.ndarray) -> np.ndarray:
        """Row weights (classes + 1, classes) by true and predicted class; the last row has unseen classes."""
        n = self.n_classes
        cells = self.codes.astype(np.int64) * n + self.chosen
        return np.bincount(cells, weight, (n + 1) * n).reshape(n + 1, n)


def measures(scored: Scored) -> dict[str, Measure]:
    """Metrics of scored rows with 95 % confidence intervals, for independent rows or groups.

    Shares of rows have Wilson's interval. Other metrics use the delete-a-group jackknife (Kott 2001): rows or whole
    groups are randomly assigned to 20 parts, the metric is computed without each part, and Student's t with 19 degrees
    of freedom gives the interval, on the log-odds scale for metrics between 0 and 1. There is no interval with fewer
    than 40 rows or groups, for areas under curves with more than 20 classes, and if no part changes the metric.
    """
    weight, without = scored.weight, list[dict[str, float]]()
    groups = np.arange(len(weight)) if scored.groups is None else scored.groups
    present = np.unique(groups)
    if len(present) >= LEAST_ROWS:
        parts = np.random.default_rng(0).permutation(len(present)) % GROUPS
        part_of, ranked = parts[np.searchsorted(present, groups)], len(scored.rankings) <= MOST_RANKED
        without = [scored.metrics(np.where(part_of == left_out, 0.0, weight), ranked) for left_out in range(GROUPS)]
    measures: dict[str, Measure] = {}
    for name, value in scored.metrics(weight).items():
        if name in PROPORTIONS:
            ends = scored.share(scored.means[name], ~np.isnan(scored.means[name]) & (weight > 0.0))[1:]
        else:
            ends = _jackknife(name, value, [others.get(name, math.nan) for others in without])
        measures[name] = Measure(value, *ends)
    return measures


def _mean(values: np.ndarray, weight: np.ndarray) -> float:
    known = ~np.isnan(values)
    total, values = weight @ known, np.where(known, values, 0.0)
    if not total > 0.0:
        return math.nan
    with np.errstate(over="ignore"):
        mean = float(weight @ values / total)
    if math.isfinite(mean):
        return mean
    unit = _unit(values)
    return _finite(float((weight / weight.max()) @ (values / unit) / (total / weight.max())) * unit)


def _unit(values: np.ndarray) -> float:
    """A power of two by which large values are divided so that products do not overflow; else 1."""
    largest = float(np.abs(values).max(initial=0.0))
    return 2.0 ** (math.frexp(largest)[1] - 1) if largest > CEILING else 1.0


def _finite(number: float) -> float:
    return min(max(number, -MOST), MOST)


def _confusion_metrics(confusion: np.ndarray, n_classes: int) -> dict[str, float]:
    """The balanced error, and F1 of the second of two classes, or else its mean over classes that occur."""
    rows, hits = confusion.sum(axis=1), np.append(np.diagonal(confusion), 0.0)
    has_rows = rows > 0.0
    if not has_rows.any():
        return {"balanced_error": math.nan, "f1": math.nan}
    recall = hits[has_rows] / rows[has_rows]
    totals = rows + np.append(confusion.sum(axis=0), 0.0)
    f1 = 2.0 * hits / np.where(totals > 0.0, totals, 1.0)
    return {"balanced_error": 1.0 - recall.mean(), "f1": f1[1] if n_classes == 2 else f1[totals > 0.0].mean()}


def wilson(share: float, weight: np.ndarray, variance: float = 0.0) -> tuple[float | None, float | None]:
    """Wilson's 95 % interval of a share of rows, with Kish's effective sample size.

    ``variance``: the variance of the share if rows are dependent; it limits the effective sample size.
    """
    squares = weight @ weight
    if not squares > 0.0 or math.isnan(share):
        return None, None
    rows = weight.sum() ** 2 / squares
    if variance > 0.0:
        rows = min(rows, share * (1.0 - share) / variance)
    z = NORMAL**2 / rows
    middle, half = share + z / 2, math.sqrt(z * share * (1.0 - share) + z * z / 4)
    return float(max((middle - half) / (1.0 + z), 0.0)), float(min((middle + half) / (1.0 + z), 1.0))


def share_of(flags: np.ndarray, weight: np.ndarray, groups: np.ndarray | None = None) -> Measure:
    """The share of rows whose flag is set, with Wilson's interval for independent rows or groups.

    With groups, the variance is computed from group sums; if all flags are equal, each group counts as one row.

    >>> flags, groups = np.arange(100) < 10, np.arange(100) // 5
    >>> [[round(end, 3) for end in share_of(flags, np.ones(100), units)[1:]] for units in (None, groups)]
    [[0.055, 0.174], [0.027, 0.307]]
    """
    if not len(weight):
        return Measure(math.nan)
    values = flags.astype(np.float64)
    share, variance = float(np.average(values, weights=weight)), 0.0
    if groups is not None:
        groups = np.unique(groups, return_inverse=True)[1]
        errors, n = np.bincount(groups, weight * (values - share)), int(groups.max()) + 1
        if n < 2 or not 0.0 < share < 1.0:
            weight = np.bincount(groups, weight)
        else:
            variance = float(errors @ errors) / weight.sum() ** 2 * n / (n - 1)
    return Measure(share, *wilson(share, weight, variance))


def _jackknife(name: str, value: float, without: list[float]) -> tuple[float | None, float | None]:
    estimates = np.array([value, *without])
    if len(estimates) == 1 or np.isnan(estimates).any():
        return None, None
    unit = name in UNIT
    if estimates.min() == estimates.max() or (unit and (estimates.min() <= 0.0 or estimates.max() >= 1.0)):
        return None, None
    estimates = np.log(estimates / (1.0 - estimates)) if unit else estimates
    scale = _unit(estimates)
    estimates = estimates / scale
    error = math.sqrt((GROUPS - 1) / GROUPS * ((estimates[1:] - estimates[1:].mean()) ** 2).sum())
    ends = [_finite(float(end) * scale) for end in (estimates[0] - STUDENT * error, estimates[0] + STUDENT * error)]
    low, high = (1.0 / (1.0 + math.exp(-end)) for end in ends) if unit else ends
    return float(low if name in SIGNED else max(low, 0.0)), float(high)


def mean_interval(
    values: np.ndarray, weight: np.ndarray, groups: np.ndarray | None = None, comparisons: int = 1, least: float = 0.0
) -> Measure:
    """The weighted mean of rows and its 95 % interval for independent rows or groups, by linearisation.

    Student's t has one degree of freedom less than there are groups. Two pseudo-groups are added, one on each side of
    the mean, at the distance of the farthest group, or of a row of ``least``: Bonett and Price (Adjusted Wald
    confidence interval for a difference of binomial proportions based on paired data, 2012) add two rows to a
    difference of two shares, so that few differing rows do not dominate. Rows with the value NaN are ignored.

    ``comparisons``: the number of intervals that hold jointly at 95 % (Bonferroni).

    >>> differences = np.repeat([1.0, -1.0, 0.0], [6, 0, 94])
    >>> [round(number, 3) for number in mean_interval(differences, np.ones(100))]
    [0.06, 0.006, 0.114]
    """
    from scipy.special import stdtrit  # slow to import

    mask = ~np.isnan(values) & (weight > 0.0)
    values, weight = values[mask], weight[mask]
    groups = np.arange(len(values)) if groups is None else np.unique(groups[mask], return_inverse=True)[1]
    mean, n = _mean(values, weight), int(groups.max(initial=-1)) + 1
    if n < 2:
        return Measure(mean)
    shares = weight / weight.max()
    unit = max(float(np.abs(values).max()), abs(mean), least, np.finfo(float).tiny)
    errors = np.bincount(groups, shares * (values / unit - mean / unit), n)
    added = max(float(np.abs(errors).max()), least / unit * float(shares.mean()))
    spread = math.sqrt((errors @ errors + 2.0 * added**2) * n / (n - 1)) / shares.sum()
    half = float(stdtrit(n - 1, 1.0 - 0.025 / comparisons) * spread)
    return Measure(mean, *(float(_finite((mean / unit + offset) * unit)) for offset in (-half, half)))


def lift(exposure: np.ndarray, rates: np.ndarray, predicted: np.ndarray) -> list[list[float]]:
    """Exposure, predicted rate, actual rate and actual over expected, by tenth of exposure sorted by predicted rate.

    >>> y, predicted = np.array([0.0, 1.0, 1.0, 2.0]), np.array([0.5, 0.5, 1.0, 2.0])
    >>> [ratio for *_, ratio in lift(np.ones(4), y, predicted)]
    [0.0, 2.0, 1.0, 1.0]
    """
    order = np.argsort(predicted, kind="stable")
    exposure, predicted, rates = exposure[order], predicted[order], rates[order]
    tenths = parts_by_mass(exposure, TENTHS)
    sums = [np.bincount(tenths, exposure * values, TENTHS) for values in (1.0, predicted, rates)]
    return [
        [exposed, expected / exposed, actual / exposed, actual / expected if expected > 0.0 else math.nan]
        for exposed, expected, actual in np.transpose(sums).tolist()
        if exposed > 0.0
    ]


def parts_by_mass(masses: np.ndarray, parts: int) -> np.ndarray:
    """Split masses (n,) in their order into parts of about equal mass; returns the index (n,) of each mass's part.

    >>> parts_by_mass(np.array([1.0, 1.0, 1.0, 3.0]), 2)
    array([0, 0, 0, 1])
    """
    middles = (np.cumsum(masses) - masses / 2.0) / masses.sum()
    return np.minimum((middles * parts).astype(np.int64), parts - 1)


class Part(NamedTuple):
    """Consecutive rows in the order of a probability or an interval width."""

    mean: float  # mean probability or width
    rows: int
    share: Measure  # share of rows of the class, or inside their interval
    weight: float


def equal_parts(scored: Scored, values: np.ndarray, flags: np.ndarray, parts: int = TENTHS) -> list[Part]:
    """Split scored rows, sorted by values (n,), into parts of about equal weight; equal values share a part.

    >>> scored = Scored(np.ones(20), {})
    >>> [(part.mean, part.share.value) for part in equal_parts(scored, np.arange(20.0), np.arange(20) > 2)][:3]
    [(0.5, 0.0), (2.5, 0.5), (4.5, 1.0)]
    """
    order = np.argsort(values, kind="stable")
    order = order[scored.weight[order] > 0.0]
    starts = np.flatnonzero(np.append(True, np.diff(values[order]) > 0.0))
    masses = np.add.reduceat(scored.weight[order], starts)
    part_of = np.repeat(parts_by_mass(masses, parts), np.diff(np.append(starts, len(order))))
    result = []
    for rows in (order[part_of == part] for part in np.unique(part_of)):
        mean = float(np.average(values[rows], weights=scored.weight[rows]))
        result.append(Part(mean, len(rows), scored.share(flags, rows), float(scored.weight[rows].sum())))
    return result


def calibration_error(scored: Scored) -> float:
    """The expected calibration error of the most probable class of each row, with 15 bins of equal mass."""
    parts = equal_parts(scored, scored.probability, scored.codes == scored.chosen, BINS)
    distances = [abs(part.share.value - part.mean) for part in parts]
    return float(np.average(distances, weights=[part.weight for part in parts]))


class ClassReliability(NamedTuple):
    """The calibration of the probability of a class."""

    label: Any
    rows: int
    share: float  # share of all rows
    probability: float  # mean over the rows
    ratio: float  # actual over expected rows
    is_predicted: bool  # whether any row is predicted as this class
    tenths: list[Part]


def class_reliability(scored: Scored, labels: list[Any]) -> list[ClassReliability]:
    """The reliability of the rarer of two classes, which determines both, or of the rarest classes in ascending order.

    Rows of a class that was never seen in training are left out. Empty in regression, and if there were too many
    probabilities to keep.
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
        row = labels[k], int(is_of_class.sum()), share, mean, share / max(mean, 1e-300), bool((chosen == k).any())
        reliabilities.append(ClassReliability(*row, equal_parts(scored, probability, is_of_class)))
    return reliabilities
