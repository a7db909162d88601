"""Evaluation of a trained model on a source with known targets, overall and by the values of a column.

Prediction intervals are measured by their coverage, their width and the interval score, which combines both (Gneiting,
Raftery: Strictly proper scoring rules, prediction, and estimation, JASA 2007, eq. 43). The score of an interval (l, u)
with coverage 1 - a for the target y is

    u - l + 2 / a (l - y) 1[y < l] + 2 / a (y - u) 1[y > u],

Its expectation is smallest for the quantiles at the levels a / 2 and 1 - a / 2.
"""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError, ModelError, nearest
from tunefree.core.numbers import MOST
from tunefree.losses import loss_of
from tunefree.losses.contract import has_log_link
from tunefree.losses.objectives import chosen
from tunefree.losses.rates import has_rates
from tunefree.model_files.trained import Trained
from tunefree.pool.quantiles import target_intervals
from tunefree.pool.targets import Labels
from tunefree.stream.arrays import to_numpy
from tunefree.stream.batch import BadRows, Batch, no_rows
from tunefree.stream.columns import blank_to_null, decoded, family
from tunefree.stream.formats import TABLE
from tunefree.stream.source import Source
from tunefree.training.targets import target_of, with_rates
from tunefree.workflows.metrics import MOST_SCORES, Measure, Scored, measures
from tunefree.workflows.output_columns import OutputColumns
from tunefree.workflows.prediction import predict

COVERAGE, WIDTH, SCORE = "interval_coverage", "interval_width", "interval_score"  # names of metrics
KNOWN = "known rows are predicted better than new ones"


class Slice(NamedTuple):
    """Rows with the same value of a column."""

    value: str | None  # None for missing values
    rows: int
    measures: dict[str, Measure]


class Evaluation(NamedTuple):
    """The metrics of a model on data that it has not learned."""

    unseen: int  # rows with a label that training never saw; they count as errors and have no loss
    measures: dict[str, Measure]  # metrics with confidence intervals, see :func:`tunefree.workflows.metrics.measures`
    slices: list[Slice]  # one for each value of a column
    scored: Scored  # the evaluated rows with their predictions

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.scored.weight)


def _class_columns(model: Any, y: Labels, predictions: np.ndarray, losses: np.ndarray) -> dict[str, np.ndarray]:
    """Per-row values for classification metrics, keyed by a field of Scored or the name of a metric."""
    n, codes = len(model.classes), np.minimum(model.codes(y)[0], len(model.classes))
    probabilities, picked = model.probabilities(predictions), chosen(predictions)
    squares = (probabilities**2).sum(axis=1) - 2.0 * probabilities[np.arange(len(codes)), np.minimum(codes, n - 1)]
    means = {} if model.loss_is_log_loss else {"loss": losses}
    means |= {"log_loss": model.log_losses(y, predictions), "error": (codes != picked).astype(np.float64)}
    means["brier"] = np.where(codes < n, (squares + 1.0) / (2.0 if n == 2 else 1.0), np.nan)
    scores = probabilities[:, 1:] if n == 2 else probabilities
    columns = {"codes": codes.astype(np.int32), "chosen": picked.astype(np.int32), "scores": scores}
    return columns | {"probability": probabilities.max(axis=1)} | means


def _number_columns(
    trained: Trained, batch: Batch, predictions: np.ndarray, losses: np.ndarray, interval: float | None
) -> dict[str, np.ndarray]:
    """Per-row values for regression metrics, with the same keys; ``interval``: the coverage of intervals."""
    model, y, loss = trained.model, batch.target, loss_of("regression", trained.plan.loss)
    columns = {"targets": y, "predictions": model.responses(predictions)}
    columns |= {"loss": losses, "mean_absolute_error": model.errors(y, predictions)}
    if interval is not None:
        low, high = target_intervals(model, batch.rows, predictions, np.array([interval]), batch.exposure)[:, 0].T
        if batch.exposure is not None:  # targets are rates
            low, high = low / batch.exposure, high / batch.exposure
        with np.errstate(over="ignore", invalid="ignore"):
            missed = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
            width = np.minimum(high - low, MOST)
            score = np.minimum(width + 2.0 / (1.0 - interval) * missed, MOST)
        columns |= {COVERAGE: ((low <= y) & (y <= high)).astype(np.float64), WIDTH: width, SCORE: score}
    if getattr(loss, "tau", None) is not None:
        columns["coverage"] = (y <= predictions[:, 0]).astype(np.float64)
    return columns


