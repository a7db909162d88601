"""One pass: a model learns batches of rows in order, and predicts each row before it learns it.

``fit``, ``partial_fit``, ``train``, serving and shards use this pass. Batches are split where the model requires it,
and their targets and weights are converted for the model. A run of rows of one group is predicted before any of it is
learned, so the latest rows are held until the run ends. Runs also end with a file, and after ``MOST_OF_RUN`` rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tunefree.core import signals
from tunefree.core.errors import DataError
from tunefree.model_files.plan import Plan
from tunefree.model_files.progress import Progress
from tunefree.model_files.trained import Trained
from tunefree.pool.groups import chunks, digests, starts_of_runs
from tunefree.pool.model import Model
from tunefree.pool.rows import LateLosses
from tunefree.pool.targets import RunningMetrics
from tunefree.stream.batch import Batch, Tally, followed
from tunefree.training import rises
from tunefree.training.callbacks import Callback, Step
from tunefree.training.targets import target_of, weighed, weights_by_label, with_rates

MOST_OF_RUN = 100_000  # largest number of held rows of a run
MOST_NUMBERS = 1 << 18  # predicted per member and block of rows


def blank(model: Any, encoder: Any = None, kind: str = "", plan: Plan = Plan(), **notes: Any) -> Trained:  # noqa: B008
    """The state of a new training, whose model has seen no row."""
    return Trained(model, encoder, kind, plan, Progress(progressive=[RunningMetrics()]), **notes)


def one_pass(trained: Trained, batches: Iterable[Batch], callbacks: Sequence[Callback] = ()) -> bool:
    """Learn the batches of a new or continued pass; returns whether a callback ended it."""
    progress = trained.progress
    if progress.number == len(progress.progressive):  # a further pass begins
        progress.progressive.append(RunningMetrics())
        trained.model.begin_pass()
        progress.add_late(late_losses(trained.model))
    for batch in batches:
        step = learn(trained, batch)
        results = [callback.step(trained, step) for callback in callbacks]
        signals.deliver()
        if True in results:
            trained.held = None
            return True
    return False


def learn(trained: Trained, batch: Batch) -> Step:
    """Predict and learn a batch, and add the losses of its rows to the progress."""
    model, progress, learned = trained.model, trained.progress, as_learned(trained, batch)
    y, weight = learned.target, learned.weight
    counts = weight if learned.counts is None else learned.counts
    if forgotten := [features for row, features in batch.forgotten if row == 0]:
        _forget(model, np.unique(np.concatenate(forgotten)))
    again = progress.number > 0
    predictions, row_losses = model.learn(learned.rows, y, weight, again, learned.groups, learned.mass)
    counted, errors, late = row_losses, model.errors(y, predictions), late_losses(model)
    if late is not None:  # the last of these losses belong to this batch
        held_back, counted = np.flatnonzero(np.isnan(row_losses) & (weight > 0.0)), row_losses.copy()
        before = len(late.weight) - len(held_back)
        progress.add_late(late.part(0, before))
        _, counted[held_back], errors[held_back] = late.part(before, len(late.weight))
    progress.add(counts, counted, errors)
    return Step(batch, learned, predictions, row_losses)


def _forget(model: Model, features: np.ndarray) -> None:
    """Forget features (f,), whose numbers may be reused from here on.

    Certificates then hold for linear models in the known features; forgotten features count as 0 in earlier rows.
    """
    model.predictor.forget(features)
    evidence = model.record.evidence
    evidence.forget(features[features < evidence.n_features])


def late_losses(model: Model) -> LateLosses | None:
    """Losses of the first rows with positive weight, available once the members that held them back have learned them.

    Each row was predicted before it was learned. Linear members hold no rows back.
    """
    late: LateLosses | None = None if model.predictor.bank is None else model.predictor.take_late_losses()
    return late


def end(trained: Trained) -> None:
    """End a training: grow the last generations and mark the model as complete."""
    trained.model.freeze()
    trained.progress.add_late(late_losses(trained.model))
    trained.progress.end()
    rises.end(trained)


def cut(trained: Trained, batch: Batch, interval: int = 0) -> Iterator[Batch]:
    """Split the held rows and a batch where features are forgotten and after ``interval`` usable rows.

    Each part is created after the earlier parts are learned.
    """
    waiting, trained.held = trained.held, None
    if waiting is not None and waiting.file == batch.file:
        batch = followed([waiting, batch])
    elif waiting is not None:
        waiting = waiting._replace(n_features=batch.n_features, tally=batch.tally)
        yield from _cut(trained, waiting, interval, is_over=True)
    yield from _cut(trained, batch, interval)


def rows_that_wait(trained: Trained, tally: Tally | None, interval: int = 0) -> Iterator[Batch]:
    """The held rows, at the end of the input."""
    waiting, trained.held = trained.held, None
    if waiting is not None and waiting.groups is not None:
        if trained.progress.rows == 0:
            check_several(waiting.groups, waiting.file, trained.plan.groups, is_all=True)
        waiting = waiting._replace(n_features=trained.encoder.n_features, tally=tally)
        yield from _cut(trained, waiting, interval, is_over=True)


def _cut(trained: Trained, batch: Batch, interval: int, is_over: bool = False) -> Iterator[Batch]:
    n = len(batch.weight)
    cuts = [*range(-trained.progress.rows % interval, n, interval)] if interval else []
    if batch.groups is None:  # short blocks, so that signals are handled soon
        cuts += range(step := max(MOST_NUMBERS // max(len(trained.model.classes), 1), 1), n, step)
    else:
        runs = pairwise([*starts_of_runs(batch.groups).tolist(), n])
        cuts += [row for start, stop in runs for row in range(start + MOST_OF_RUN, stop, MOST_OF_RUN)]
    edges, stop = sorted({0, *(row for row, _ in batch.forgotten), *cuts}), n
    if batch.groups is not None and not is_over:
        if trained.progress.rows == 0:
            check_several(batch.groups, batch.file, trained.plan.groups, is_all=False)
        learned = as_learned(trained, batch)
        stop = n_complete(trained.model, learned.target, learned.weight, learned.groups, edges)
        trained.held = batch.part(stop, n)._replace(checkpoint=None) if stop < n else None
    edges = [0, *(edge for edge in edges if 0 < edge < stop), stop]
    for start, end in pairwise(edges):
        part = batch if (start, end) == (0, n) else batch.part(start, end)
        yield part if end == stop else part._replace(checkpoint=None, is_last=False)


def as_learned(trained: Trained, batch: Batch) -> Batch:
    """The rows of a batch with targets and weights as learned by the model."""
    if not isinstance(batch.target, pa.Array):  # rows in memory
        return batch
    plan, y = trained.plan, target_of(trained.model.task, batch)
    learned = with_rates(plan, weighed(batch._replace(target=y), weights_by_label(plan.class_weight)))
    return learned if batch.groups is None else learned._replace(groups=digests(batch.groups))


def n_complete(model: Any, y: Any, weight: np.ndarray, groups: np.ndarray, edges: Sequence[int]) -> int:
    """The number of rows, split at ``edges``, that can be learned independently of the rows that follow.

    >>> from tunefree.pool.model import Model
    >>> n_complete(Model("regression"), np.zeros(5), np.ones(5), np.array([7, 7, 5, 6, 6]), [0])
    3
    """
    if not len(weight):
        return 0
    new = model.codes(y)[1] if model.task == "classification" else []
    start = max([*edges, *(row for row, _ in new)])
    rows = model.pool.rows + np.count_nonzero(weight[:start] > 0.0)
    *_, (first, _) = chunks(groups[start:], weight[start:], rows)
    return start + first


def check_several(groups: np.ndarray, file: str, column: str | None, is_all: bool) -> None:
    """Raise a DataError if all rows, or very many first rows, belong to one group."""
    if not len(groups) or (groups != groups[0]).any() or not (is_all or len(groups) >= MOST_OF_RUN):
        return
    which = "all rows" if is_all else f"the first {MOST_OF_RUN:,} rows"
    remedy = "name a column of several groups, or leave `groups` out"
    raise DataError(f"{which} are of one group, {groups[0]!r}", file, column=column, remedy=remedy)
