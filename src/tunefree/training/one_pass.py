"""One pass: a model learns pieces of rows in their order, and predicts each row before.

``fit``, ``partial_fit``, ``train``, serving and shards run this pass. They say where pieces come from, such as
rows in memory in an order that is drawn, a source that is read ahead, or a shard, and who observes the pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tunefree.core import signals
from tunefree.model.targets import RunningMetrics
from tunefree.model_files.plan import Plan
from tunefree.model_files.progress import Progress
from tunefree.model_files.trained import Trained
from tunefree.training import rises
from tunefree.training.pieces import Observer, Piece, Step


def blank(model: Any, encoder: Any = None, kind: str = "", plan: Plan = Plan(), **notes: Any) -> Trained:  # noqa: B008
    """A model that has seen no row, and a training that begins.

    Parameters
    ----------
    model : Model
    encoder, kind, plan, **notes
        Of :class:`tunefree.model_files.trained.Trained`.
    """
    progress = Progress(progressive=[RunningMetrics()], held_out=[RunningMetrics()])
    return Trained(model, encoder, kind, plan, progress, **notes)


def one_pass(trained: Trained, pieces: Iterable[Piece], observers: Sequence[Observer] = ()) -> None:
    """Learn the pieces of a pass, which begins or goes on.

    Parameters
    ----------
    trained : Trained
        Its model and its progress are changed.
    pieces : iterable of Piece
        Each is taken when those before it have been learned.
    observers : sequence of Observer
        Called after each piece, one after the other.

    Examples
    --------
    >>> from tunefree.core.rows import dense
    >>> from tunefree.pool.model import Model
    >>> trained = blank(Model("regression"))
    >>> X, y = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0])
    >>> one_pass(trained, [Piece(dense(X), y, np.ones(3), np.ones(3))])
    >>> trained.progress.rows
    3
    """
    progress = trained.progress
    if progress.number == len(progress.progressive):  # a further pass begins
        progress.progressive.append(RunningMetrics())
        progress.held_out.append(RunningMetrics())
        trained.model.begin_pass()
        progress.add_late(trained.model.take_late_losses())
    for piece in pieces:
        step = learn(trained, piece)
        for observe in observers:
            observe(trained, step)
        signals.deliver()


def learn(trained: Trained, piece: Piece) -> Step:
    """Let a model predict and learn a piece, and add the losses of its rows to the progress."""
    model, progress, weight = trained.model, trained.progress, piece.weight
    if piece.forgotten is not None:
        model.forget(piece.forgotten)
    options: dict[str, Any] = {} if piece.groups is None else {"groups": piece.groups}
    if piece.mass is not None:
        options["mass"] = piece.mass
    if progress.number > 0:
        # Members are evaluated on rows that they have not learned: in further passes these are the ones held out.
        options["again"] = True
        weight = np.zeros(len(weight)) if piece.is_held_out is None else np.where(piece.is_held_out, piece.counts, 0.0)
    predictions, row_losses = model.learn(piece.X, piece.y, piece.weight, weight, **options)
    counted, errors, late = row_losses, model.errors(piece.y, predictions), model.take_late_losses()
    if late is not None:  # the last of them are of this piece
        kept_back, counted = np.flatnonzero(np.isnan(row_losses) & (weight > 0.0)), row_losses.copy()
        before = len(late.weight) - len(kept_back)
        progress.add_late(late.part(0, before))
        _, counted[kept_back], errors[kept_back] = late.part(before, len(late.weight))
    progress.add(piece.counts, counted, errors, piece.is_held_out)
    return Step(piece, predictions, row_losses)


def end(trained: Trained) -> None:
    """End a training: the last generations are grown, and the model is complete."""
    trained.model.freeze()
    trained.progress.add_late(trained.model.take_late_losses())
    trained.progress.end()
    rises.end(trained)