def _scored(trained: Trained, batches: list[dict[str, np.ndarray]], groups: np.ndarray | None) -> Scored:
    """Concatenate the batches; a class has probability 0 in rows before its first occurrence."""
    model, loss = trained.model, loss_of(trained.model.task, trained.plan.loss)
    n = batches[-1]["scores"].shape[1] if "scores" in batches[-1] else 0
    for batch in [batch for batch in batches if n and batch["scores"].shape[1] < n]:
        scores = batch["scores"]  # a single score is the probability of class 1
        scores = np.column_stack([1.0 - scores, scores]) if scores.shape[1] == 1 else scores
        batch["scores"] = np.pad(scores, ((0, 0), (0, n - scores.shape[1])))
    means = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    arrays = {field.name: means.pop(field.name) for field in fields(Scored) if field.name in means}
    power = loss.power if has_log_link(loss) else None
    return Scored(means=means, **arrays, groups=groups, n_classes=len(model.classes), power=power)


def evaluate(
    trained: Trained,
    source: Source,
    bad: BadRows,
    by: str | None = None,
    progressive: bool = False,
    interval: float | None = None,
    group: str | None = None,
) -> Evaluation:
    """Evaluate a model on a source with known targets: losses, errors and calibration.

    Memory grows with the number of rows, because their targets, predictions and losses are kept.

    ``by``: a column of a table; the model is also evaluated separately for each of its values.
    ``progressive``: whether the model learns each row after predicting it, which changes the model.
    ``interval``: the coverage of prediction intervals to evaluate, in regression.
    ``group``: a column of a table with the group of each row; confidence intervals then assume independent groups.
    Raises a DataError if there are no rows of positive weight, a row cannot be used or a column does not exist, and a
    ModelError if the model has no intervals, or learns as well, so that intervals would depend on the evaluated rows.
    """
    model, unseen, is_class = trained.model, 0, trained.model.task == "classification"
    if interval is not None:
        if progressive:
            raise ModelError("`interval` is for a model that stays as it is; leave `progressive` out")
        OutputColumns(interval=(interval,)).check(model)
    columns: dict[str, list[Any]] = {name: [] for name in (by, group) if name is not None}
    batches, n_scores = list[dict[str, np.ndarray]](), 0
    bad.target, bad.loss = trained.plan.target, trained.plan.loss  # targets outside the domain of the loss are bad
    note_learned(trained, source, bad)
    for batch, predictions in predict(trained, source, bad, True, [*columns], progressive):
        exposure = batch.weight if batch.exposure is None else batch.weight * batch.exposure
        batch = with_rates(trained.plan, batch._replace(target=target_of(model.task, batch)))
        losses = model.losses(batch.target, predictions)
        is_unseen = np.isnan(losses)
        unseen += int(is_unseen.sum())
        if is_unseen.any() and not progressive and is_class:
            _note_unseen(model.classes, batch, is_unseen, bad, trained.plan.target)
        for index, parts in enumerate(columns.values()):
            parts.append(batch.columns.column(index))
        if is_class:
            values = _class_columns(model, batch.target, predictions, losses)
        else:
            values = _number_columns(trained, batch, predictions, losses, interval)
            values |= {"exposure": exposure} if has_rates(trained.plan.loss) else {}
        batches.append({"weight": batch.weight, **values})
        n_scores += values["scores"].size if is_class else 0
        for stored in batches if n_scores > MOST_SCORES else ():
            stored.pop("scores", None)
    if not sum(len(stored["weight"]) for stored in batches):
        raise no_rows(source.name, bad.tally)
    scored = _scored(trained, batches, None if group is None else group_numbers(group, columns[group], source))
    _check_measurable(scored, trained, source, None if progressive or unseen < len(scored.weight) else batch.target)
    slices = []
    if by is not None:
        values_of_rows = pa.chunked_array([decoded(part) for part in columns[by]]).combine_chunks()
        slices = [Slice(name, len(rows), measures(scored.part(rows))) for name, rows in slices_of(by, values_of_rows)]
    return Evaluation(unseen, measures(scored), slices, scored)


def _check_measurable(scored: Scored, trained: Trained, source: Source, unseen: Labels | None) -> None:
    """Raise a DataError if all rows have a weight of 0, or a label that the model does not know, as ``unseen`` ones."""
    if not scored.weight.any():
        problem, remedy = "all rows have a weight of 0, so that nothing is measured", "give rows with a weight above 0"
        raise DataError(problem, source.name, column=trained.plan.sample_weight, remedy=remedy)
    if unseen is not None:
        problem = "no row has a label that the model knows"
        remedy = f"check the target; {nearest(unseen.values[0], trained.model.classes, 'classes')}"
        raise DataError(problem, source.name, column=trained.plan.target, remedy=remedy)


