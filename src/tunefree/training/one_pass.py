"""One pass: a model learns batches of rows in their order, and predicts each row before.

``fit``, ``partial_fit``, ``train``, serving and shards run this pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tunefree.core import signals
from tunefree.model_files.plan import Plan
from tunefree.model_files.progress import Progress
from tunefree.model_files.trained import Trained
from tunefree.pool.targets import RunningMetrics
from tunefree.stream.batch import Batch
from tunefree.training import rises
from tunefree.training.batches import as_learned
from tunefree.training.callbacks import Callback, Step


def blank(model: Any, encoder: Any = None, kind: str = "", plan: Plan = Plan(), **notes: Any) -> Trained:  # noqa: B008
    """A model that has seen no row, and a training that begins."""
    progress = Progress(progressive=[RunningMetrics()], held_out=[RunningMetrics()])
    return Trained(model, encoder, kind, plan, progress, **notes)


def one_pass(trained: Trained, batches: Iterable[Batch], callbacks: Sequence[Callback] = ()) -> bool:
    """Learn the batches of a pass, which begins or goes on; whether a callback ended it.

    >>> from tunefree.core.rows import dense
    >>> from tunefree.pool.model import Model
    >>> trained = blank(Model("regression"))
    >>> X, y = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0])
    >>> one_pass(trained, [Batch(dense(X), y, np.ones(3))]), trained.progress.rows
    (False, 3)
    """
    progress = trained.progress
    if progress.number == len(progress.progressive):  # a further pass begins
        progress.progressive.append(RunningMetrics())
        progress.held_out.append(RunningMetrics())
        trained.model.begin_pass()
        progress.add_late(trained.model.take_late_losses())
    for batch in batches:
        step = learn(trained, batch)
        answers = [callback.step(trained, step) for callback in callbacks]
        signals.deliver()
        if True in answers:
            trained.held = None
            return True
    return False


def learn(trained: Trained, batch: Batch) -> Step:
    """Let a model predict and learn a batch, and add the losses of its rows to the progress."""
    model, progress, learned = trained.model, trained.progress, as_learned(trained, batch)
    y, weight, is_held_out = learned.target, learned.weight, learned.is_held_out
    counts = weight if learned.counts is None else learned.counts
    if forgotten := [features for row, features in batch.forgotten if row == 0]:
        model.forget(np.unique(np.concatenate(forgotten)))
    options: dict[str, Any] = {} if learned.groups is None else {"groups": learned.groups}
    if learned.mass is not None:
        options["mass"] = learned.mass
    if progress.number > 0:
        # Members are evaluated on rows that they have not learned: in further passes these are the ones held out.
        options["again"] = True
        weight = np.zeros(len(weight)) if is_held_out is None else np.where(is_held_out, counts, 0.0)
    predictions, row_losses = model.learn(learned.rows, y, learned.weight, weight, **options)
    counted, errors, late = row_losses, model.errors(y, predictions), model.take_late_losses()
    if late is not None:  # the last of them are of this batch
        kept_back, counted = np.flatnonzero(np.isnan(row_losses) & (weight > 0.0)), row_losses.copy()
        before = len(late.weight) - len(kept_back)
        progress.add_late(late.part(0, before))
        _, counted[kept_back], errors[kept_back] = late.part(before, len(late.weight))
    progress.add(counts, counted, errors, is_held_out)
    return Step(batch, learned, predictions, row_losses)


def end(trained: Trained) -> None:
    """End a training: the last generations are grown, and the model is complete."""
    trained.model.freeze()
    trained.progress.add_late(trained.model.take_late_losses())
    trained.progress.end()
    rises.end(trained)
