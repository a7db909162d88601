"""Evaluation of a trained model on a source with known targets, in all and by the values of a column."""

from __future__ import annotations

import os
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError, ModelError, nearest
from tunefree.losses import loss_of
from tunefree.losses.contract import has_log_link
from tunefree.losses.objectives import chosen
from tunefree.model_files.trained import Trained
from tunefree.pool.targets import Labels, ScoredModel
from tunefree.stream.arrays import to_numpy
from tunefree.stream.batch import BadRows, Batch
from tunefree.stream.columns import blank_to_null, decoded, family
from tunefree.stream.formats import TABLE
from tunefree.stream.source import Source
from tunefree.training.reading import no_rows
from tunefree.training.targets import target_of, with_rates
from tunefree.training.training import learn_batches
from tunefree.workflows.calibration import ClassReliability, class_reliability, interval_metrics
from tunefree.workflows.metrics import MOST_SCORES, Measure, Scored, measures
from tunefree.workflows.output_columns import OutputColumns
from tunefree.workflows.prediction import predict

KNOWN = "known rows are predicted better than new ones"


class Slice(NamedTuple):
    """Rows that have a value of a column in common."""

    value: str | None  # None where it is missing
    rows: int
    measures: dict[str, Measure]


class Evaluation(NamedTuple):
    """The metrics of a model on data that it has not learned."""

    unseen: int  # rows whose label was never seen in training: they count as errors and have no loss
    measures: dict[str, Measure]  # metrics with confidence intervals, see metrics.measures
    confusion: np.ndarray | None  # (classes + 1, classes): weights of rows by class and prediction, the last unseen
    slices: list[Slice]  # by the values of a column
    classes: list[ClassReliability]  # the rarest first
    scored: Scored  # the rows

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.scored.weight)


def _class_columns(model: Any, y: Labels, predictions: np.ndarray, losses: np.ndarray) -> dict[str, np.ndarray]:
    """Values of rows from which metrics of classes are computed, by the names of fields of Scored and of means."""
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
    model: ScoredModel, y: np.ndarray, predictions: np.ndarray, losses: np.ndarray, loss: Any, further: dict[str, Any]
) -> dict[str, np.ndarray]:
    """Values of rows from which metrics of numbers are computed; ``further`` metrics are means."""
    means = {"loss": losses, "mean_absolute_error": model.errors(y, predictions), **further}
    if getattr(loss, "tau", None) is not None:
        means["coverage"] = (y <= predictions[:, 0]).astype(np.float64)
    return {"targets": y, "predictions": model.responses(predictions), **means}


def _limit_scores(batches: list[dict[str, np.ndarray]]) -> None:
    """Let all batches lose their probabilities once these are too many."""
    sizes = [batch["scores"].size for batch in batches if "scores" in batch]
    if sizes and (len(sizes) < len(batches) or sum(sizes) > MOST_SCORES):
        for batch in batches:
            batch.pop("scores", None)


