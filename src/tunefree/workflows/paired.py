"""Comparison of a model with others on the same rows: paired differences of losses and errors, and a sentence.

Differences are taken row by row, so that the difficulty of a row cancels. The interval of a mean difference is computed
by :func:`tunefree.workflows.metrics.mean_interval`, for independent rows or groups. All comparisons with the first
model hold jointly at 95 %. A model is better if the interval of the difference in loss excludes 0.

In cross-validation each row is predicted by models of the other folds. The interval then covers the mean loss of these
models on new rows (Bayle, Bayle, Janson, Mackey: Cross-validation confidence intervals for test error, NeurIPS 2020),
but not the variation between training samples.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core.errors import ModelError
from tunefree.core.numbers import MOST
from tunefree.losses import loss_of
from tunefree.losses.contract import has_log_link
from tunefree.losses.objectives import Objective, measured
from tunefree.workflows.metrics import Measure, mean_interval

MEANT = ("squared error", "absolute loss")  # losses for which the absolute error is reported
ROUNDING = 1e-12  # relative to the largest target: smaller errors count as 0
LEAST_RATE = 1e-9  # relative to the mean rate: smaller predicted rates are raised to this


class Truth(NamedTuple):
    """Rows with known targets, on which models are evaluated."""

    task: str
    loss: str | None
    classes: list[Any]
    targets: np.ndarray  # (n,) class indices or numbers, which are rates if rows have exposures
    weight: np.ndarray
    groups: np.ndarray | None = None  # (n,) group codes; rows are independent between groups only

    def at(self, rows: np.ndarray) -> Truth:
        """A subset of the rows."""
        groups = None if self.groups is None else self.groups[rows]
        return self._replace(targets=self.targets[rows], weight=self.weight[rows], groups=groups)

    def judged(self, name: str, predictions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses and errors (n,) of a model's predictions: probabilities (n, C) of the classes, or numbers (n,)."""
        n = len(self.targets)
        if np.isnan(predictions).any():
            raise ModelError(f"{name} predicts NaN; leave it out, or mend it")
        if self.task == "classification":
            is_known = self.targets < len(self.classes)
            probability = predictions[np.arange(n), np.minimum(self.targets, len(self.classes) - 1)]
            losses = np.where(is_known, -np.log(np.maximum(probability, 0.5 / n)), math.nan)
            return losses, (predictions.argmax(axis=1) != self.targets).astype(np.float64)
        loss = loss_of("regression", self.loss)
        with np.errstate(over="ignore"):
            is_exact = np.abs(self.targets - predictions) <= ROUNDING * np.abs(self.targets).max(initial=0.0)
            predictions = np.where(is_exact, self.targets, predictions)
            if has_log_link(loss):  # the log link cannot predict a rate of 0
                mean = mean_interval(self.targets, self.weight).value
                predictions = np.maximum(predictions, LEAST_RATE * max(mean, LEAST_RATE))
            errors = np.minimum(np.abs(self.targets - predictions), MOST)
        outputs = np.asarray(loss.prediction_of(predictions), np.float64)[:, None]
        return measured(Objective("regression", loss), self.targets, outputs), errors


class Contender(NamedTuple):
    """A model in a comparison. Differences are its mean minus the first model's mean; the first model has none."""

    name: str
    loss: float
    error: float  # share of wrong classes, or absolute error
    loss_difference: Measure | None = None
    error_difference: Measure | None = None
    better: str = ""  # name of the better of the two models by the loss; empty if undecided
    seconds: float | None = None  # training time; None for a model trained before


