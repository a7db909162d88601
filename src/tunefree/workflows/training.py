"""From a source to a model: batches read ahead in a thread, learned in order, checkpointed on the way."""

from __future__ import annotations

import itertools
import math
import os
import queue
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tunefree.core.errors import DataError, ModelError
from tunefree.model import patience
from tunefree.model.kernel_bank import KernelConfig
from tunefree.model.model import Model
from tunefree.model.pool import FOLLOW_THE_LEADER, POOLS
from tunefree.model.targets import Labels, RunningMetrics, ScoredModel
from tunefree.stream.arrays import to_numpy
from tunefree.stream.batch import BadRows, Batch, Position
from tunefree.stream.source import Source, encoder_of
from tunefree.workflows import model_files as modelfile

KIND = "linear"
METHODS = POOL, KERNEL_SGD, EARLY_STOPPING = "pool", "kernel-sgd", "early-stopping"
SOME_HELD_OUT = 10  # one row of so many, where a number of passes is to be found
MOST_CLASSES_OF_INTEGERS = 100  # more distinct integers than this in a target are taken for numbers


@dataclass(frozen=True)
class Plan:
    """What is to be learned, and how; all of it has a default but the target of a table.

    Parameters
    ----------
    target : str, optional
        Column to predict; None for text formats, whose lines carry their label.
    task : {"classification", "regression"}, optional
        Found from the target if None.
    learner, loss, average, settings, view
        As in :class:`tunefree.model.model.Model`.
    passes : int, default 1
        Passes over the data; the pool makes at most so many, and stops once rows that are held out are predicted no
        better.
    max_support : int, optional
        Support points of kernel learners at most; beyond they go on in random Fourier features.
    device : str, optional
        Where PyTorch computes sums of kernel learners; by default compiled code does.
    weight : str, optional
        Column of sample weights.
    ignore, text : sequences of str
        Columns to leave out; columns of texts (guessed if None).
    hash_bits : int, default 0
        0 for an exact dictionary of features, else hashed to 2^hash_bits of them.
    holdout : float, default 0
        Share of the rows that is predicted but never learned; a tenth where the pool makes several passes.
    skip_bad_rows : bool, default False
        Count and skip rows that cannot be used instead of stopping at the first.
    """

    target: str | None = None
    task: str | None = None
    learner: str = "pool"
    loss: str | None = None
    average: bool = False
    settings: dict[str, float] = field(default_factory=dict)
    view: str = "raw"
    passes: int = 1
    max_support: int | None = None
    device: str | None = None
    weight: str | None = None
    ignore: tuple[str, ...] = ()
    text: tuple[str, ...] | None = None
    hash_bits: int = 0
    holdout: float = 0.0
    skip_bad_rows: bool = False

    def __post_init__(self) -> None:
        for wrong, message in (
            (self.passes < 1, f"--passes must be at least 1, not {self.passes}"),
            (not 0 <= self.holdout <= 0.5, f"--holdout must lie between 0 and 0.5, not {self.holdout}"),
            (not 0 <= self.hash_bits <= 30, f"--hash-bits must lie between 0 and 30, not {self.hash_bits}"),
            (self.task not in (None, "classification", "regression"), f"there is no task {self.task!r}"),
        ):
            if wrong:
                raise ModelError(message)

    @property
    def holdout_stride(self) -> int:
        """One row of this many is held out; 0 for none."""
        if self.learner in POOLS and self.passes > 1 and not self.holdout:
            return SOME_HELD_OUT
        return round(1 / self.holdout) if self.holdout else 0

    def is_over(self, progress: Progress) -> bool:
        """Whether no further pass is to be made."""
        if progress.number >= self.passes:
            return True
        losses = [metrics.mean_loss() for metrics in progress.held_out[: progress.number]]
        return self.learner in POOLS and patience.POOL.is_over(losses)


@dataclass
class Progress:
    """How far training has come; saved with the model, so that it can go on from there."""

    complete: bool = False
    number: int = 0  # of the pass, from 0
    position: Position = field(default_factory=Position)
    rows: int = 0  # usable rows of this pass so far
    skipped: int = 0  # rows that could not be used, in this pass
    progressive: list[RunningMetrics] = field(
        default_factory=list
    )  # of each pass: rows predicted before they were learned
    held_out: list[RunningMetrics] = field(default_factory=list)  # of each pass: rows never learned


class Predictor(Protocol):
    """What a model file holds for predicting: see :mod:`tunefree.workflows.model_files`."""

    model: Any
    encoder: Any
    kind: str
    plan: Plan


