"""Training: batches of a source are learned in order, in one or several passes, with checkpoints at intervals."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from tunefree.core.errors import DataError, TunefreeError, warn
from tunefree.learners import family_of
from tunefree.losses.rates import has_rates
from tunefree.model_files.column_samples import ColumnSamples
from tunefree.model_files.plan import Plan, signs_of
from tunefree.model_files.progress import IN_MEMORY
from tunefree.model_files.trained import Trained, continued
from tunefree.pool.model import Model
from tunefree.pool.options import usual_view
from tunefree.stream.batch import BadRows, Batch, Origin, Position, as_named
from tunefree.stream.files import display_name
from tunefree.stream.formats import TABLE
from tunefree.stream.shuffle import shuffled
from tunefree.stream.source import Source
from tunefree.stream.text import use_lines_as_they_come
from tunefree.theory.exchangeability import TargetSample
from tunefree.theory.rises import LossRises
from tunefree.training import rises
from tunefree.training.callbacks import Callback, Step, checked
from tunefree.training.memory_limit import CHECKED, SMALL, MemoryLimit, limit_of, small_chunks
from tunefree.training.one_pass import blank, cut, end, learn, one_pass, rows_that_wait
from tunefree.training.reading import ahead, begin, blank_encoder, check_learned, chunks_of, encoded, in_its_notation
from tunefree.training.resuming import Checkpoints, check_kind, file_sizes
from tunefree.training.roles import monotone_columns, note_roles
from tunefree.training.stopping import Interrupted, Stop, Stoppable, Stopped
from tunefree.training.targets import balancing, check_class_weight, is_balanced, labels_of

PATIENCE = 1.0  # longest delay in seconds before rows of a slow pipe are learned


def train(
    source: Source,
    plan: Plan,
    callbacks: Sequence[Callback] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    save_every: int = 0,
    resume: bool = False,
    memory_limit: str | None = None,
    stop: Stop | None = None,
    *,
    earlier: Trained | None = None,
    tell: Callable[[str], None] = warn,
) -> Trained:
    """Learn a model from a source, or raise Interrupted, a DataError or a ModelError.

    Other parameters are as in :func:`tunefree.train`.
    ``stop``: a request to end the training early; the model is then saved to the checkpoint.
    ``earlier``: a model of the same plan to continue with these rows; see :func:`learn_more`.
    ``tell``: called with messages for the user.
    """
    stop = stop or Stop()
    checkpoints = Checkpoints(checkpoint, save_every, resume, tell, stop)
    if plan.passes > 1 and not plan.shuffle:
        source.check_rewindable("train with one pass")
    limit = MemoryLimit(limit_of(memory_limit), tell, memory_limit is not None)
    plan, unread = with_weights(plan, source), plan.bad_rows()
    with _in_order(source, plan, unread, earlier) as in_order:
        rows = Stoppable(**vars(in_order), stop=stop)
        if memory_limit is not None or save_every:
            rows = replace(rows, files=tuple(small_chunks(file) for file in rows.files))
        callbacks = [Notes(rows.origin), *checked(callbacks), checkpoints, stop]
        try:
            reader = _Reader(rows, unread, checkpoints, limit, stop, any(callback.may_end for callback in callbacks))
            trained = _started(reader, plan, earlier)
            for file in source.files or (IN_MEMORY if source.rewindable else "a stream",):
                trained.progress.note_data(display_name(file))
            for callback in callbacks:
                callback.begin(trained, rows)
            if source.files == ("-",):
                use_lines_as_they_come(PATIENCE)
            is_over = False
            while trained.progress.number < plan.passes and not is_over:
                trained.encoder.observes = trained.progress.number == 0
                is_over = one_pass(trained, reader.batches(trained), callbacks)
                trained.progress.end_pass()
            _end(trained, rows)
            for callback in callbacks:
                callback.end(trained)
        except (Stopped, Interrupted) as end:
            if isinstance(end, Stopped):
                checkpoints.stop()
            number = getattr(end, "number", stop.number)
            raise Interrupted(f"interrupted; {checkpoints.outcome(stop)}", number) from None
        except TunefreeError as error:
            if checkpoints.saved is not None:
                error.args = (f"{error}. {checkpoints.outcome(stop, is_error=True)}",)
            raise
    return trained


def check_weighed(trained: Trained, name: str | None = None) -> None:
    """Raise a DataError if the weights of all rows are 0; ``name`` is the name of the file."""
    plan, targets = trained.plan, trained.model.record.targets
    if trained.progress.progressive[0].weight == 0.0 and targets.weight == 0.0:
        option = "sample_weight" if plan.sample_weight is not None else "class_weight"
        column = plan.sample_weight if plan.sample_weight is not None else plan.target
        remedy = "give rows with a weight above 0" + (f", or leave `{option}` out" if getattr(plan, option) else "")
        raise DataError("all rows have a weight of 0, so that nothing is learned", name, None, column, remedy)


def _end(trained: Trained, source: Source) -> None:
    """Complete a training after its last row; raises a DataError if too few rows were learned."""
    plan, model = trained.plan, trained.model
    check_learned(model, trained.progress.progressive[0].rows, trained.progress.tally, source)
    check_class_weight(plan, model.task, getattr(model, "classes", ()), complete=True)
    if has_rates(plan.loss) and model.record.targets.total <= 0.0:
        problem = f"all targets are 0, and the {plan.loss} loss takes means above 0"
        raise DataError(problem, source.name, column=plan.target, remedy="give rows with a target above 0")
    end(trained)
    check_weighed(trained, source.name)
    if source.kind == TABLE:
        trained.encoder.ids.limit(None)


def learn_more(trained: Trained, source: Source, plan: Plan | None = None, *arguments: Any, **options: Any) -> Trained:
    """Train a model in place on further rows, as if they had followed the rows it has learned.

    A single learner becomes byte-identical to one trained on all rows in a single pass, if its first rows were enough
    to fix its view. A pool continues with the generations that it grew at the end of its pass. A checkpoint of a first
    pass continues with the rows after its own, and becomes byte-identical to the model of an uninterrupted training.
    ``plan``: a result of :meth:`tunefree.model_files.plan.Plan.further`; other arguments are as in :func:`train`.

    >>> from tunefree.stream.source import open_source
    >>> table = {"age": [20.0, 60.0] * 300, "rich": ["no", "yes"] * 300}
    >>> trained = train(open_source(table), Plan(target="rich", learner="scinol2"))
    >>> further = learn_more(trained, open_source({"age": [40.0, 61.0], "rich": ["perhaps", "yes"]}))
    >>> further.model.classes, further.progress.progressive[0].rows
    (['no', 'yes', 'perhaps'], 602)
    """
    check_kind(trained, source)
    plan = plan or trained.plan.further(Plan())
    progress = trained.progress
    is_checkpoint = not (progress.complete or progress.number or trained.plan.shuffle)  # continued with later rows
    earlier = replace(trained if is_checkpoint else continued(trained), plan=plan)
    return train(source, plan, *arguments, earlier=earlier, **options)


def with_weights(plan: Plan, source: Source) -> Plan:
    """The validated plan, with "balanced" replaced by class weights that are computed in a pass over the source."""
    if not is_balanced(plan):
        return plan
    source.check_rewindable("give `class_weight='LABEL=W'`")
    reading = begin(source, plan, plan.bad_rows())
    check_class_weight(plan, reading.task, reading.classes, complete=False)
    totals: dict[str, float] = {}
    for batch in reading.batches:
        y = labels_of(batch.target)
        for value, weight in zip(y.values, np.bincount(y.codes, batch.weight, len(y.values)), strict=True):
            totals[str(value)] = totals.get(str(value), 0.0) + float(weight)
    return replace(plan, class_weight=balancing(totals))


def learn_batch(trained: Trained, batch: Batch) -> Step:
    """Learn a batch of a continued pass; the model was :func:`continued`."""
    trained.model.reserve(batch.n_features)
    step = learn(trained, batch)
    Notes().step(trained, step)
    return step


def learn_batches(trained: Trained, batches: Iterable[Batch]) -> Iterator[Step]:
    """Learn batches of a continued pass like :func:`learn_batch`, without splitting runs of rows of a group."""
    for batch in batches:
        yield from (learn_batch(trained, part) for part in cut(trained, batch))
    yield from (learn_batch(trained, part) for part in rows_that_wait(trained, None))


@dataclass
class Notes(Callback):
    """Records the position of the rows learned, and in the first pass their targets and losses.

    ``origin``: maps a file and a row number to the file and row number that the user knows.
    """

    origin: Origin = as_named
    may_end = False

    def step(self, trained: Trained, step: Step) -> None:
        progress, batch = trained.progress, step.batch
        progress.position = batch.position
        if batch.tally is not None:
            progress.tally = batch.tally
        if progress.number == 0:
            self._follow_targets(trained, step.learned.target)
            rises.follow(trained, step, self.origin)

    def _follow_targets(self, trained: Trained, y: Any) -> None:
        """Record the order of targets, and the number of rows of each class."""
        is_of_classes = trained.model.task == "classification"
        codes = trained.model.codes(y)[0] if is_of_classes else y
        if trained.order is not None:
            trained.order.add(codes)
        if is_of_classes:
            counts = zip_longest(trained.progress.class_rows, np.bincount(codes).tolist(), fillvalue=0)
            trained.progress.class_rows = [before + now for before, now in counts]


def _in_order(source: Source, plan: Plan, bad: BadRows, earlier: Trained | None) -> AbstractContextManager[Source]:
    """The source with its rows in the order of learning, shuffled if the plan says so."""
    if not plan.shuffle:
        return nullcontext(source)
    if source.rewindable:
        # report wrong names before all rows are shuffled
        reading = begin(source, plan, BadRows(skip=True))
        note_roles(reading, bad)
    known, chunks = (
        blank_encoder(source, plan, bad)
        if earlier is None
        else in_its_notation(source, earlier.encoder, bad, grows=True)
    )
    return shuffled(source, plan.random_state, bad, chunks, known)


@dataclass
class _Reader:
    """Reads the rows of a source, ahead of learning unless a callback may end the pass."""

    source: Source
    unread: BadRows  # rows that could not be read during shuffling
    checkpoints: Checkpoints
    limit: MemoryLimit
    stop: Stop
    may_end: bool  # whether a callback may end a pass; rows beyond its end must not be read
    begun: Iterator[Batch] | None = None  # batches of a pass that has begun
    n_forgotten: int = 0  # features forgotten up to the latest batch read

    def __post_init__(self) -> None:
        self.bad = replace(self.unread, tally=self.unread.tally.copy(), origin=self.source.origin)

    def batches(self, trained: Trained) -> Iterator[Batch]:
        """The batches of a pass, from its current position on."""
        model, interval = trained.model, CHECKED if self.limit.is_stated else 0
        for batch in self._ahead(trained):
            n_slots = max(model.linear.n_features, model.linear.meetings.n_slots_after(batch.rows))
            if self.limit.most:
                n_slots = max(n_slots, 1 + batch.rows.numbers.shape[1] + self.limit.most)
                model.reserve(n_slots=n_slots, exactly=True)
            elif not self.limit.is_stated or n_slots > model.n_features:  # stated limits are checked at fixed rows
                self.limit.make_room(model, n_slots)
            model.reserve(batch.n_features, n_slots)
            self.stop.learns = True
            for part in cut(trained, batch, interval):
                if self.limit.is_stated and trained.progress.rows % CHECKED == 0:
                    self.limit.make_room(model, n_slots)
                yield part
        yield from rows_that_wait(trained, self.bad.tally.copy(), interval)
        self.begun = None
        self.bad = replace(self.bad, tally=self.unread.tally.copy().with_columns(self.bad.tally))

    def _ahead(self, trained: Trained) -> Iterator[Batch]:
        """Batches, read ahead; if rows cannot be read again, the training is saved on an error."""
        depth = 0 if self.may_end else 2
        try:
            yield from ahead(self._reads(trained), depth, self.stop)
        except DataError:
            encoder = trained.encoder
            # Categories of a rejected chunk are kept. If it made others forgotten, the state cannot be saved.
            if not self.source.rewindable and self.n_forgotten == n_forgotten(encoder):
                trained.model.reserve(encoder.n_features)
                self.checkpoints.keep()
            raise

    def _reads(self, trained: Trained) -> Iterator[Batch]:
        """Batches with the rows skipped so far, and the state of the encoder if a checkpoint is due."""
        encoder, progress = trained.encoder, trained.progress
        batches, rows = self.begun, progress.rows
        if batches is None:
            chunks = chunks_of(self.source, encoder, self.bad, progress.position)
            batches = encoded(encoder, chunks, self.bad, True, True)
        for batch in batches:
            before, rows = rows, rows + len(batch.weight)
            state = encoder.state() if self.checkpoints.is_due(before, rows) else None
            self.n_forgotten = n_forgotten(encoder)
            yield batch._replace(tally=self.bad.tally.copy(), checkpoint=state)


def n_forgotten(encoder: Any) -> int:
    """The number of features that the encoder of a source has forgotten; only the encoder of tables forgets."""
    return encoder.ids.n_forgotten if hasattr(encoder, "ids") else 0


def _started(reader: _Reader, plan: Plan, earlier: Trained | None) -> Trained:
    """Begin a training, resume it, or continue it with further rows."""
    source, bad = reader.source, reader.bad
    if reader.checkpoints.resumes:
        trained = reader.checkpoints.load(source, plan)
        bad.tally = trained.progress.tally.copy()
    elif earlier is not None:
        bad.tally, row = earlier.progress.tally.copy(), earlier.progress.position.row
        bad.tally.add_all(reader.unread.tally)
        encoder = source.known or earlier.encoder
        if row or source.known is not None:  # the rest of a stream is in the notation of its beginning
            chunks = chunks_of(source, encoder, bad, Position(row=row))
        else:
            encoder, chunks = in_its_notation(source, encoder, bad, grows=True)
        trained = replace(earlier, encoder=encoder)
        reader.begun = encoded(encoder, chunks, bad, True, True)
        # forgetting requires that feature numbers are slots, and that no bank keeps rows
        can_forget = not trained.model.linear.meetings.assigns_slots and trained.model.predictor.bank is None
        if earlier.progress.position == Position() and source.kind == TABLE and can_forget:
            trained.encoder.ids.limit(reader.limit.most_features(trained.model))
    else:
        trained, reader.begun = _new_training(source, plan, bad, reader.limit)
    reader.limit.most = trained.encoder.ids.most if source.kind == TABLE else None
    progress = trained.progress
    progress.tally, progress.sizes = bad.tally.copy(), file_sizes(source)
    return trained


def _new_training(source: Source, plan: Plan, bad: BadRows, limit: MemoryLimit) -> tuple[Trained, Iterator[Batch]]:
    """A new model, and the batches to learn."""
    view = plan.view or usual_view(plan.learner)
    family = family_of(plan.learner)
    config = None if family is None else family.config_of(plan)

    def model_of(task: str, classes: Sequence[Any], n_features: int, **options: Any) -> Model:
        options |= {"settings": dict(plan.settings), "view": view, "config": config}
        return Model(task, plan.learner, plan.loss, plan.average, classes=classes, n_features=n_features, **options)

    forgets = limit.is_stated and source.kind == TABLE and not plan.hash_bits
    most = (lambda task, classes: limit.most_features(model_of(task, classes, SMALL))) if forgets else None
    reading = begin(source, plan, bad, most_features=most)
    task, classes, encoder, batches, *_ = reading
    check_class_weight(plan, task, classes, complete=bool(plan.classes))
    if not any(not oddity.rows for oddity in bad.tally.oddities):  # otherwise noted in the original order
        note_roles(reading, bad)
    is_limited = forgets and encoder.ids.most is not None
    # Hashed or limited features fill their capacity, and few of them occur only once.
    monotone = monotone_columns(encoder.columns, signs_of(plan.monotone), source.name) if plan.monotone else ()
    make = partial(model_of, task, classes, replays=not (is_limited or plan.hash_bits), monotone=monotone)
    limit.check_beginning(make, encoder.n_features)
    model = make(encoder.n_features)
    order = TargetSample(task == "regression")
    return blank(
        model, encoder, source.kind, plan, order=order, rises=LossRises(), samples=ColumnSamples(task != "regression")
    ), batches
