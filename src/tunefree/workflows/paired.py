"""A model beside others on the same rows: paired differences of their losses and errors, in numbers and in words.

The difference of two models on a row is the difference of their losses, in which the difficulty of the row cancels. The
interval of its mean is by :func:`tunefree.workflows.metrics.mean_interval`, for independent rows or groups. It has 95 %
for all models beside the first together. One is better where the interval of the loss leaves 0 out.

In cross-validation each row is predicted by models of the other parts. The interval is then for the mean loss of these
models on new rows (Bayle, Bayle, Janson, Mackey: Cross-validation confidence intervals for test error, NeurIPS 2020);
how models would differ between samples of training rows is no part of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core.errors import ModelError
from tunefree.core.numbers import MOST
from tunefree.losses import kind_of, loss_of
from tunefree.losses.contract import has_log_link
from tunefree.losses.objectives import Objective, measured
from tunefree.workflows.calibration import Calibration, calibration
from tunefree.workflows.metrics import Measure, mean_interval

FOLDS = 5
MEANT = ("squared error", "absolute loss")  # losses of which absolute errors tell how good predictions are
CONSTANT = "constant"
ROUNDING = 1e-12  # of the largest target, by which predictions of it may differ
LEAST_RATE = 1e-9  # of the mean rate, below which no rate is judged


def linear_name(task: str, loss: str | None) -> str:
    """The name of the linear model with this loss.

    >>> linear_name("regression", "quantile:0.9"), linear_name("regression", None)
    ('quantile regression', 'ridge regression')
    """
    if task == "classification":
        return "logistic regression"
    names = {"poisson": "Poisson regression", "gamma": "gamma regression", "tweedie": "Tweedie regression"}
    names |= dict.fromkeys(("quantile", "absolute"), "quantile regression")
    return names.get(kind_of(loss), "ridge regression")


class Truth(NamedTuple):
    """Rows with known targets, by which models are judged.

    ``targets`` (n,): places among ``classes``, or numbers, which are rates where rows have exposures.
    ``groups`` (n,): numbers of the groups of rows, which only together are independent of others.
    """

    task: str
    loss: str | None
    classes: list[Any]
    targets: np.ndarray
    weight: np.ndarray
    groups: np.ndarray | None = None

    def at(self, rows: np.ndarray) -> Truth:
        """Some of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return self._replace(targets=self.targets[rows], weight=self.weight[rows], groups=groups)

    def judged(self, name: str, predictions: np.ndarray, seconds: float | None = None) -> Judged:
        """Predictions of a model: probabilities (n, C) of the classes, or numbers (n,)."""
        n = len(self.targets)
        if np.isnan(predictions).any():
            raise ModelError(f"{name} predicts NaN; leave it out, or mend it")
        if self.task == "regression":
            loss = loss_of("regression", self.loss)
            with np.errstate(over="ignore"):
                is_right = np.abs(self.targets - predictions) <= ROUNDING * np.abs(self.targets).max(initial=0.0)
            predictions = np.where(is_right, self.targets, predictions)
            if has_log_link(loss):  # which has no prediction for a mean of 0
                mean = mean_interval(self.targets, self.weight).value
                predictions = np.maximum(predictions, LEAST_RATE * max(mean, LEAST_RATE))
            outputs = np.asarray(loss.prediction_of(predictions), np.float64)[:, None]
            with np.errstate(over="ignore"):
                errors = np.minimum(np.abs(self.targets - predictions), MOST)
            losses = measured(Objective("regression", loss), self.targets, outputs)
            return Judged(name, losses, errors, seconds)
        chosen = predictions.argmax(axis=1)
        likely = np.maximum(predictions[np.arange(n), np.minimum(self.targets, len(self.classes) - 1)], 0.5 / n)
        is_known = self.targets < len(self.classes)
        losses, errors = np.where(is_known, -np.log(likely), math.nan), (chosen != self.targets).astype(np.float64)
        return Judged(name, losses, errors, seconds, predictions.max(axis=1))


class Judged(NamedTuple):
    """The losses and errors (n,) of a model, and for classes the probability of the one that it predicts."""

    name: str
    losses: np.ndarray
    errors: np.ndarray
    seconds: float | None = None  # of learning; None where it was learned before
    probability: np.ndarray | None = None


class Contender(NamedTuple):
    """A model in a comparison. Differences are its mean minus the first model's mean; the first model has none."""

    name: str
    loss: float
    error: float  # share of wrong classes, or absolute error
    loss_difference: Measure | None = None
    error_difference: Measure | None = None
    better: str = ""  # the name of the better one of the two by the loss; empty where it is not clear
    seconds: float | None = None