@dataclass
class Trained:
    """A model, the encoder of its features, and how far it has been trained."""

    model: Model
    encoder: Any
    kind: str  # of the encoder: table, svmlight or vw
    plan: Plan
    progress: Progress

    def save(self, path: str | os.PathLike[str], encoder: Any = None) -> None:
        """Write to a file; ``encoder`` is its state if that was taken earlier."""
        parts = {"model": self.model.save_state(), "encoder": encoder or self.encoder.state()}
        header = {"source": self.kind, "plan": asdict(self.plan), "progress": asdict(self.progress)}
        modelfile.save(path, KIND, parts, header)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trained:
        """Read what :meth:`save` wrote."""
        loaded: Trained = modelfile.load(path, KIND)
        return loaded

    @classmethod
    def restored(cls, arrays: dict[str, dict[str, np.ndarray]], header: dict[str, Any]) -> Trained:
        """From the parts of a file."""
        return cls(
            Model.restore(arrays["model"], header["model"]),
            encoder_of(header["source"]).restore(arrays.get("encoder", {}), header["encoder"]),
            header["source"],
            plan_of(header["plan"]),
            _progress(header["progress"]),
        )


def learner_of(method: str, learner: str, average: bool, kernel: bool) -> tuple[str, bool]:
    """The learner that a method stands for, and whether it is averaged.

    Parameters
    ----------
    method : {"pool", "kernel-sgd", "early-stopping"}
    learner, average
        As they were asked for.
    kernel : bool
        Whether kernels were.

    Examples
    --------
    >>> learner_of("kernel-sgd", "pool", False, False), learner_of("pool", "pool", False, True)
    (('kernel-regularized-sgd', True), ('kernel-pool', False))
    """
    if method not in METHODS:
        raise ModelError(f"unknown method {method!r}; choose one of {', '.join(METHODS)}")
    if method == KERNEL_SGD:
        for option, given in (("learner", learner != "pool"), ("kernel", kernel)):
            if given:
                raise ModelError(f"{KERNEL_SGD} is a learner, and has kernels; leave --{option} out, or --method")
        return FOLLOW_THE_LEADER, True
    of_kernels = kernel and learner == "pool" and method != EARLY_STOPPING
    return "kernel-pool" if of_kernels else learner, average


def plan_of(saved: dict[str, Any]) -> Plan:
    """The plan that a file holds."""
    plan: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in saved.items()}
    return Plan(**plan)


def _progress(saved: dict[str, Any]) -> Progress:
    saved_metrics = {
        name: [RunningMetrics(**metrics) for metrics in saved[name]] for name in ("progressive", "held_out")
    }
    return Progress(**{**saved, **saved_metrics, "position": Position(*saved["position"])})


class Step(NamedTuple):
    """A batch that was learned, for whoever watches."""

    batch: Batch
    y: Any  # Labels, or numbers
    predictions: np.ndarray  # (n, K), made before each row was learned
    row_losses: np.ndarray  # (n,) losses
    held_out: np.ndarray  # (n,) bool


class Watcher:
    """Is told how training goes; the command line draws a progress bar with it. This one keeps silent."""

    def begin(self, trained: Trained, source: Source) -> None:
        """Training begins, or goes on, with this model."""

    def step(self, trained: Trained, step: Step) -> None:
        """A batch was learned."""

    def end(self, trained: Trained) -> None:
        """Training has ended."""


class _Read(NamedTuple):
    """A batch as the reading thread hands it over."""

    batch: Batch
    n_features: int  # known to the encoder after this batch
    skipped: int  # bad rows so far
    encoder: Any  # state of the encoder after this batch, where a checkpoint is due; else None


