"""Decisions by the probability of a class: hits and misses at a threshold, their costs, and their net benefit.

A row is acted on where the probability p of the class is at least the threshold t. If a false alarm costs c1 and a miss
c0, acting is cheaper where p >= c1 / (c1 + c0). Vickers and Elkin (Decision curve analysis, Medical Decision Making
2006) turn this round: who acts from t on holds a miss to be (1 - t) / t times as bad as a false alarm. In units of a
hit among n rows, the net benefit is

    hits / n - false alarms / n * t / (1 - t).

It is compared with that of acting on all rows, and on none, which is 0.
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

THRESHOLDS = np.arange(1, 100) / 100.0  # of the curve of net benefit
EVERY = 10  # threshold of this curve that people see
MOST_POINTS = 200  # of a curve
EVEN = 0.5  # the threshold of decisions for the more probable of two classes
COST, THRESHOLD, BENEFIT = Format(".4f"), Format(".3g"), Format("+.4f")
SHARES = ("acted_on", "sensitivity", "specificity", "positive_predictive_value", "negative_predictive_value")
NOTE = "Rows are acted on where the probability is at least the threshold. Intervals: 95 %, Wilson's."
OF_COSTS = (
    "The threshold by the costs is best if probabilities are calibrated. That of the least cost was looked for on these"
    " rows, so that new ones cost more."
)
OF_ROC = "Each point is a threshold. Grey: acting at random."
OF_PRECISION = "Precision: share of the rows acted on that are of the class. Grey: acting at random."
OF_BENEFIT = (
    "True positives less false positives, of which each weighs t / (1 - t), per row (Vickers and Elkin 2006). Acting on"
    " none has 0."
)


class Costs(NamedTuple):
    """The costs of a false alarm and of a miss, in any unit."""

    fp: float
    fn: float

    @classmethod
    def parsed(cls, text: str | dict[str, float]) -> Costs:
        """The costs in a text, or by their names; a ModelError if it says anything else.

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
        """The probability from which on acting costs less, if probabilities are calibrated."""
        return 1.0 / (1.0 + self.fn / self.fp)


class Decision(NamedTuple):
    """Hits and misses of acting from a threshold on; shares have 95 % intervals."""

    name: str  # of the threshold
    threshold: float
    cost: Measure | None  # mean of a row; None without costs
    acted_on: Measure
    sensitivity: Measure
    specificity: Measure
    positive_predictive_value: Measure
    negative_predictive_value: Measure


class Decisions(NamedTuple):
    """Decisions for a class against all others."""

    label: Any
    rows: int
    share: Measure  # of rows of the class
    decisions: list[Decision]
    benefits: list[tuple[float, float, float]]  # thresholds, and net benefits of acting from these on and on all rows
    curves: dict[str, np.ndarray]  # (points, 2) by name; none where all rows are of the class, or none is
    costs: Costs | None
    cost_of_all: float | None  # mean cost of a row if all are acted on, and if none is
    cost_of_none: float | None


def decisions(
    scored: Scored, labels: Sequence[Any], label: Any = None, costs: Costs | None = None, threshold: float | None = None
) -> Decisions:
    """Decisions for a class by its probability, on scored rows.

    ``labels``: of the classes.
    ``label``: of the class, as it is or as a text; of two classes by default the second.
    ``threshold``: from which probability on rows are acted on; by default 1/2.
    Raises a ModelError if the model predicts numbers, there is no such class, it is not named among more than two, or
    ``threshold`` does not lie between 0 and 1.

    >>> codes, scores = np.array([0, 0, 1, 1]), np.array([[0.1], [0.6], [0.4], [0.9]])
    >>> scored = Scored(np.ones(4), {}, codes, np.zeros(4, int), scores, n_classes=2)
    >>> decided = decisions(scored, ["no", "yes"], costs=Costs(1.0, 5.0))
    >>> [(one.name, round(one.threshold, 3), one.cost.value) for one in decided.decisions]
    [('even odds', 0.5, 1.5), ('by the costs', 0.167, 0.25), ('least cost', 0.25, 0.25)]
    """
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
    if not (scored.weight > 0.0).any():
        raise ModelError("all rows have a weight of 0, so that nothing can be decided; give rows with a weight above 0")
    rows = scored.part(scored.weight > 0.0)
    probability, is_of_class, weight = rows.probability_of(k), rows.codes == k, rows.weight
    ranking = Ranking(probability)
    hits, alarms = (np.append(0.0, ranking.sums(weight * flags)) for flags in (is_of_class, ~is_of_class))
    named = {"even odds": EVEN} if threshold is None else {"asked for": threshold}
    extremes: list[float | None] = [None, None]
    if costs is not None:
        named |= {"by the costs": costs.threshold, "least cost": _cheapest(ranking, hits, alarms, weight.sum(), costs)}
        of_rows = costs.fp * ~is_of_class, costs.fn * is_of_class  # of all acted on, and of none
        extremes = [float(np.average(costs_of_rows, weights=weight)) for costs_of_rows in of_rows]
    share, benefits = share_of(is_of_class, weight, rows.groups), []
    for t in THRESHOLDS.tolist():
        worth = np.where(is_of_class, 1.0, -t / (1.0 - t))
        benefit = float(weight @ ((probability >= t) * worth) / weight.sum())
        benefits.append((t, benefit, share.value - (1.0 - share.value) * t / (1.0 - t)))
    decided = [_decision(rows, probability, is_of_class, name, t, costs) for name, t in named.items()]
    curves = {}
    if hits[-1] > 0.0 and alarms[-1] > 0.0:
        precision = np.append(1.0, hits[1:] / (hits[1:] + alarms[1:]))
        curves = {"roc": (alarms / alarms[-1], hits / hits[-1]), "precision": (hits / hits[-1], precision)}
    some = np.unique(np.linspace(0, len(hits) - 1, MOST_POINTS).astype(int))
    points = {name: np.column_stack(curve)[some] for name, curve in curves.items()}
    return Decisions(labels[k], len(weight), share, decided, benefits, points, costs, *extremes)


