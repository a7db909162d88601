"""Training and evaluation of models on the same rows of tables: by cross-validation, or on test rows.

Tables are read into memory. All models of a fold learn the same rows: a model as by `tunefree train`, in a random order
unless rows belong to groups, and peers as described in :mod:`tunefree.workflows.peers`.
"""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from tunefree.core import threads
from tunefree.core.errors import DataError, ModelError
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.stream.batch import BadRows, followed, no_rows
from tunefree.stream.columns import decoded
from tunefree.stream.formats import TABLE
from tunefree.stream.source import Source
from tunefree.training.reading import blank_encoder, in_its_notation, one_class, problem_of, without_features
from tunefree.training.targets import rows_with_usable_targets, target_of, with_rates
from tunefree.training.training import train
from tunefree.workflows.evaluation import group_numbers
from tunefree.workflows.paired import PairedComparison, Truth, compared
from tunefree.workflows.peers import FOLDS, Learn, by_class, peers
from tunefree.workflows.prediction import predict

OF_FOLDS = f"by {FOLDS}-fold cross-validation"
OF_TIME = f"in {FOLDS} parts in their order, each predicted by models of the rows before it"
OF_TESTS = "on rows that no model has learned"
OF_MODELS = "on the same rows"


class Data(NamedTuple):
    """The usable rows of a source, in memory."""

    source: Source
    table: Any  # the columns as read
    encoder: Any
    plan: Plan
    task: str
    target: Any  # Labels, or numbers (n,), which are rates if rows have exposures
    weight: np.ndarray  # (n,) weights of the rows

    def rows(self, rows: np.ndarray, learning: bool) -> Source:
        """A source of the given rows; for learning, columns have the kinds inferred from all rows of the source."""
        known = copy.deepcopy(self.encoder) if learning else None
        return replace(self.source, files=(), format=None, delimiter=None, table=self.table.take(rows), known=known)

    def groups(self, column: str | None) -> np.ndarray | None:
        """Group codes (n,) of the rows from a column; None without a column."""
        if column is None:
            return None
        if column not in self.table.column_names:
            raise DataError(f"there is no column {column!r}", self.source.name, remedy="name another by `groups`")
        return group_numbers(column, self.table.column(column).chunks, self.source)


def read(source: Source, plan: Plan, bad: BadRows, known: Data | Trained | None = None) -> Data:
    """Read a table into memory, with the column kinds of a model or other rows if they are ``known``."""
    if source.kind != TABLE:
        remedy = "give a table"
        raise DataError(f"{source.kind} text has no columns, by which models are compared", source.name, remedy=remedy)
    if known is None and plan.target is None:
        raise DataError("no target is named", source.name, remedy="name the column to predict with `target`")
    bad.target, bad.loss = plan.target, plan.loss
    if known is None:
        encoder, chunks = blank_encoder(source, plan, bad)
    else:
        encoder, chunks = in_its_notation(source, known.encoder, bad)
    batches = [rows_with_usable_targets(without_features(encoder, chunk, True, bad, True), bad) for chunk in chunks]
    batches = [batch for batch in batches if len(batch.weight)]
    if not batches:
        raise no_rows(source.name, bad.tally)
    all_rows = followed([batch._replace(target=decoded(batch.target)) for batch in batches])._replace(file=source.name)
    table = pa.Table.from_batches([all_rows.columns])
    if known is None:
        task = problem_of(plan, all_rows, bad)[0]
    else:
        task = known.task if isinstance(known, Data) else known.model.task
    all_rows = with_rates(plan, all_rows._replace(target=target_of(task, all_rows)))
    return Data(source, table, encoder, plan, task, all_rows.target, all_rows.weight)


def truth_of(parts: Sequence[Data], classes: Sequence[Any], groups: np.ndarray | None = None) -> Truth:
    """The targets of concatenated tables, with group codes for the rows of the last table.

    ``classes``: the labels of all models.
    """
    task, plan, last = parts[0].task, parts[0].plan, parts[-1]
    targets, weight = [part.target for part in parts], np.concatenate([part.weight for part in parts])
    if task == "classification":
        indices = {label: k for k, label in enumerate(classes)}
        codes = [np.array([indices.get(label, len(classes)) for label in part.values], np.int64) for part in targets]
        targets = [code_of[part.codes] for code_of, part in zip(codes, targets, strict=True)]
        if all((target == len(classes)).all() for target in targets):
            problem, remedy = "no row has a label that a model knows", "pass the target of the models"
            raise DataError(problem, last.source.name, column=plan.target, remedy=remedy)
    if groups is not None:
        groups = np.append(np.zeros(len(weight) - len(groups), np.int64), groups)
    return Truth(task, plan.loss, list(classes), np.concatenate(targets), weight, groups)


def splits(truth: Truth, in_order: bool = False) -> list[tuple[np.ndarray, np.ndarray]]:
    """Rows to learn and to predict in each fold of a cross-validation by scikit-learn; groups are not split.

    Folds are stratified by class as far as groups allow, unless they are ``in_order``.
    """
    from sklearn import model_selection

    is_class, has_groups = truth.task == "classification", truth.groups is not None
    if in_order and has_groups:
        raise ModelError("`in_order` parts groups; leave `in_order` or `groups` out")
    name = f"{'Stratified' if is_class else ''}{'Group' if has_groups else ''}KFold"
    folds = getattr(model_selection, name)(FOLDS, shuffle=True, random_state=0)
    folds = model_selection.TimeSeriesSplit(FOLDS) if in_order else folds
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about classes that not all folds have
            parts = list(folds.split(truth.targets, truth.targets, truth.groups))
    except ValueError:
        parts = []
    units = "groups" if has_groups else "rows"
    if not all(len(judged) for _, judged in parts) or not parts:
        raise ModelError(f"there are too few {units} for {FOLDS}-fold cross-validation; name rows to learn by `train`")
    for number, (learned, _) in enumerate(parts, 1):
        if is_class and len(np.unique(truth.targets[learned])) < 2:
            raise ModelError(f"models of part {number} would learn rows of one class; give more {units} of each class")
    return parts