def _scored(model: ScoredModel, batches: list[dict[str, np.ndarray]], loss: Any, groups: np.ndarray | None) -> Scored:
    """All rows; those that came before a class was known have the probability 0 of it."""
    n = batches[-1]["scores"].shape[1] if "scores" in batches[-1] else 0
    for batch in [batch for batch in batches if n and batch["scores"].shape[1] < n]:
        scores = batch["scores"]  # one score is that of class 1
        scores = np.column_stack([1.0 - scores, scores]) if scores.shape[1] == 1 else scores
        batch["scores"] = np.pad(scores, ((0, 0), (0, n - scores.shape[1])))
    means = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
    arrays = {of.name: means.pop(of.name) for of in fields(Scored) if of.name in means}
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
    """Losses, errors and calibration of a model on a source with known targets.

    The memory it takes grows with the rows: they are kept as their targets, predictions and losses.

    ``by``: a column of a table, for each of whose values the model is evaluated as well.
    ``progressive``: whether the model learns each row after it has predicted it; it is changed then.
    ``interval``: the coverage of intervals of numbers that are measured, too.
    ``group``: a column of a table: rows of one value belong together, and intervals are for independent groups.
    Raises a DataError if there are no rows, one cannot be used, or there is no such column, and a ModelError if the
    model has no intervals, or it is to learn as well: these would know the rows.

    >>> from tunefree import Plan, open_source, train
    >>> source = open_source({"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100})
    >>> evaluation = evaluate(train(source, Plan(target="rich")).trained_, source, BadRows())
    >>> evaluation.rows, evaluation.measures["auc"].value, evaluation.confusion.tolist()
    (200, 1.0, [[100.0, 0.0], [0.0, 100.0], [0.0, 0.0]])
    """
    model, unseen, loss = trained.model, 0, loss_of(trained.model.task, trained.plan.loss)
    kept = list(dict.fromkeys(name for name in (by, group) if name is not None))
    columns: dict[str, list[Any]] = {name: [] for name in kept}
    batches = list[dict[str, np.ndarray]]()
    bad.target, bad.loss = trained.plan.target, trained.plan.loss  # rows with targets that it cannot have are bad
    if interval is not None and progressive:
        raise ModelError("`interval` is for a model that stays as it is; leave `progressive` out")
    if interval is not None:
        OutputColumns(interval=(interval,)).check(model)
    note_learned(trained, source, bad)
    for batch, predictions in predict(trained, source, bad, True, kept, learn_batches if progressive else None):
        exposure = batch.weight if batch.exposure is None else batch.weight * batch.exposure
        batch = with_rates(trained.plan, batch._replace(target=target_of(model.task, batch)))
        y, weight = batch.target, batch.weight
        losses = model.losses(y, predictions)
        is_unseen = np.isnan(losses)
        unseen += int(is_unseen.sum())
        if is_unseen.any() and not progressive and model.task == "classification":
            _note_unseen(model.classes, y, batch, is_unseen, bad, trained.plan.target)
        for place, name in enumerate(kept):
            columns[name].append(batch.columns.column(place))
        if model.task == "classification":
            adds = _class_columns(model, y, predictions, losses)
        else:
            further = {} if interval is None else interval_metrics(model, interval, batch, predictions, y)
            adds = _number_columns(model, y, predictions, losses, loss, further)
            adds |= {"exposure": exposure} if has_log_link(loss) else {}
        batches.append({"weight": weight, **adds})
        _limit_scores(batches)
    rows = sum(len(batch["weight"]) for batch in batches)
    if not rows:
        raise no_rows(source)
    if unseen == rows and not progressive:
        raise _no_class(trained, y, source)
    groups = None if group is None else group_numbers(group, columns[group], source)
    scored = _scored(model, batches, loss, groups)
    confusion = None if scored.codes is None else scored.confusion(scored.weight)
    slices = [] if by is None else _slices(scored, by, columns[by])
    classes = class_reliability(scored, model.classes)
    return Evaluation(unseen, measures(scored), confusion, slices, classes, scored)


def note_learned(trained: Trained, source: Source, bad: BadRows) -> None:
    """Tell of files that have the name of one that the model has learned."""
    for file in learned_files(trained, source):
        problem = f"the model has learned a file named {os.path.basename(file)}; {KNOWN}"
        bad.note(problem, file, 0, rows=0)


def learned_files(trained: Trained, source: Source) -> list[str]:
    """Files of a source that have the name of one that the model has learned."""
    return [file for file in source.files if os.path.basename(file) in trained.progress.data]


def _no_class(trained: Trained, y: Labels, source: Source) -> DataError:
    """The error where the model knows the label of no row."""
    remedy = f"check the target; {nearest(y.values[0], trained.model.classes, 'classes')}"
    return DataError("no row has a label that the model knows", source.name, column=trained.plan.target, remedy=remedy)


def _note_unseen(
    classes: list[Any], y: Labels, batch: Batch, is_unseen: np.ndarray, bad: BadRows, target: str | None
) -> None:
    """Count the rows of each label that the model does not know."""
    for code in np.unique(y.codes[is_unseen]).tolist():
        rows, label = np.flatnonzero(y.codes == code), y.values[code]
        problem = (
            f"{label!r} is no class of the model, so these rows count as errors; {nearest(label, classes, 'classes')}"
        )
        bad.note(problem, batch.file, int(batch.numbers[rows[0]]), target, len(rows))