@dataclass(frozen=True)
class PairedComparison:
    """A model, the first of the contenders, beside others on the same rows.

    ``how``: by which rows the models learned and were judged, in words.
    ``left_out``: peers that cannot take part, and why.
    ``unseen``: rows whose class no model knows, which count as errors and have no loss.
    """

    target: str
    task: str
    loss: str
    contenders: list[Contender]
    rows: int
    how: str
    groups: int = 0
    unseen: int = 0
    linear: str = ""  # the name of the linear peer
    classes: list[Any] = field(default_factory=list)
    calibration: Calibration | None = None
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def model(self) -> Contender:
        """The model that the others stand beside."""
        return self.contenders[0]

    @property
    def sentence(self) -> str:
        """The comparison as a colleague reads it aloud: model, linear peer, who else is better, and calibration.

        A model is called better only where an interval says so.
        """
        model, others = self.model, self.contenders[1:]
        write = _Words(self)
        clauses = [f"Predicts {goal_in_words(self.target, self.classes)} with {write.mean(model)}"]
        linear = next((one for one in others if one.name == self.linear), None)
        shown = linear or next((one for one in others if one.name != CONSTANT), next(iter(others), None))
        clauses += [] if shown is None else write.beside(shown, model)
        for other in others:
            if other is not shown and other.better == other.name:
                clauses.append(f"{other.name} is better by its {self.loss}, with {write.mean(other)}")
            elif other is not shown and other.name == CONSTANT and not other.better:
                clauses.append("it is not clearly better than a constant")
        if self.calibration is not None:
            clauses.append(self.calibration.words)
        return "; ".join(clauses) + "."

    def table(self) -> pa.Table:
        """The contenders as a table, intervals as columns ``..._low`` and ``..._high``."""
        columns: dict[str, list[Any]] = {}
        for contender in self.contenders:
            for name, value in contender._asdict().items():
                parts = ("", "_low", "_high") if name.endswith("_difference") else ("",)
                values = (value or (None, None, None)) if len(parts) > 1 else (value,)
                for part, one in zip(parts, values, strict=True):
                    columns.setdefault(name + part, []).append(one)
        types = dict.fromkeys(("name", "better"), pa.string())
        return pa.table({name: pa.array(values, types.get(name, pa.float64())) for name, values in columns.items()})

    def __str__(self) -> str:
        return self.sentence


def compared(
    truth: Truth, judged: Sequence[Judged], target: str, how: str, left_out: dict[str, str] | None = None
) -> PairedComparison:
    """A model, the first, beside others on the same rows.

    >>> truth = Truth("classification", None, ["no", "yes"], np.array([0, 1] * 50), np.ones(100))
    >>> sure, even = np.tile([[0.9, 0.1], [0.1, 0.9]], (50, 1)), np.full((100, 2), 0.5)
    >>> comparison = compared(truth, [truth.judged("a", sure), truth.judged("b", even)], "rich", "test rows")
    >>> comparison.table().select(["name", "error", "error_difference", "better"]).to_pylist()[1]
    {'name': 'b', 'error': 0.5, 'error_difference': 0.5, 'better': 'a'}
    >>> comparison.sentence.partition("; prob")[0]
    'Predicts rich = yes with 0.0 % error; b 50.0 %; 95 % interval of the difference 39.6 to 60.4 points'
    """
    weight, first, is_class = truth.weight, judged[0], truth.task == "classification"
    if not weight.sum() > 0.0:
        raise ModelError("all rows have a weight of 0, so that nothing is compared; give rows with a weight above 0")
    contenders = [_contender(first, weight)]
    for one in judged[1:]:
        losses, errors = (
            mean_interval(theirs - ours, weight, truth.groups, len(judged) - 1, least)
            for theirs, ours, least in (
                (one.losses, first.losses, 0.0),
                (one.errors, first.errors, float(is_class)),
            )
        )
        better = {1: first.name, -1: one.name}.get(side(losses), "")
        contender = _contender(one, weight)
        contenders.append(contender._replace(loss_difference=losses, error_difference=errors, better=better))
    counts = weight > 0.0
    known = None
    if first.probability is not None:
        groups = None if truth.groups is None else truth.groups[counts]
        known = calibration(first.probability[counts], first.errors[counts] == 0.0, weight[counts], groups)
    return PairedComparison(
        target,
        truth.task,
        "log-loss" if is_class else "squared error" if truth.loss in (None, "square") else f"{truth.loss} loss",
        contenders,
        int(counts.sum()),
        how,
        groups=0 if truth.groups is None else len(np.unique(truth.groups[counts])),
        unseen=int((truth.targets[counts] >= len(truth.classes)).sum()) if is_class else 0,
        linear=linear_name(truth.task, truth.loss),
        classes=truth.classes,
        calibration=known,
        left_out=left_out or {},
    )