def run(
    parts: Sequence[Data],
    entrants: dict[str, Learn],
    known: Mapping[str, Sequence[Any]],
    groups: np.ndarray | None,
    with_peers: bool = True,
    in_order: bool = False,
    n_jobs: int | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> PairedComparison:
    """Predict the last table by all entrants, and by peers if rows are learned; compare the first with the others.

    Rows of the first of two tables are learned. A single table is cross-validated, unless entrants are trained already.

    ``known``: the classes of entrants that are trained already, by name.
    ``groups``: group codes (n,) of the rows of the last table.
    ``in_order``: whether rows to cross-validate are in time order.
    ``n_jobs``: number of processors; BLAS always uses one, so that results do not depend on it.
    """
    learns, labels = len(parts) > 1 or not known, [label for classes in known.values() for label in classes]
    if learns and parts[0].task == "classification":
        labels += sorted(parts[0].target.values)
    truth = truth_of(parts, list(dict.fromkeys(labels)), groups)
    required, n, left_out = {*entrants}, len(truth.weight) - len(parts[-1].weight), dict[str, str]()
    if learns and len(parts) == 1:
        folds, how = splits(truth, in_order), OF_TIME if in_order else OF_FOLDS
    else:
        folds, how = [(np.arange(n), np.arange(n, len(truth.weight)))], OF_TESTS if learns else OF_MODELS
    if learns and truth.task == "classification" and len(parts[0].target.values) < 2:
        raise one_class(parts[0].target.values[0], parts[0].source)
    if learns and with_peers:
        peer_learners, left_out = peers(parts, truth, n_jobs)
        entrants = entrants | {name: learn for name, learn in peer_learners.items() if name not in entrants}
    outputs: dict[str, list[np.ndarray]] = {name: [] for name in entrants}
    seconds = dict.fromkeys(entrants, 0.0)
    with (
        threads.at_most(effective_n_jobs(n_jobs or -1)),
        threadpool_limits(None if n_jobs is None else effective_n_jobs(n_jobs), "openmp"),
        threadpool_limits(1, "blas"),
    ):
        for number, (learned, judged) in enumerate(folds, 1):
            for name in [name for name in entrants if name not in left_out]:
                tell(f"{name}, part {number} of {len(folds)}" if len(folds) > 1 else name)
                began = time.perf_counter()
                try:
                    outputs[name].append(entrants[name](truth, learned, judged))
                except ValueError as error:
                    if name in required:
                        raise
                    left_out[name] = f"it failed: {str(error).partition(chr(10))[0]}"
                seconds[name] += time.perf_counter() - began
        judged_truth = truth.at(np.concatenate([judged for _, judged in folds]))
        predictions = {name: np.concatenate(parts) for name, parts in outputs.items() if name not in left_out}
        seconds = {name: total for name, total in seconds.items() if name not in known}
        return compared(judged_truth, predictions, str(parts[0].plan.target), how, seconds, left_out)


def entrant(parts: Sequence[Data], trained: Trained | None = None) -> Learn:
    """A model that predicts rows of the last table; if there is none yet, it is trained by the plan of the first."""
    plan, offset = parts[0].plan, sum(len(part.weight) for part in parts[:-1])

    def learn(truth: Truth, learned: np.ndarray, judged: np.ndarray) -> np.ndarray:
        predictor, bad = trained, BadRows(options=("on_bad_row",))
        if predictor is None:
            if (group_codes := parts[0].groups(plan.groups)) is not None:  # rows of a group are contiguous
                learned = learned[np.argsort(group_codes[learned], kind="stable")]
            else:
                learned = np.random.default_rng(0).permutation(learned)
            predictor = train(parts[0].rows(learned, True), plan, tell=lambda line: None)
        batches = predict(predictor, parts[-1].rows(judged - offset, False), bad)
        outputs = np.concatenate([predicted.predictions for predicted in batches])
        if truth.task == "regression":
            return predictor.model.responses(outputs)
        return by_class(predictor.model.probabilities(outputs), predictor.model.classes, truth.classes)

    return learn


def compare(
    data: Data,
    models: Mapping[str, Trained],
    learned: Data | None = None,
    n_jobs: int | None = None,
    groups: str | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> PairedComparison:
    """Compare the first model with the others, and with peers if rows are learned.

    ``data``: the rows to evaluate on.
    ``models``: trained models by name; if there are none, a model is trained by the plan of the data.
    ``learned``: the rows that peers, or this model, learn; without rows and models, ``data`` is cross-validated.
    Raises a ModelError if the models predict different targets or share no class.
    """
    parts = [data] if learned is None else [learned, data]
    first = next(iter(models), "")
    for name, other in models.items():
        pairs = {"target": (data.plan.target, other.plan.target), "task": (data.task, other.model.task)}
        for attribute, (ours, theirs) in pairs.items():
            if ours != theirs:
                problem = f"{first} and {name} differ in their {attribute}, {ours} and {theirs}"
                raise ModelError(f"{problem}; compare models of one")
        if data.task == "classification" and not {*models[first].model.classes} & {*other.model.classes}:
            raise ModelError(f"{first} and {name} have no class in common; compare models of the same target")
    known = {name: model.model.classes for name, model in models.items()}
    entrants = {name: entrant(parts, model) for name, model in models.items()} or {"tunefree": entrant(parts)}
    return run(parts, entrants, known, data.groups(groups), n_jobs=n_jobs, tell=tell)
