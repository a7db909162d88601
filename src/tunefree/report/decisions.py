"""Decisions by the probability of a class: hits and misses at a threshold, their costs, and their net benefit.

A row is acted on if the probability p of the class is at least the threshold t. If a false alarm costs c1 and a miss
c0, acting is cheaper if p >= c1 / (c1 + c0). Vickers and Elkin (Decision curve analysis, Medical Decision Making 2006)
invert this: a threshold t implies that a miss is (1 - t) / t times as bad as a false alarm. For n rows, in units of a
hit, the net benefit is

    hits / n - false alarms / n * t / (1 - t).

It is compared with the net benefit of acting on all rows, and of acting on none, which is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.plotting.charts import LONGEST, draw_square, draw_thresholds
from tunefree.plotting.style import shortened
from tunefree.pool.targets import place_of
from tunefree.report.document import Block, Chart, Column, Fact, Facts, Table, on_axes
from tunefree.report.formats import COUNT, FIGURES, TENTHS_OF_PERCENT, Format
from tunefree.workflows.metrics import Measure, Ranking, Scored, mean_interval, share_of

THRESHOLDS = np.arange(1, 100) / 100.0  # thresholds of the curve of net benefit
EVERY = 10  # step between thresholds in text output
MOST_POINTS = 200  # points of a curve
EVEN = 0.5  # the threshold that selects the more probable of two classes
COST, THRESHOLD, BENEFIT = Format(".4f"), Format(".3g"), Format("+.4f")
SHARES = ("acted on", "sensitivity", "specificity", "positive predictive value", "negative predictive value")
NOTE = "Rows are acted on where the probability is at least the threshold. Intervals: 95 %, Wilson's."
OF_COSTS = (
    "The threshold by the costs is best if probabilities are calibrated. That of the least cost was looked for on these"
    " rows, so that new ones cost more."
)
OF_ROC = "Each point is a threshold. Grey: acting at random."
OF_PRECISION = "Precision: share of the rows acted on that are of the class. Grey: acting at random."
OF_BENEFIT = (
    "True positives less false positives, each with weight t / (1 - t), per row (Vickers and Elkin 2006). Acting on"
    " none has 0."
)


class Costs(NamedTuple):
    """The costs of a false alarm and of a miss, in any unit."""

    fp: float
    fn: float

    @classmethod
    def parsed(cls, text: str | dict[str, float]) -> Costs:
        """Parse costs from a string or a dict; a ModelError if they are malformed.

        >>> Costs.parsed("fp=1,fn=5") == Costs.parsed({"fp": 1, "fn": 5}) == Costs(1.0, 5.0)
        True
        """
        text = ",".join(f"{name}={cost}" for name, cost in text.items()) if isinstance(text, dict) else str(text)
        parts = [part.partition("=") for part in text.split(",")]
        numbers = {name.strip(): number for name, _, number in parts}
        try:
            costs = cls(float(numbers["fp"]), float(numbers["fn"]))
        except (KeyError, ValueError):
            costs = cls(math.nan, math.nan)
        if len(parts) != 2 or not all(0.0 < cost < math.inf for cost in costs):
            usage = "write both costs, of a false alarm and of a miss, as numbers above 0, such as fp=1,fn=5"
            raise ModelError(f"`cost`: {text!r} is not understood; {usage}")
        return costs

    @property
    def threshold(self) -> float:
        """The smallest probability for which acting costs less, if probabilities are calibrated."""
        return 1.0 / (1.0 + self.fn / self.fp)


def decisions(
    scored: Scored, labels: Sequence[Any], label: Any = None, costs: Costs | None = None, threshold: float | None = None
) -> list[Block]:
    """Decisions for a class by its probability, on scored rows: hits and misses, costs, curves and net benefit.

    ``labels``: the labels of all classes.
    ``label``: the label of the class, possibly as text; by default the second of two classes.
    ``threshold``: the smallest probability at which rows are acted on; by default 1/2.
    Raises a ModelError if the model predicts numbers, the class does not exist, no class is given although there are
    more than two, or ``threshold`` is not between 0 and 1.

    >>> codes, scores = np.array([0, 0, 1, 1]), np.array([[0.1], [0.6], [0.4], [0.9]])
    >>> scored = Scored(np.ones(4), {}, codes, np.zeros(4, int), scores, n_classes=2)
    >>> [(fact.name, fact.text()) for fact in decisions(scored, ["no", "yes"], costs=Costs(1.0, 5.0))[0].facts][-2:]
    [('threshold: least cost', '0.25'), ('cost of a row: least cost', '0.2500')]
    """
    k = _index_of_class(scored, labels, label, threshold)
    rows = scored.part(scored.weight > 0.0)
    probability, is_of_class, weight = rows.probability_of(k), rows.codes == k, rows.weight
    share, ranking = share_of(is_of_class, weight, rows.groups), Ranking(probability)
    hits, alarms = (np.append(0.0, ranking.sums(weight * flags)) for flags in (is_of_class, ~is_of_class))
    facts = [Fact("class", labels[k]), Fact("rows", len(weight), COUNT)]
    facts.append(Fact("share of the class", share, TENTHS_OF_PERCENT, "share"))
    named = {"even odds": EVEN} if threshold is None else {"asked for": threshold}
    if costs is not None:
        named |= {"by the costs": costs.threshold, "least cost": _cheapest(ranking, hits, alarms, weight.sum(), costs)}
        cost_of_all = np.average(costs.fp * ~is_of_class, weights=weight)
        cost_of_none = np.average(costs.fn * is_of_class, weights=weight)
        facts += [
            Fact("cost of a false alarm", costs.fp, Format("g"), "cost_fp"),
            Fact("cost of a miss", costs.fn, Format("g"), "cost_fn"),
            Fact("cost of a row if all are acted on", float(cost_of_all), FIGURES, "cost_of_all"),
            Fact("cost of a row if none is", float(cost_of_none), FIGURES, "cost_of_none"),
        ]
    columns, shares = [Column("share")], []
    for name, t in named.items():
        facts.append(Fact(f"threshold: {name}", t, THRESHOLD))
        if costs is not None:
            facts.append(Fact(f"cost of a row: {name}", _cost(rows, probability >= t, is_of_class, costs), COST))
        title = f"{name}, from {THRESHOLD(t)} on"
        columns.append(Column(title, TENTHS_OF_PERCENT.with_ends, name.replace(" ", "_")))
        shares.append(_shares(rows, probability >= t, is_of_class))
    cells = list(zip(SHARES, *shares, strict=True))
    return [
        Facts(facts, f"Decisions for {labels[k]}", OF_COSTS if costs else "", "decisions"),
        Table("What thresholds hit and miss", columns, cells, NOTE, "decided_shares", is_wide=len(columns) > 2),
        *_charts_of_shares(labels[k], share.value, curves(hits, alarms)),
        *_benefits(probability, is_of_class, weight, share.value),
    ]


def _index_of_class(scored: Scored, labels: Sequence[Any], label: Any, threshold: float | None) -> int:
    """The index of the class in ``labels``; a ModelError if nothing can be decided."""
    if scored.codes is None:
        raise ModelError(
            "decisions are for classes, and this model predicts numbers; leave `cost`, `threshold` and `class` out"
        )
    if label is None and len(labels) != 2:
        names = ", ".join(map(str, labels[:4])) + (", ..." if len(labels) > 4 else "")
        raise ModelError(f"the model has {len(labels)} classes: name one of {names} by `class`, against the others")
    k = 1 if label is None else place_of(label, labels)
    if threshold is not None and not 0.0 < threshold < 1.0:
        raise ModelError(f"`threshold` must lie between 0 and 1, not {threshold:g}")
    if scored.scores is None:
        raise ModelError("the rows have too many probabilities to be kept; decide on fewer rows")
    return k


def _cheapest(ranking: Ranking, hits: np.ndarray, alarms: np.ndarray, total: float, costs: Costs) -> float:
    """The threshold of least cost, midway between probabilities; of several, the nearest to ``costs.threshold``."""
    unit = max(costs)  # so that no sum overflows
    means = (costs.fp / unit * alarms + costs.fn / unit * (hits[-1] - hits)) / total
    ends = np.concatenate([[1.0], ranking.scores, [0.0]])
    middles = ((ends[:-1] + ends[1:]) / 2.0)[means == means.min()]
    return float(middles[np.abs(middles - costs.threshold).argmin()])


def _cost(rows: Scored, acted_on: np.ndarray, is_of_class: np.ndarray, costs: Costs) -> Measure:
    row_costs = np.where(acted_on, costs.fp * ~is_of_class, costs.fn * is_of_class)
    cost = mean_interval(row_costs, rows.weight, rows.groups)
    return cost if cost.low is None else cost._replace(low=max(cost.low, 0.0))


def _shares(rows: Scored, acted_on: np.ndarray, is_of_class: np.ndarray) -> list[Measure]:
    """The share of the rows that are acted on, sensitivity, specificity, and predictive values, as in SHARES."""
    pairs = (
        (acted_on, np.ones(len(acted_on), bool)),
        (acted_on, is_of_class),
        (~acted_on, ~is_of_class),
        (is_of_class, acted_on),
        (~is_of_class, ~acted_on),
    )
    return [rows.share(flags, among) for flags, among in pairs]


def curves(hits: np.ndarray, alarms: np.ndarray) -> dict[str, np.ndarray]:
    """Points (n, 2) of the ROC and the precision-recall curve, from cumulative weights; empty if a class is missing."""
    if not (hits[-1] > 0.0 and alarms[-1] > 0.0):
        return {}
    shown = np.unique(np.linspace(0, len(hits) - 1, MOST_POINTS).astype(int))
    precision = np.append(1.0, hits[1:] / (hits[1:] + alarms[1:]))
    pairs = {"roc": (alarms / alarms[-1], hits / hits[-1]), "precision": (hits / hits[-1], precision)}
    return {name: np.column_stack(pair)[shown] for name, pair in pairs.items()}


def _charts_of_shares(label: Any, share: float, points: dict[str, np.ndarray]) -> list[Block]:
    """Charts of the ROC curve and the precision-recall curve."""
    hit, charts = f"hits: share of {shortened(str(label), LONGEST)}", list[Block]()
    looks = {
        "roc": ("ROC curve", ("false alarms: share of the others", hit), (0.0, 1.0), OF_ROC),
        "precision": ("Precision and recall", (hit, "precision"), (share, share), OF_PRECISION),
    }
    for name, curve in points.items():
        title, titles, chance, caption = looks[name]
        charts.append(Chart(title, f"{len(curve)} points.", on_axes(draw_square, *curve.T, titles, chance), caption))
    return charts


def _benefits(probability: np.ndarray, is_of_class: np.ndarray, weight: np.ndarray, share: float) -> list[Block]:
    """The net benefit by threshold, as a chart and as a table."""
    thresholds, benefits = THRESHOLDS.tolist(), list[float]()
    for t in thresholds:
        worth = np.where(is_of_class, 1.0, -t / (1.0 - t))
        benefits.append(float(weight @ ((probability >= t) * worth) / weight.sum()))
    benefits_of_all = [share - (1.0 - share) * t / (1.0 - t) for t in thresholds]
    middle = len(thresholds) // 2
    described = f"At {thresholds[middle]:.2g}: this model {benefits[middle]:.3g}, all {benefits_of_all[middle]:.3g}."
    curves_by_name = {"this model": benefits, "all": benefits_of_all, "none": [0.0] * len(thresholds)}
    draw = on_axes(draw_thresholds, thresholds, curves_by_name, ("threshold", "net benefit"))
    columns = [Column("threshold", THRESHOLD), Column("this model", BENEFIT, "model"), Column("all", BENEFIT)]
    rows = list(zip(thresholds, benefits, benefits_of_all, strict=True))
    shown = range(EVERY - 1, len(thresholds), EVERY)
    return [
        Chart("Net benefit", described, draw, OF_BENEFIT),
        Table("Net benefit", columns, rows, OF_BENEFIT, "net_benefit", shown, is_open=False),
    ]
