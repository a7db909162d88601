"""How well a trained model predicts a source with known targets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError, ModelError, nearest
from tunefree.losses import loss_of
from tunefree.losses.contract import has_log_link
from tunefree.losses.objectives import chosen
from tunefree.losses.rates import LOG_LINK
from tunefree.model.targets import Labels, RunningMetrics, ScoredModel
from tunefree.model_files.trained import Trained
from tunefree.stream.batch import BadRows, Batch
from tunefree.stream.columns import decoded
from tunefree.stream.source import Source
from tunefree.training.reading import no_rows
from tunefree.training.targets import target_of, with_rates
from tunefree.training.training import learn_batches
from tunefree.workflows.count_metrics import Decile, double_lift, lift
from tunefree.workflows.interval_metrics import Covered, IntervalScores
from tunefree.workflows.metrics import MOST_SCORES, Measure, Metrics, Scored, measures
from tunefree.workflows.prediction import predict
from tunefree.workflows.reliability import ClassReliability, calibration_error, class_reliability
from tunefree.workflows.slices import slices_of


class Slice(NamedTuple):
    """Rows that have a value of a column in common."""

    value: str | None  # None where it is missing
    rows: int
    measures: dict[str, Measure]


class Evaluation(NamedTuple):
    """How a model does on data it has not seen."""

    metrics: RunningMetrics
    unseen: int  # rows whose label was never seen in training: they count as errors and have no loss
    measures: dict[str, Measure]  # metrics with confidence intervals, see metrics.measures
    confusion: np.ndarray | None  # (classes + 1, classes): weights of rows by class and prediction, the last unseen
    slices: list[Slice]  # by the values of a column
    classes: list[ClassReliability]  # the rarest first
    scored: Scored  # the rows
    covered: list[Covered]  # by intervals of several coverages; none unless asked for

    @property
    def calibration_error(self) -> float:
        """See :func:`tunefree.workflows.reliability.calibration_error`; 0 for numbers."""
        probability, is_right = self.scored.probability, self.scored.is_right
        if probability is None or is_right is None:
            return 0.0
        return calibration_error(probability, is_right, self.scored.weight)

    @property
    def lift(self) -> list[Decile]:
        """What was predicted and what happened, by decile of the predicted rate; none but of counts."""
        exposure, targets, predictions = self.scored.exposure, self.scored.targets, self.scored.predictions
        if exposure is None or targets is None or predictions is None:
            return []
        return lift(exposure, targets, predictions)


class _Scores:
    """What rows add to metrics, collected batch by batch."""

    def __init__(self, model: ScoredModel, loss: Any) -> None:
        self.model, self.tau = model, getattr(loss, "tau", None)
        self.power = loss.power if has_log_link(loss) else None
        self.batches: list[dict[str, np.ndarray]] = []
        self.n_scores, self.keeps_scores = 0, True

    def add_classes(
        self, y: Labels, weight: np.ndarray, predictions: np.ndarray, probabilities: np.ndarray, losses: Any
    ) -> None:
        """Rows of classes; ``losses`` has their losses by name."""
        n, codes = len(self.model.classes), np.minimum(self.model.codes(y)[0], len(self.model.classes))
        squares = (probabilities**2).sum(axis=1) - 2.0 * probabilities[np.arange(len(codes)), np.minimum(codes, n - 1)]
        brier = np.where(codes < n, (squares + 1.0) / (2.0 if n == 2 else 1.0), np.nan)
        picked = chosen(predictions)
        scores = probabilities[:, 1:] if n == 2 else probabilities
        self.n_scores += scores.size
        if self.n_scores > MOST_SCORES and self.keeps_scores:
            self.keeps_scores = False
            for batch in self.batches:
                del batch["scores"]
        kept = {"scores": scores} if self.keeps_scores else {}
        right = {"probability": probabilities.max(axis=1), "is_right": self.model.errors(y, probabilities) == 0.0}
        counted = {"codes": codes.astype(np.int32), "chosen": picked.astype(np.int32)}
        means = losses | {"error": (codes != picked).astype(np.float64), "brier": brier}
        self.batches.append({"weight": weight, **counted, **right, **kept, **means})

    def add_numbers(
        self,
        y: np.ndarray,
        weight: np.ndarray,
        predictions: np.ndarray,
        losses: np.ndarray,
        exposure: np.ndarray,
        further: dict[str, np.ndarray],
    ) -> None:
        """Rows of numbers; those of counts have exposures, which the sample weights have multiplied.

        ``further`` has what rows add to further metrics that are means.
        """
        means = {"loss": losses, "mean_absolute_error": self.model.errors(y, predictions), **further}
        if self.tau is not None:
            means["coverage"] = (y <= predictions[:, 0]).astype(np.float64)
        kept = {"exposure": exposure} if self.power is not None else {}
        self.batches.append(
            {"weight": weight, "targets": y, "predictions": self.model.responses(predictions), **kept, **means}
        )

    def _widen_scores(self) -> None:
        """Give rows that came before a class was known the probability 0 of it; one score is that of class 1."""
        n = self.batches[-1]["scores"].shape[1]
        for batch in self.batches:
            scores = batch["scores"]
            if scores.shape[1] < n:
                scores = np.column_stack([1.0 - scores, scores]) if scores.shape[1] == 1 else scores
                batch["scores"] = np.pad(scores, ((0, 0), (0, n - scores.shape[1])))

    def scored(self) -> Scored:
        """All rows."""
        if self.keeps_scores and "scores" in self.batches[0]:
            self._widen_scores()
        joined = {name: np.concatenate([batch[name] for batch in self.batches]) for name in self.batches[0]}
        arrays = {name: joined.pop(name) for name in Scored._fields if name in joined}
        return Scored(means=joined, **arrays, n_classes=len(self.model.classes), power=self.power)


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

    Parameters
    ----------
    trained : Trained
    source : Source
    bad : BadRows
        What happens to rows that cannot be used.
    by : str, optional
        A column of a table, for each of whose values the model is evaluated as well.
    progressive : bool, default False
        Whether the model learns each row after it has predicted it; it must be a Trained, which is changed.
    interval : float, optional
        The coverage of intervals of numbers that are measured, too.
    group : str, optional
        A column of a table: rows of one value belong together, and intervals are for independent groups.

    Raises
    ------
    DataError
        If there are no rows, one cannot be used, or there is no such column.
    ModelError
        If the model has no intervals, or it is to learn as well: these would know the rows.

    Examples
    --------
    >>> from tunefree import Plan, open_source, train
    >>> source = open_source({"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100})
    >>> evaluation = evaluate(train(source, Plan(target="rich")).trained_, source, BadRows())
    >>> evaluation.metrics.mean_error(), evaluation.measures["auc"].value, evaluation.confusion.tolist()
    (0.0, 1.0, [[100.0, 0.0], [0.0, 100.0], [0.0, 0.0]])
    """
    model, unseen = trained.model, 0
    kept = list(dict.fromkeys(name for name in (by, group) if name is not None))
    columns: dict[str, list[Any]] = {name: [] for name in kept}
    metrics, scores = RunningMetrics(), _Scores(model, loss_of(model.task, trained.plan.loss))
    bad.target, bad.loss = trained.plan.target, trained.plan.loss  # rows with targets that it cannot have are bad
    intervals = _interval_scores(model, interval, progressive)
    for batch, predictions in predict(trained, source, bad, True, kept, learn_batches if progressive else None):
        exposure = batch.weight if batch.exposure is None else batch.weight * batch.exposure
        batch = with_rates(trained.plan, batch._replace(target=target_of(model.task, batch)))
        y, weight = batch.target, batch.weight
        row_losses, errors = model.losses(y, predictions), model.errors(y, predictions)
        is_unseen = np.isnan(row_losses)
        unseen += int(is_unseen.sum())
        if is_unseen.any() and not progressive and model.task == "classification":
            _note_unseen(model.classes, y, batch, is_unseen, bad, trained.plan.target)
        metrics.add(weight, np.where(is_unseen, 0.0, row_losses), errors)
        for place, name in enumerate(kept):
            columns[name].append(batch.columns.column(place))
        if model.task == "classification":
            probabilities = model.probabilities(predictions)
            losses = {} if model.loss_is_log_loss else {"loss": row_losses}
            losses["log_loss"] = model.log_losses(y, predictions)
            scores.add_classes(y, weight, predictions, probabilities, losses)
        else:
            further = {} if intervals is None else intervals.add(batch, predictions, y, weight)
            scores.add_numbers(y, weight, predictions, row_losses, exposure, further)
    if metrics.rows == 0:
        raise no_rows(source)
    if unseen == metrics.rows and not progressive:
        raise _no_class(trained, y, source)
    groups = None if group is None else _groups(group, columns[group], source)
    scored = scores.scored()._replace(groups=groups)
    confusion = None if scored.codes is None else Metrics(scored).confusion(scored.weight)
    slices = [] if by is None else _slices(scored, by, columns[by])
    classes = class_reliability(scored, model.classes)
    of_rows = measures(scored), confusion, slices, classes, scored
    return Evaluation(metrics, unseen, *of_rows, [] if intervals is None else intervals.curve())