def note_learned(trained: Trained, source: Source, bad: BadRows) -> None:
    """Note each file with the same name as a training file of the model."""
    for file in learned_files(trained, source):
        problem = f"the model has learned a file named {os.path.basename(file)}; {KNOWN}"
        bad.note(problem, file, 0, rows=0)


def learned_files(trained: Trained, source: Source) -> list[str]:
    """Files of a source with the same name as a training file of the model."""
    return [file for file in source.files if os.path.basename(file) in trained.progress.data]


def _note_unseen(classes: list[Any], batch: Batch, is_unseen: np.ndarray, bad: BadRows, target: str | None) -> None:
    """Count the rows of each label that the model does not know."""
    y = batch.target
    for code in np.unique(y.codes[is_unseen]).tolist():
        rows, label = np.flatnonzero(y.codes == code), y.values[code]
        problem = (
            f"{label!r} is no class of the model, so these rows count as errors; {nearest(label, classes, 'classes')}"
        )
        bad.note(problem, batch.file, int(batch.numbers[rows[0]]), target, len(rows))


def group_in(trained: Trained, source: Source) -> str | None:
    """The group column of the model, if the source has it; rows of a group are not independent."""
    column = trained.plan.groups
    if column is None or source.kind != TABLE or not source.rewindable:
        return None
    return column if column in next(source.chunks()).data.schema.names else None


def group_numbers(column: str, parts: list[Any], source: Source) -> np.ndarray:
    """Integer codes (n,) of the groups of rows; a DataError if a row has no group."""
    values = pa.chunked_array([decoded(part) for part in parts]).combine_chunks()
    if values.null_count:
        rows = "1 row has" if values.null_count == 1 else f"{values.null_count:,} rows have"
        problem, remedy = f"{rows} no group", "give each one, or leave these rows out"
        raise DataError(problem, source.name, column=column, remedy=remedy)
    codes = values.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return np.asarray(codes, np.int64)


MOST_SLICES = 20  # the rarer values share one slice
RANGES = 5  # slices with equal numbers of rows, for a numeric column with more values
OTHERS = "(other)"


def slices_of(column: str, values: Any) -> list[tuple[str | None, np.ndarray]]:
    """Split rows by the values of a column, the largest slice first, or by ascending ranges of a numeric column.

    ``values``: strings that are all numeric count as numbers.
    Returns: the name of each slice, None for missing values, and its row numbers.

    >>> [(name, rows.tolist()) for name, rows in slices_of("job", pa.array(["cook", "clerk", None, "cook"]))]
    [('cook', [0, 3]), ('clerk', [1]), (None, [2])]
    """
    if pa.types.is_nested(values.type) or family(values.type) == "nested":
        raise DataError(f"rows cannot be divided by {values.type}", column=column, remedy="name a column of values")
    plain = blank_to_null(decoded(values))
    numbers = _numbers(plain)
    if numbers is not None and len(np.unique(numbers)) > MOST_SLICES:
        is_missing = np.isnan(numbers)
        edges = np.unique(np.quantile(numbers[~is_missing], np.linspace(0.0, 1.0, RANGES + 1)))
        codes = np.clip(np.searchsorted(edges, numbers, "right") - 1, 0, max(len(edges) - 2, 0))
        codes = np.where(is_missing, -1, codes)
        ends = {k: (numbers[codes == k].min(), numbers[codes == k].max()) for k in np.unique(codes[~is_missing])}
        names: dict[int, str | None] = {k: f"{low:g} to {high:g}" for k, (low, high) in ends.items()}
    else:
        coded = plain.cast(pa.string()).dictionary_encode()
        codes, labels = to_numpy(coded.indices, -1), coded.dictionary.to_pylist()
        order = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(labels)), kind="stable").tolist()
        names = {k: labels[k] for k in order[:MOST_SLICES]}
        if len(order) > MOST_SLICES:
            codes = np.where(np.isin(codes, order[MOST_SLICES:]), len(labels), codes)
            names[len(labels)] = OTHERS
    if (codes < 0).any():
        names[-1] = None
    return [(name, np.flatnonzero(codes == k)) for k, name in names.items()]


def _numbers(values: Any) -> np.ndarray | None:
    """The values as floats, NaN for missing values; None if a value is not a number."""
    if family(values.type) not in ("number", "string"):
        return None
    try:
        return to_numpy(values.cast(pa.float64(), safe=False), np.nan)
    except pa.ArrowInvalid:
        return None