@dataclass(frozen=True)
class PairedComparison:
    """The comparison of a model, the first contender, with others on the same rows."""

    target: str
    task: str
    loss: str
    contenders: list[Contender]
    rows: int
    how: str  # description of the training and test rows
    groups: int = 0
    unseen: int = 0  # rows with a class that no model knows; they count as errors and have no loss
    classes: list[Any] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # excluded peers and columns, with reasons

    @property
    def model(self) -> Contender:
        """The model that the others are compared with."""
        return self.contenders[0]

    @property
    def sentence(self) -> str:
        """The comparison as a sentence; a model is called better only if the interval excludes 0."""
        others = self.contenders[1:]
        verdicts = {
            f"by its {self.loss} better than": [other for other in others if other.better == self.model.name],
            "not clearly different from": [other for other in others if not other.better],
            f"by its {self.loss} worse than": [other for other in others if other.better == other.name],
        }
        mean = self._number(self.model)
        measure = "absolute error" if self.loss in MEANT else self.loss
        result = f"{mean} error" if self.task == "classification" else f"a mean {measure} of {mean}"
        clauses = [f"Predicts {goal_in_words(self.target, self.classes)} with {result}"]
        for verdict, models in verdicts.items():
            names = ", ".join(f"{other.name} ({self._number(other)})" for other in models)
            clauses += [f"{verdict} {names}"] if names else []
        return "; ".join(clauses) + "."

    def _number(self, contender: Contender) -> str:
        """The mean error in per cent, the mean absolute error, or the mean loss."""
        if self.task == "classification":
            return f"{100.0 * contender.error:.1f} %"
        number = contender.error if self.loss in MEANT else contender.loss
        return f"{number:,.0f}" if 9999.5 <= abs(number) < 1e6 else f"{number:,.4g}"

    def table(self) -> pa.Table:
        """The contenders as a table, with the ends of intervals in columns ``..._low`` and ``..._high``."""
        columns: dict[str, list[Any]] = {}
        for contender in self.contenders:
            for name, value in contender._asdict().items():
                parts = ("", "_low", "_high") if name.endswith("_difference") else ("",)
                values = (value or (None, None, None)) if len(parts) > 1 else (value,)
                for suffix, end in zip(parts, values, strict=True):
                    columns.setdefault(name + suffix, []).append(end)
        types = dict.fromkeys(("name", "better"), pa.string())
        return pa.table({name: pa.array(values, types.get(name, pa.float64())) for name, values in columns.items()})

    def __str__(self) -> str:
        return self.sentence


def compared(
    truth: Truth,
    predictions: Mapping[str, np.ndarray],
    target: str,
    how: str,
    seconds: Mapping[str, float] | None = None,
    left_out: dict[str, str] | None = None,
) -> PairedComparison:
    """Compare the first model with the others on the same rows, by the predictions of each.

    >>> truth = Truth("classification", None, ["no", "yes"], np.array([0, 1] * 50), np.ones(100))
    >>> sure, even = np.tile([[0.9, 0.1], [0.1, 0.9]], (50, 1)), np.full((100, 2), 0.5)
    >>> comparison = compared(truth, {"a": sure, "b": even}, "rich", "test rows")
    >>> comparison.table().select(["name", "error", "error_difference", "better"]).to_pylist()[1]
    {'name': 'b', 'error': 0.5, 'error_difference': 0.5, 'better': 'a'}
    >>> comparison.sentence
    'Predicts rich = yes with 0.0 % error; by its log-loss better than b (50.0 %).'
    """
    weight, is_class = truth.weight, truth.task == "classification"
    if not weight.sum() > 0.0:
        raise ModelError("all rows have a weight of 0, so that nothing is compared; give rows with a weight above 0")
    judged = {name: truth.judged(name, predicted) for name, predicted in predictions.items()}
    first, (first_losses, first_errors) = next(iter(judged.items()))
    contenders = list[Contender]()
    for name, (losses, errors) in judged.items():
        loss, error = (mean_interval(values, weight).value for values in (losses, errors))
        contender = Contender(name, loss, error, seconds=(seconds or {}).get(name))
        if contenders:
            further = weight, truth.groups, len(judged) - 1
            more_loss = mean_interval(losses - first_losses, *further)
            more_error = mean_interval(errors - first_errors, *further, float(is_class))
            better = {1: first, -1: name}.get(side(more_loss), "")
            contender = contender._replace(loss_difference=more_loss, error_difference=more_error, better=better)
        contenders.append(contender)
    mask = weight > 0.0
    return PairedComparison(
        target,
        truth.task,
        "log-loss" if is_class else "squared error" if truth.loss in (None, "square") else f"{truth.loss} loss",
        contenders,
        int(mask.sum()),
        how,
        groups=0 if truth.groups is None else len(np.unique(truth.groups[mask])),
        unseen=int((truth.targets[mask] >= len(truth.classes)).sum()) if is_class else 0,
        classes=truth.classes,
        left_out=left_out or {},
    )


def side(difference: Measure | None) -> int:
    """The sign of the values in an interval, -1 or 1; 0 if the interval contains 0 or is unknown."""
    if difference is None or difference.low is None or difference.high is None:
        return 0
    return 1 if difference.low > 0.0 else -1 if difference.high < 0.0 else 0


def goal_in_words(target: str, classes: Sequence[Any]) -> str:
    """The target in words, with the second class if there are two.

    >>> goal_in_words("income", ["<=50K", ">50K"]), goal_in_words("rich", [False, True])
    ('income >50K', 'rich')
    """
    label = classes[1] if len(classes) == 2 else True
    if label is True:
        return target
    return f"{target} {'' if str(label)[:1] in '<>=≤≥' else '= '}{label}"