def _contender(one: Judged, weight: np.ndarray) -> Contender:
    loss, error = (mean_interval(values, weight).value for values in (one.losses, one.errors))
    return Contender(one.name, loss, error, seconds=one.seconds)


def side(difference: Measure | None) -> int:
    """The side of 0 on which an interval lies, -1 or 1; 0 where it holds 0, or is unknown."""
    if difference is None or difference.low is None or difference.high is None:
        return 0
    return 1 if difference.low > 0.0 else -1 if difference.high < 0.0 else 0


class _Words:
    """The wording of a comparison: by errors in per cent and points, by absolute errors, or by a loss."""

    def __init__(self, comparison: PairedComparison) -> None:
        self.is_share, self.loss = comparison.task == "classification", comparison.loss
        self.is_error = self.is_share or self.loss in MEANT
        self.kind = "errors" if self.is_error else "losses"

    def number(self, contender: Contender) -> str:
        """The mean error, or loss."""
        value = contender.error if self.is_error else contender.loss
        return f"{100.0 * value:.1f} %" if self.is_share else _figures(value, 4)

    def mean(self, contender: Contender) -> str:
        """The mean error, or loss, with its name."""
        if self.is_share:
            return f"{self.number(contender)} error"
        return f"a mean {'absolute error' if self.is_error else self.loss} of {self.number(contender)}"

    def interval(self, measure: Measure, sign: int) -> str:
        """The ends of an interval, which is turned round with a negative sign."""
        ends = sorted(sign * end for end in (measure.low or 0.0, measure.high or 0.0))
        if self.is_share:
            return f"{100.0 * ends[0]:.1f} to {100.0 * ends[1]:.1f} points"
        return " to ".join(_figures(end, 3) for end in ends)

    def beside(self, other: Contender, model: Contender) -> list[str]:
        """Clauses on another model and the interval of the difference, also of the loss where only this is clear."""
        ends, by_loss = other.loss_difference, {model.name: 1, other.name: -1}.get(other.better, 0)
        ends = other.error_difference if self.is_error else ends
        clear = side(ends)
        if ends is None or ends.low is None:
            return [f"{other.name} {self.number(other)}", "too few rows for an interval of the difference"]
        if clear and by_loss in (0, clear):
            better = ", which is better" if clear < 0 else ""
            difference = f"95 % interval of the difference {self.interval(ends, clear)}"
            return [f"{other.name} {self.number(other)}{better}", difference]
        difference = f"no clear difference of the {self.kind}, {self.interval(ends, 1)}"
        if clear:
            difference = f"95 % interval of the difference of the {self.kind} {self.interval(ends, clear)}"
        clauses = [f"{other.name} {self.number(other)}", difference]
        losses = other.loss_difference
        if by_loss and losses is not None and losses.low is not None and losses.high is not None:
            low, high = sorted(abs(end) for end in (losses.low, losses.high))
            better = "it is" if by_loss > 0 else f"{other.name} is"
            clauses.append(f"{better} better by its {self.loss}, 95 % interval {low:.3g} to {high:.3g}")
        return clauses


def _figures(number: float, digits: int) -> str:
    """A number with so many digits, or all of a whole number below a million, which has no exponent.

    >>> _figures(0.123456, 4), _figures(37138.2, 4), _figures(3.04e9, 4)
    ('0.1235', '37,138', '3.04e+09')
    """
    return f"{number:,.0f}" if 10.0**digits - 0.5 <= abs(number) < 1e6 else f"{number:,.{digits}g}"


def goal_in_words(target: str, classes: Sequence[Any]) -> str:
    """The target, and of two classes the second.

    >>> goal_in_words("income", ["<=50K", ">50K"]), goal_in_words("rich", [False, True])
    ('income >50K', 'rich')
    """
    label = classes[1] if len(classes) == 2 else True
    if label is True:
        return target
    return f"{target} {'' if str(label)[:1] in '<>=≤≥' else '= '}{label}"