def train(
    source: Source,
    plan: Plan,
    watcher: Watcher | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 0,
    resume: bool = False,
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
        Go on from the checkpoint if there is one. The model ends as if it had never been interrupted, to the byte.

    Raises
    ------
    DataError, ModelError
        If a row cannot be used, the target has one class only, or the checkpoint is of another plan.

    Examples
    --------
    >>> from tunefree.stream.source import open_source
    >>> table = {"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}
    >>> trained = train(open_source(table), Plan(target="rich"))
    >>> trained.model.classes, trained.progress.progressive[0].rows
    (['no', 'yes'], 200)
    """
    watcher = watcher or Watcher()
    if plan.passes > 1 and not source.rewindable:
        raise DataError("standard input can be read only once", remedy="save it to a file, or train with one pass")
    due = checkpoint_every if checkpoint else 0
    batches, bad = None, BadRows(plan.skip_bad_rows)
    if resume and checkpoint and Path(checkpoint).exists():
        trained = _resumed(Trained.load(checkpoint), source, plan, checkpoint)
        bad.count = trained.progress.skipped
    else:
        trained, batches = _begun(source, plan, bad)
    watcher.begin(trained, source)
    progress = trained.progress
    while not (progress.complete or plan.is_over(progress)):
        _one_pass(trained, _reads(trained, batches or _rest(trained, source, bad), bad, due), watcher, checkpoint)
        progress.number, progress.position, progress.rows = progress.number + 1, Position(), 0
        batches, bad = None, BadRows(plan.skip_bad_rows)
    check_learned(trained.model, progress.progressive[0].rows if progress.progressive else 0, source)
    trained.model.freeze()
    progress.complete = True
    watcher.end(trained)
    return trained


def begin(source: Source, plan: Plan, bad: BadRows) -> tuple[str, list[Any], Any, Iterator[Batch]]:
    """The task and the classes found in the first batch, the encoder, and all batches, the first included."""
    if source.kind == "table" and plan.target is None:
        raise DataError("no target is named", source.name, remedy="name the column to predict with --target")
    chunks = source.chunks(bad=bad)
    first = next(chunks, None)
    if first is None:
        raise DataError("there are no rows", source.name, remedy="check that it is the file you mean")
    encoder = source.encoder(first, plan.target, plan.weight, plan.ignore, plan.text, plan.hash_bits)
    batch = encoder.encode(first, True, bad, True)
    task = plan.task or task_of(batch.target)
    classes = sorted(labels_of(batch.target).values) if task == "classification" else []
    return task, classes, encoder, itertools.chain([batch], encoded(encoder, chunks, bad, True, True))


def _begun(source: Source, plan: Plan, bad: BadRows) -> tuple[Trained, Iterator[Batch]]:
    """A model that has seen nothing, and the batches to learn."""
    task, classes, encoder, batches = begin(source, plan, bad)
    settings, n_features = dict(plan.settings), encoder.n_features
    kernel = KernelConfig(max_support=plan.max_support, device=plan.device)
    model = Model(task, plan.learner, plan.loss, plan.average, settings, plan.view, classes, n_features, kernel)
    return Trained(model, encoder, source.kind, plan, Progress()), batches


def task_of(target: Any) -> str:
    """The task that a target's values suggest.

    Strings and booleans are classes, and so are two numbers, or integers that take few values, close together and each
    of them often; other numbers make a regression.

    Examples
    --------
    >>> import pyarrow as pa
    >>> task_of(pa.array([1.0, 2.0] * 10)), task_of(pa.array([1.5, 2.0, 2.5] * 10)), task_of(pa.array(["a", "b"]))
    ('classification', 'regression', 'classification')
    """
    if not (pa.types.is_floating(target.type) or pa.types.is_integer(target.type)):
        return "classification"
    values = np.array(target.unique().to_pylist(), np.float64)
    if len(values) <= 2:
        return "classification"
    few = len(values) <= MOST_CLASSES_OF_INTEGERS and 5 * len(values) <= len(target)
    close = np.ptp(values) <= 3 * len(values)  # codes are counted; prices and ages in round numbers are not
    return "classification" if few and close and (values == np.round(values)).all() else "regression"


def labels_of(target: Any) -> Labels:
    """Labels of an Arrow array, each once and only those that a row has; whole numbers lose their ``.0``."""
    coded = target if pa.types.is_dictionary(target.type) else target.dictionary_encode()
    codes = to_numpy(coded.indices, -1).astype(np.int64)
    values = [_label(value) for value in coded.dictionary.to_pylist()]
    numbers: dict[Any, int] = {}
    renumbered = np.zeros(len(values), np.int64)
    for i in np.unique(codes).tolist():
        renumbered[i] = numbers.setdefault(values[i], len(numbers))
    return Labels(list(numbers), renumbered[codes])


def _label(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _resumed(trained: Trained, source: Source, plan: Plan, checkpoint: Any) -> Trained:
    if trained.plan != plan or trained.kind != source.kind:
        raise ModelError(f"{checkpoint}: made with other options; give the options of the first run, or remove it")
    return trained


def _one_pass(trained: Trained, reads: Iterator[_Read], watcher: Watcher, checkpoint: Any) -> None:
    progress, model = trained.progress, trained.model
    if len(progress.progressive) == progress.number:
        progress.progressive.append(RunningMetrics())
        progress.held_out.append(RunningMetrics())
        if progress.number > 0:
            model.begin_pass()
    for read in ahead(reads):
        batch = read.batch
        n, y = len(batch.weight), target_of(model.task, batch)
        model.reserve_features(read.n_features)
        held_out = _held_out(trained.plan.holdout_stride, progress.rows, n)
        weight = np.where(held_out, 0.0, batch.weight)
        # Members are evaluated on rows that they have not learned: in further passes these are the ones held out.
        evaluation_weight = weight if progress.number == 0 else np.where(held_out, batch.weight, 0.0)
        predictions, row_losses = model.learn(batch.rows, y, weight, evaluation_weight, again=progress.number > 0)
        errors = model.errors(y, predictions)
        for metrics, rows in ((progress.progressive[-1], ~held_out), (progress.held_out[-1], held_out)):
            metrics.add(batch.weight[rows], row_losses[rows], errors[rows])
        progress.rows, progress.position, progress.skipped = progress.rows + n, batch.position, read.skipped
        watcher.step(trained, Step(batch, y, predictions, row_losses, held_out))
        if read.encoder is not None:
            trained.save(checkpoint, read.encoder)


def target_of(task: str, batch: Batch) -> Any:
    """A batch's target as models take it: labels, or numbers."""
    if task == "classification":
        return labels_of(batch.target)
    try:
        return to_numpy(batch.target.cast("float64"), math.nan)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(
            f"the target holds {batch.target.type}, not numbers",
            batch.file,
            int(batch.numbers[0]),
            remedy="pass --task classification",
        ) from None


def _held_out(holdout_stride: int, start: int, n: int) -> np.ndarray:
    """Which of the rows from ``start`` on are held out."""
    return np.arange(start, start + n) % holdout_stride == holdout_stride - 1 if holdout_stride else np.zeros(n, bool)


def _rest(trained: Trained, source: Source, bad: BadRows) -> Iterator[Batch]:
    """The batches from where training stands, read with the types of columns that are known."""
    types = trained.encoder.types() if source.kind == "table" else None
    return encoded(trained.encoder, source.chunks(trained.progress.position, bad, types), bad, True, True)


def _reads(trained: Trained, batches: Iterator[Batch], bad: BadRows, due: int) -> Iterator[_Read]:
    """A state of the encoder goes with each batch that ends a stretch between checkpoints."""
    encoder, rows = trained.encoder, trained.progress.rows
    for batch in batches:
        before, rows = rows, rows + len(batch.weight)
        state = encoder.state() if due and before // due < rows // due else None
        yield _Read(batch, encoder.n_features, bad.count, state)


def encoded(encoder: Any, chunks: Iterator[Any], bad: BadRows, learning: bool, labelled: bool) -> Iterator[Batch]:
    """Batches in order; what can be done of a chunk apart from the others is done in a thread for each processor."""
    with ThreadPoolExecutor(os.cpu_count(), "tunefree-prepare") as pool:
        waiting: deque[Future[Any]] = deque()
        for chunk in chunks:
            waiting.append(pool.submit(encoder.prepare, chunk, labelled))
            if len(waiting) > (os.cpu_count() or 1):
                yield encoder.finish(waiting.popleft().result(), learning, bad)
        while waiting:
            yield encoder.finish(waiting.popleft().result(), learning, bad)


def ahead(items: Iterator[Any], depth: int = 2) -> Iterator[Any]:
    """The same items, made in a thread of their own up to ``depth`` ahead, so that reading and learning overlap."""
    waiting: queue.Queue[tuple[bool, Any]] = queue.Queue(depth)
    stop = threading.Event()

    def put(kind: bool, item: Any) -> None:
        while not stop.is_set():
            try:
                waiting.put((kind, item), timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put(True, item)
                if stop.is_set():
                    return
            put(False, None)
        except BaseException as error:
            put(False, error)

    thread = threading.Thread(target=work, name="tunefree-reader", daemon=True)
    thread.start()
    try:
        while True:
            more, item = waiting.get()
            if more:
                yield item
            elif item is None:
                return
            else:
                raise item
    finally:
        stop.set()
        thread.join(timeout=1.0)  # longer only if it waits for more input, which may never come


def check_learned(model: ScoredModel, rows: int, source: Source) -> None:
    """Whether the rows of a source, so many of which could be used, were enough to learn from."""
    if rows == 0:
        raise DataError("no row could be used", source.name, remedy="see the messages about skipped rows")
    if model.task == "classification" and len(model.classes) < 2:
        raise DataError(
            f"the target has one class only, {model.classes[0]!r}",
            source.name,
            remedy="give data with at least two classes, or pass --task regression",
        )
