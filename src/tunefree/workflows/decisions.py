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
from tunefree.pool.targets import place_of
from tunefree.workflows.metrics import Measure, Scored, mean_interval, share_of

THRESHOLDS = np.arange(1, 100) / 100.0  # of the curve of net benefit
MOST_POINTS = 200  # of a curve
EVEN = 0.5  # the threshold of decisions for the more probable of two classes


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


class Benefit(NamedTuple):
    """Net benefits of acting from a threshold on; acting on no row has the benefit 0."""

    threshold: float
    model: float
    all: float


class Decision(NamedTuple):
    """Hits and misses of acting from a threshold on; shares have 95 % intervals."""

    name: str  # of the threshold
    threshold: float
    acted_on: Measure
    sensitivity: Measure
    specificity: Measure
    positive_predictive_value: Measure
    negative_predictive_value: Measure
    cost: Measure | None  # mean of a row; None without costs


class Decisions(NamedTuple):
    """Decisions for a class against all others."""

    label: Any
    rows: int
    share: Measure  # of rows of the class
    decisions: list[Decision]
    benefits: list[Benefit]
    curves: dict[str, np.ndarray]  # (points, 2) by name; none where all rows are of the class, or none is
    costs: Costs | None
    cost_of_all: float | None  # mean cost of a row if all are acted on, and if none is
    cost_of_none: float | None


class _Rows(NamedTuple):
    """Rows that count: the probability of the class, whether they are of it, weights and groups."""

    probability: np.ndarray
    is_of_class: np.ndarray
    weight: np.ndarray
    groups: np.ndarray | None

    def share(self, flags: np.ndarray, among: np.ndarray) -> Measure:
        """The share of some rows that have a flag, with Wilson's interval."""
        groups = None if self.groups is None else self.groups[among]
        return share_of(flags[among], self.weight[among], groups)

    def costs(self, threshold: float, costs: Costs) -> np.ndarray:
        """The cost of each row."""
        acted_on = self.probability >= threshold
        return np.where(acted_on, costs.fp * ~self.is_of_class, costs.fn * self.is_of_class)

    def benefit(self, threshold: float) -> float:
        """The net benefit of acting from a threshold on."""
        acted_on, odds = self.probability >= threshold, threshold / (1.0 - threshold)
        worth = np.where(self.is_of_class, 1.0, -odds)
        return float(self.weight @ (acted_on * worth) / self.weight.sum())


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
    counts = scored.weight > 0.0
    if not counts.any():
        raise ModelError("all rows have a weight of 0, so that nothing can be decided; give rows with a weight above 0")
    groups = None if scored.groups is None else scored.groups[counts]
    rows = _Rows(scored.probability_of(k)[counts], scored.codes[counts] == k, scored.weight[counts], groups)
    named = {"even odds": EVEN} if threshold is None else {"asked for": threshold}
    extremes: list[float | None] = [None, None]
    if costs is not None:
        named |= {"by the costs": costs.threshold, "least cost": _cheapest(rows, costs)}
        extremes = [float(np.average(rows.costs(t, costs), weights=rows.weight)) for t in (0.0, math.inf)]
    share = rows.share(rows.is_of_class, np.ones(len(rows.weight), bool))
    benefits = [
        Benefit(t, rows.benefit(t), share.value - (1.0 - share.value) * t / (1.0 - t)) for t in THRESHOLDS.tolist()
    ]
    decided = [_decision(rows, name, t, costs) for name, t in named.items()]
    return Decisions(labels[k], len(rows.weight), share, decided, benefits, _curves(rows), costs, *extremes)


def _curves(rows: _Rows) -> dict[str, np.ndarray]:
    """Shares of false alarms and hits, and of hits and precision, by threshold."""
    if rows.is_of_class.all() or not rows.is_of_class.any():
        return {}
    from sklearn.metrics import precision_recall_curve, roc_curve  # it takes long to import

    false, hit, _ = roc_curve(rows.is_of_class, rows.probability, sample_weight=rows.weight)
    precision, recall, _ = precision_recall_curve(rows.is_of_class, rows.probability, sample_weight=rows.weight)
    curves = {"roc": np.column_stack([false, hit]), "precision": np.column_stack([recall, precision])}
    steps = {name: np.linspace(0, len(curve) - 1, MOST_POINTS).astype(int) for name, curve in curves.items()}
    return {name: curve[np.unique(steps[name])] for name, curve in curves.items()}


def _cheapest(rows: _Rows, costs: Costs) -> float:
    """The middle between the probabilities where the cost is least; of several, the nearest to ``costs.threshold``."""
    order = np.argsort(-rows.probability, kind="stable")
    ranked, weight, is_of_class = rows.probability[order], rows.weight[order], rows.is_of_class[order]
    last = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
    hits, alarms = (np.append(0.0, np.cumsum(weight * flags)[last]) for flags in (is_of_class, ~is_of_class))
    unit = max(costs)  # no sum overflows
    means = (costs.fp / unit * alarms + costs.fn / unit * (hits[-1] - hits)) / weight.sum()
    ends = np.concatenate([[1.0], ranked[last], [0.0]])
    middles = ((ends[:-1] + ends[1:]) / 2.0)[means == means.min()]
    return float(middles[np.abs(middles - costs.threshold).argmin()])


def _decision(rows: _Rows, name: str, threshold: float, costs: Costs | None) -> Decision:
    acted_on, everywhere = rows.probability >= threshold, np.ones(len(rows.weight), bool)
    cost = None
    if costs is not None:
        cost = mean_interval(rows.costs(threshold, costs), rows.weight, rows.groups)
        cost = cost if cost.low is None else cost._replace(low=max(cost.low, 0.0))
    return Decision(
        name,
        threshold,
        acted_on=rows.share(acted_on, everywhere),
        sensitivity=rows.share(acted_on, rows.is_of_class),
        specificity=rows.share(~acted_on, ~rows.is_of_class),
        positive_predictive_value=rows.share(rows.is_of_class, acted_on),
        negative_predictive_value=rows.share(~rows.is_of_class, ~acted_on),
        cost=cost,
    )
