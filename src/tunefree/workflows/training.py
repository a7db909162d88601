"""From a source to a model: batches are learned in order, in one or several passes, with checkpoints on the way."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import DataError, ModelError
from tunefree.losses.rates import has_rates
from tunefree.model.kernel_bank import KernelConfig
from tunefree.model.members import Setting
from tunefree.model.model import Model
from tunefree.model.pool import usual_view
from tunefree.model.targets import RunningMetrics
from tunefree.pool.groups import digests
from tunefree.pool.model import class_of
from tunefree.stream.batch import BadRows, Batch, Origin, Position, as_named
from tunefree.stream.shuffle import shuffled
from tunefree.stream.source import Source
from tunefree.stream.tally import Tally
from tunefree.theory.exchangeability import TargetSample
from tunefree.theory.rises import LossRises
from tunefree.training import rises
from tunefree.training.class_weights import check, share_told, weighed, weights_by_label, with_weights
from tunefree.training.memory_limit import MemoryLimit, limit_of
from tunefree.model_files.trained import Trained, continued
from tunefree.model_files.plan import Plan
from tunefree.model_files.progress import Progress
from tunefree.training.rare_classes import follow
from tunefree.workflows.rates import as_learned
from tunefree.training.reading import (
    ahead,
    batches_from,
    begin,
    blank_encoder,
    check_learned,
    further_batches,
    in_its_notation,
)
from tunefree.training.repeats import repeats_told
from tunefree.training.resuming import (
    Passed,
    RunningDigests,
    check_kind,
    check_resumable,
    file_digests,
    file_sizes,
    file_times,
)
from tunefree.training.roles import note_roles
from tunefree.training.targets import target_of
from tunefree.training.watching import Step, Watcher


class _Read(NamedTuple):
    """A batch as the reading thread hands it over."""

    batch: Batch
    n_features: int  # known to the encoder after this batch
    skipped: Tally  # rows that could not be used so far
    encoder: Any  # state of the encoder after this batch, where a checkpoint or a copy is due; else None
    passed: Passed | None  # what has been read of the files, where a checkpoint is due; else None


def train(
    source: Source,
    plan: Plan,
    watcher: Watcher | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 0,
    resume: bool = False,
    earlier: Trained | None = None,
    memory_limit: str | None = None,
) -> Trained:
    """Learn a model from a source.

    Parameters
    ----------
    source : Source
    plan : Plan
    watcher : Watcher, optional
    checkpoint : path, optional
        File to which the model is saved on the way.
    checkpoint_every : int, default 0
        Rows between checkpoints; 0 for none.
    resume : bool, default False
        Resume from the checkpoint if there is one. The model ends as if it had never been interrupted, to the byte.
    earlier : Trained, optional
        A model of the same plan that goes on with these rows; see :func:`learn_more`.
    memory_limit : str, optional
        What the model may take, such as 4G; parts of it sleep before it does. By default a quarter of the memory.

    Returns
    -------
    Trained

    Raises
    ------
    DataError, ModelError
        If a row cannot be used, the target has one class only, or the checkpoint is of another plan, of data that have
        changed, or a model that is complete.

    Examples
    --------
    >>> from tunefree.stream.source import open_source
    >>> table = {"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}
    >>> trained = train(open_source(table), Plan(target="rich"))
    >>> trained.model.classes, trained.progress.progressive[0].rows
    (['no', 'yes'], 200)
    """
    watcher = watcher or Watcher()
    if checkpoint_every < 0:
        raise ModelError(f"`checkpoint_every` must be at least 0, not {checkpoint_every}")
    for name, value in (("checkpoint_every", checkpoint_every), ("resume", resume)):
        if value and checkpoint is None:
            raise ModelError(f"`{name}` is of a checkpoint; leave it out, or name the file of one by `checkpoint`")
    if plan.passes > 1 and not plan.shuffle:
        source.check_rewindable("train with one pass")
    plan, unread, limit = with_weights(plan, source), plan.bad_rows(), MemoryLimit(limit_of(memory_limit), watcher.tell)
    with _in_order(source, plan, unread, earlier) as rows:
        return _train(
            rows, plan, watcher, checkpoint, checkpoint_every if checkpoint else 0, resume, unread, earlier, limit
        )


def learn_more(
    trained: Trained,
    source: Source,
    plan: Plan | None = None,
    watcher: Watcher | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 0,
    resume: bool = False,
    memory_limit: str | None = None,
) -> Trained:
    """Let a model go on with further rows, in one pass, as if they had followed those that it has learned.

    New columns, categories, words and classes are learned as they come. A single learner is then, to the byte, the one
    that one pass over all rows makes, if its first rows were enough to fix its view: 256 of a table, 1024 with kernels.
    After fewer, the view stays as it is. A pool grew generations where its pass had ended, and goes on from these.

    Parameters
    ----------
    trained : Trained
        Its model and encoder are changed.
    source : Source
        Rows of the same kind, with the columns of the first rows; others may be missing or new.
    plan : Plan, optional
        Made by :meth:`tunefree.model_files.plan.Plan.further` of the model's plan, which says how rows are to be read. By
        default they are read as they come, and none is skipped.
    watcher, checkpoint, checkpoint_every, resume, memory_limit
        As in :func:`train`.

    Returns
    -------
    Trained

    Raises
    ------
    DataError, ModelError
        As in :func:`train`, and if the model is a checkpoint, or the rows are of another kind.

    Examples
    --------
    >>> from tunefree.stream.source import open_source
    >>> table = {"age": [20.0, 60.0] * 300, "rich": ["no", "yes"] * 300}
    >>> trained = train(open_source(table), Plan(target="rich", learner="scinol2"))
    >>> more = learn_more(trained, open_source({"age": [40.0, 61.0], "rich": ["perhaps", "yes"]}))
    >>> more.model.classes, more.progress.progressive[0].rows
    (['no', 'yes', 'perhaps'], 602)
    """
    check_kind(trained, source)
    plan = plan or trained.plan.further(Plan())
    earlier = replace(continued(trained), plan=plan)
    return train(source, plan, watcher, checkpoint, checkpoint_every, resume, earlier, memory_limit)


def learn_batches(trained: Trained, batches: Iterable[Batch], watcher: Watcher | None = None) -> None:
    """Learn batches of a pass that goes on; the model was :func:`continued`."""
    watcher = watcher or Watcher()
    _one_pass(trained, _reads(trained, iter(batches), BadRows(), watcher), watcher, None)


def _in_order(source: Source, plan: Plan, bad: BadRows, earlier: Trained | None) -> AbstractContextManager[Source]:
    """The source in the order in which its rows are to be learned."""
    if not plan.shuffle:
        return nullcontext(source)
    if source.rewindable:
        reading = begin(source, plan, BadRows(skip=True))  # mistakes in names show before all rows are moved
        note_roles(reading, bad)
    known, chunks = (
        blank_encoder(source, plan, bad)
        if earlier is None
        else in_its_notation(source, earlier.encoder, bad, grows=True)
    )
    return shuffled(source, plan.seed, bad, chunks, known)


def _train(
    source: Source,
    plan: Plan,
    watcher: Watcher,
    checkpoint: Any,
    due: int,
    resume: bool,
    unread: BadRows,
    earlier: Trained | None,
    limit: MemoryLimit,
) -> Trained:
    """Learn the rows of a source, of which ``unread`` could not be read when they were shuffled."""
    batches, running = None, RunningDigests(source)
    bad = replace(unread, tally=unread.tally.copy(), origin=source.origin)
    if resume and checkpoint and Path(checkpoint).exists():
        trained = Trained.load(checkpoint)
        check_resumable(trained, source, plan, watcher, checkpoint, running)
        bad.tally = trained.progress.tally
    elif earlier is not None:
        bad.tally = earlier.progress.tally
        bad.tally.add_all(unread.tally)
        encoder, batches = further_batches(source, earlier.encoder, bad, plan.group)
        trained = replace(earlier, encoder=encoder)
    else:
        trained, batches = _begun(source, plan, bad, limit)
    trained.progress.tally = bad.tally
    trained.progress.sizes = file_sizes(source)
    trained.progress.digests = file_digests(source, trained.progress.sizes)
    trained.progress.times = file_times(source)
    watcher.begin(trained, source)
    progress = trained.progress
    while progress.number < plan.passes:
        trained.encoder.observes = progress.number == 0
        if batches is None:
            batches = batches_from(progress.position, source, trained.encoder, bad, plan.group, trained.held)
        reads = _reads(trained, batches, bad, watcher, due, running)
        _one_pass(trained, reads, watcher, checkpoint, limit, source.origin)
        progress.number, progress.position, progress.rows, trained.held = progress.number + 1, Position(), 0, None
        batches, bad = None, replace(bad, tally=unread.tally.copy().with_columns(bad.tally))
    check_learned(trained.model, progress.progressive[0].rows if progress.progressive else 0, source)
    check(plan, trained.model.task, getattr(trained.model, "classes", ()), complete=True)
    if has_rates(plan.loss) and trained.model.record.targets.total <= 0.0:
        problem = f"all targets are 0, of which the {plan.loss} loss knows no mean"
        raise DataError(problem, source.name, column=plan.target, remedy="give rows with a target above 0")
    trained.model.freeze()
    progress.end()
    rises.end(trained)
    for line in [*repeats_told(trained), *share_told(trained), *rises.rises_told(trained)]:
        watcher.tell(line)
    watcher.end(trained)
    return trained


def held_out_rows(share: Fraction, start: int, n: int) -> np.ndarray:
    """Which rows of a stream are held out: as evenly spaced as can be, whatever the batches.

    Of the first i rows the integer part of i times the share is held out.

    Parameters
    ----------
    share : Fraction
        From 0 to 1, with a denominator of at most 10^9.
    start : int
        Rows before these.
    n : int

    Returns
    -------
    (n,) array of bool

    Examples
    --------
    >>> held_out_rows(Fraction("0.4"), 0, 10).astype(int)
    array([0, 0, 1, 0, 1, 0, 0, 1, 0, 1])
    """
    period = share.denominator  # of the pattern, so that no product overflows however long the stream is
    before = (start % period + np.arange(n)) % period * share.numerator
    return before // period < (before + share.numerator) // period


def _held_out(plan: Plan, start: int, batch: Batch) -> np.ndarray:
    """Which rows of a batch a plan holds out, of which so many rows come before."""
    return held_out_rows(plan.holdout_share, start, len(batch.weight))


def _begun(source: Source, plan: Plan, bad: BadRows, limit: MemoryLimit) -> tuple[Trained, Iterator[Batch]]:
    """A model that has seen nothing, and the batches to learn."""
    reading = begin(source, plan, bad)
    task, classes, encoder, batches, *_ = reading
    check(plan, task, classes, complete=bool(plan.classes))
    if not any(not oddity.rows for oddity in bad.tally.oddities()):  # before rows were moved, their order told more
        note_roles(reading, bad)
    view = plan.view or usual_view(plan.learner)
    chosen = task, plan.model_learner, plan.loss, plan.average, dict(plan.settings), view, classes
    kernel = KernelConfig(plan.kernel or "rbf", max_support=plan.max_support, device=plan.device)

    def make(n_features: int, settings: list[Setting] | None = None) -> Model:
        # Features that are hashed are as many as there is room for, and few are met once.
        return class_of(plan.model_learner)(*chosen, n_features, kernel, settings, replays=not plan.hash_bits)

    model = make(encoder.n_features, limit.members_that_fit(make, encoder.n_features))
    order = TargetSample(task == "regression")
    return Trained(model, encoder, source.kind, plan, Progress(), order, rises=LossRises()), batches


def _reads(
    trained: Trained,
    batches: Iterator[Batch],
    bad: BadRows,
    watcher: Watcher,
    due: int = 0,
    running: RunningDigests | None = None,
) -> Iterator[_Read]:
    """Batches with what the encoder knows after each; its state too where ``due`` more rows have been read."""
    encoder, rows = trained.encoder, trained.progress.rows
    for batch in batches:
        before, rows = rows, rows + len(batch.weight)
        passed = None
        if due and running is not None:
            running.extend(batch.position)
            passed = running.passed() if before // due < rows // due else None
        state = encoder.state() if passed is not None or watcher.wants_copy() else None
        yield _Read(batch, encoder.n_features, bad.tally.copy(), state, passed)


def _one_pass(
    trained: Trained,
    reads: Iterator[_Read],
    watcher: Watcher,
    checkpoint: Any,
    limit: MemoryLimit | None = None,
    origin: Origin = as_named,
) -> None:
    """Learn the batches of a pass, in order."""
    progress, model = trained.progress, trained.model
    by_label = weights_by_label(trained.plan.class_weight)
    if len(progress.progressive) == progress.number:
        progress.progressive.append(RunningMetrics())
        progress.held_out.append(RunningMetrics())
        if progress.number > 0:
            model.begin_pass()
    for read in ahead(reads):
        y = target_of(model.task, read.batch)
        batch, y = as_learned(trained.plan, weighed(read.batch, y, by_label), y)
        if limit is not None:
            n_slots = model.n_slots_after(batch.rows)
            limit.make_room(model, n_slots)
            model.reserve_slots(n_slots)
        model.reserve_features(read.n_features)
        held_out = _held_out(trained.plan, progress.rows, batch)
        weight = np.where(held_out, 0.0, batch.weight)
        # Members are evaluated on rows that they have not learned: in further passes these are the ones held out.
        evaluation_weight = weight if progress.number == 0 else np.where(held_out, batch.weight, 0.0)
        options: dict[str, Any] = {"again": True} if progress.number > 0 else {}
        if batch.groups is not None:
            options["groups"] = digests(batch.groups)
        predictions, row_losses = model.learn(batch.rows, y, weight, evaluation_weight, **options)
        if progress.number == 0:
            follow(trained, y, read.batch, predictions, origin)
            rises.follow(trained, y, batch, row_losses, weight, origin)
        errors = model.errors(y, predictions)
        for add, rows in ((progress.add, ~held_out), (progress.held_out[-1].add, held_out)):
            add(batch.weight[rows], row_losses[rows], errors[rows])
        progress.rows += len(batch.weight)
        progress.position, progress.tally = batch.position, read.skipped
        watcher.step(trained, Step(batch, y, predictions, row_losses, held_out))
        if read.passed is not None:
            progress.read, progress.read_digests = read.passed
            trained.save(checkpoint, read.encoder, batch.held)
        if read.encoder is not None and watcher.wants_copy():
            watcher.copy(trained, read.encoder)