def _slices(scored: Scored, by: str, columns: list[Any]) -> list[Slice]:
    """The metrics of each slice of the rows by a column."""
    values = pa.chunked_array([decoded(column) for column in columns]).combine_chunks()
    return [Slice(value, len(rows), measures(scored.part(rows))) for value, rows in slices_of(by, values)]


def group_in(trained: Trained, source: Source) -> str | None:
    """The column of the groups that the model learned, where the data has it; their rows are not independent."""
    column = trained.plan.groups
    if column is None or source.kind != TABLE or not source.rewindable:
        return None
    return column if column in next(source.chunks()).data.schema.names else None


def group_numbers(column: str, parts: list[Any], source: Source) -> np.ndarray:
    """The numbers (n,) of the groups of rows."""
    values = pa.chunked_array([decoded(part) for part in parts]).combine_chunks()
    if values.null_count:
        problem, remedy = f"{values.null_count:,} rows have no group", "give each one, or leave these rows out"
        raise DataError(problem, source.name, column=column, remedy=remedy)
    codes = values.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return np.asarray(codes, np.int64)


MOST_SLICES = 20  # the rarer values are one slice
RANGES = 5  # of equally many rows, of a number with more values
OTHERS = "(other)"


def slices_of(column: str, values: Any) -> list[tuple[str | None, np.ndarray]]:
    """Slices of rows by the values of a column, the largest first, or by ranges of its numbers, in their order.

    ``values``: texts that are all numbers count as numbers.
    Returns: the name of each slice, None for missing values, and its rows.

    >>> [(name, rows.tolist()) for name, rows in slices_of("job", pa.array(["cook", "clerk", None, "cook"]))]
    [('cook', [0, 3]), ('clerk', [1]), (None, [2])]
    """
    if pa.types.is_nested(values.type) or family(values.type) == "nested":
        raise DataError(f"rows cannot be divided by {values.type}", column=column, remedy="name a column of values")
    plain = blank_to_null(decoded(values))
    numbers = _numbers(plain)
    if numbers is not None and len(np.unique(numbers)) > MOST_SLICES:
        return _ranges(numbers)
    coded = plain.cast(pa.string()).dictionary_encode()
    codes, names = to_numpy(coded.indices, -1), coded.dictionary.to_pylist()
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    slices = [(names[k], np.flatnonzero(codes == k)) for k in order[:MOST_SLICES].tolist()]
    if len(order) > MOST_SLICES:
        slices.append((OTHERS, np.flatnonzero(np.isin(codes, order[MOST_SLICES:]))))
    return slices + _missing(codes < 0)


def _numbers(values: Any) -> np.ndarray | None:
    """The values as numbers, NaN where they are missing; None if one is no number."""
    if family(values.type) not in ("number", "string"):
        return None
    try:
        return to_numpy(values.cast(pa.float64(), safe=False), np.nan)
    except pa.ArrowInvalid:
        return None


def _ranges(numbers: np.ndarray) -> list[tuple[str | None, np.ndarray]]:
    is_present = ~np.isnan(numbers)
    edges = np.unique(np.quantile(numbers[is_present], np.linspace(0.0, 1.0, RANGES + 1)))
    places = np.clip(np.searchsorted(edges, numbers, "right") - 1, 0, max(len(edges) - 2, 0))
    slices: list[tuple[str | None, np.ndarray]] = []
    for k in range(max(len(edges) - 1, 1)):
        rows = np.flatnonzero(is_present & (places == k))
        if len(rows):
            slices.append((f"{numbers[rows].min():g} to {numbers[rows].max():g}", rows))
    return slices + _missing(~is_present)


def _missing(gone: np.ndarray) -> list[tuple[str | None, np.ndarray]]:
    return [(None, np.flatnonzero(gone))] if gone.any() else []