def _cheapest(ranking: Ranking, hits: np.ndarray, alarms: np.ndarray, total: float, costs: Costs) -> float:
    """The middle between the probabilities where the cost is least; of several, the nearest to ``costs.threshold``."""
    unit = max(costs)  # no sum overflows
    means = (costs.fp / unit * alarms + costs.fn / unit * (hits[-1] - hits)) / total
    ends = np.concatenate([[1.0], ranking.scores, [0.0]])
    middles = ((ends[:-1] + ends[1:]) / 2.0)[means == means.min()]
    return float(middles[np.abs(middles - costs.threshold).argmin()])


def _decision(
    rows: Scored, probability: np.ndarray, is_of_class: np.ndarray, name: str, threshold: float, costs: Costs | None
) -> Decision:
    acted_on, cost = probability >= threshold, None
    if costs is not None:
        cost_of_rows = np.where(acted_on, costs.fp * ~is_of_class, costs.fn * is_of_class)
        cost = mean_interval(cost_of_rows, rows.weight, rows.groups)
        cost = cost if cost.low is None else cost._replace(low=max(cost.low, 0.0))
    shares = [
        rows.share(flags, among)
        for flags, among in (
            (acted_on, np.ones(len(acted_on), bool)),
            (acted_on, is_of_class),
            (~acted_on, ~is_of_class),
            (is_of_class, acted_on),
            (~is_of_class, ~acted_on),
        )
    ]
    return Decision(name, threshold, cost, *shares)


def blocks_of_decisions(decided: Decisions) -> list[Block]:
    """The decisions, and the net benefit of all thresholds."""
    facts = [Fact("class", decided.label), Fact("rows", decided.rows, COUNT)]
    facts += [Fact("share of the class", decided.share, TENTHS_OF_PERCENT, "share")]
    if decided.costs is not None:
        facts += [
            Fact("cost of a false alarm", decided.costs.fp, Format("g"), "cost_fp"),
            Fact("cost of a miss", decided.costs.fn, Format("g"), "cost_fn"),
            Fact("cost of a row if all are acted on", decided.cost_of_all, FIGURES, "cost_of_all"),
            Fact("cost of a row if none is", decided.cost_of_none, FIGURES, "cost_of_none"),
        ]
    facts += [
        fact
        for one in decided.decisions
        for fact in (
            Fact(f"threshold: {one.name}", one.threshold, THRESHOLD),
            Fact(f"cost of a row: {one.name}", one.cost, COST),
        )
        if fact.value is not None
    ]
    columns = [Column("share")]
    for one in decided.decisions:
        title = f"{one.name}, from {THRESHOLD(one.threshold)} on"
        columns.append(Column(title, TENTHS_OF_PERCENT.with_ends, one.name.replace(" ", "_")))
    rows = [[name.replace("_", " "), *(getattr(one, name) for one in decided.decisions)] for name in SHARES]
    return [
        Facts(facts, f"Decisions for {decided.label}", OF_COSTS if decided.costs else "", "decisions"),
        Table("What thresholds hit and miss", columns, rows, NOTE, "decided_shares", is_wide=len(columns) > 2),
        *_charts_of_shares(decided),
        *_benefits(decided),
    ]


def _charts_of_shares(decided: Decisions) -> list[Block]:
    """The ROC curve, and precision by the share of the class that is hit."""
    hit, share = f"hits: share of {shortened(str(decided.label), LONGEST)}", decided.share.value
    looks = {
        "roc": ("ROC curve", ("false alarms: share of the others", hit), (0.0, 1.0), OF_ROC),
        "precision": ("Precision and recall", (hit, "precision"), (share, share), OF_PRECISION),
    }
    charts: list[Block] = []
    for name, curve in decided.curves.items():
        title, titles, chance, caption = looks[name]
        draw = on_axes(draw_square, *curve.T, titles, chance)
        charts.append(Chart(title, f"{len(curve)} points.", draw, caption))
    return charts


def _benefits(decided: Decisions) -> list[Block]:
    """The net benefit by threshold, as a picture and as a table."""
    thresholds, model, everyone = map(list, zip(*decided.benefits, strict=True))
    middle = len(thresholds) // 2
    described = f"At {thresholds[middle]:.2g}: this model {model[middle]:.3g}, all {everyone[middle]:.3g}."
    named = {"this model": model, "all": everyone, "none": [0.0] * len(thresholds)}
    draw = on_axes(draw_thresholds, thresholds, named, ("threshold", "net benefit"))
    columns = [Column("threshold", THRESHOLD), Column("this model", BENEFIT, "model"), Column("all", BENEFIT)]
    shown = range(EVERY - 1, len(thresholds), EVERY)
    return [
        Chart("Net benefit", described, draw, OF_BENEFIT),
        Table("Net benefit", columns, decided.benefits, OF_BENEFIT, "net_benefit", shown, is_open=False),
    ]