def _interval_scores(model: Any, interval: float | None, progressive: bool) -> IntervalScores | None:
    """What measures intervals, if they are asked for."""
    if interval is None:
        return None
    if progressive:
        raise ModelError("`interval` is for a model that stays as it is; leave `progressive` out")
    return IntervalScores(model, interval)


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


def compared_lift(tested: Evaluation, other: Evaluation) -> list[list[float]]:
    """What two models of counts predict of the same rows, and what happened, by decile of the ratio of the two.

    Raises a ModelError if a model is of another loss, or the rows are not the same.
    """
    first, second = tested.scored, other.scored
    if first.exposure is None or second.exposure is None:
        raise ModelError(f"two models are compared by rates if both are of a loss with a logarithmic link: {LOG_LINK}")
    assert first.targets is not None
    assert second.targets is not None
    if not (np.array_equal(first.exposure, second.exposure) and np.array_equal(first.targets, second.targets)):
        raise ModelError("the models have other targets, exposures or weights; compare models of the same columns")
    assert first.predictions is not None
    assert second.predictions is not None
    return double_lift(first.exposure, first.targets, first.predictions, second.predictions)


def _slices(scored: Scored, by: str, columns: list[Any]) -> list[Slice]:
    """The metrics of each slice of the rows by a column."""
    values = pa.chunked_array([decoded(column) for column in columns]).combine_chunks()
    return [Slice(value, len(rows), measures(scored.part(rows))) for value, rows in slices_of(by, values)]


def _groups(column: str, parts: list[Any], source: Source) -> np.ndarray:
    """The numbers (n,) of the groups of rows."""
    values = pa.chunked_array([decoded(part) for part in parts]).combine_chunks()
    if values.null_count:
        problem, remedy = f"{values.null_count:,} rows have no group", "give each one, or leave these rows out"
        raise DataError(problem, source.name, column=column, remedy=remedy)
    codes = values.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return np.asarray(codes, np.int64)
