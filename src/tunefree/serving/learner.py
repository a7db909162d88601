"""The learning thread of a served model, which writes rows to the journal before it learns them.

Requests that arrive during learning form the next group. Each is checked, written to the journal in one transaction
with the others of its group, learned, and only then answered. After a restart, the thread learns the journal's events
since the saved version in the same order. The model is then identical to the byte, as it depends on its rows only.
Predictions use a copy of the model, so they wait neither for learning nor for saving.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from tunefree.core import threads
from tunefree.core.errors import DataError, ModelError, TunefreeError
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained, continued
from tunefree.pool.model import published
from tunefree.pool.waiting import Remembered, remember
from tunefree.serving.events import Counts, log
from tunefree.serving.rows import MAX_NAME_LENGTH, REQUEST, Reader, check_rows
from tunefree.serving.settings import Keeping
from tunefree.serving.store import Event, Row, Store, StoreError, Waiting
from tunefree.stream.batch import BadRows, Converted
from tunefree.training.rises import drifts_of
from tunefree.training.training import learn_batch

MAX_ROWS = 2048  # maximum number of rows learned together, except for a single larger request
PUBLISH_SHARE = 0.03  # maximum part of a processor for publishing
RETRY_SECONDS = 30.0  # seconds until a failed save is repeated
TICK = 60.0  # seconds between removals of rows that waited too long
DAY = 86400.0
HALF_LIFE = 1000  # rows in which the weight of a loss halves
T = TypeVar("T")


class Published(NamedTuple):
    """An immutable copy of a model."""

    model: Any
    encoder: Any
    plan: Plan
    rows: int  # number of learned rows
    drifts: list[dict[str, Any]]  # where the loss rose


def without_frames(error: Exception) -> Exception:
    """An error of this package without its traceback.

    The local variables of its frames include models, and reference cycles would keep these until a garbage collection.
    """
    if isinstance(error, TunefreeError):
        error.__traceback__ = error.__context__ = None
    return error


class Task(NamedTuple):
    """A task for the learning thread: a function, and the future of its result."""

    function: Callable[[], Any]
    answer: Future[Any]


@dataclass(eq=False)
class Request:
    """Rows to learn, or labels of rows that were predicted."""

    sent: list[Row]
    are_labels: bool = False
    name: str | None = None  # idempotency key: repeated requests with the same name are learned once
    answer: Future[Row] = field(default_factory=Future)
    # Set by the learning thread.
    rows: list[Row] = field(default_factory=list)
    remembered: list[Remembered] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)  # ids of the rows that stop waiting
    unknown: list[Any] = field(default_factory=list)  # ids of labels without a waiting row
    earlier: tuple[str, Row] | None = None  # digest and answer of an earlier request with this name
    sequence: int = 0  # sequence number of the event; 0 without rows

    def __post_init__(self) -> None:
        check_rows(self.sent)

    @cached_property
    def digest(self) -> str:
        """The digest of the request."""
        return hashlib.sha256(json.dumps([self.are_labels, self.sent], sort_keys=True).encode()).hexdigest()

    def names(self, id_name: str) -> set[str]:
        """Keys that must be unique in a group of requests: the name of the request and the ids of its labels."""
        ids = {f"row {row.get(id_name)}" for row in self.sent if self.are_labels}
        return ids if self.name is None else {f"request {self.name}", *ids}

    def outcome(self) -> Row:
        """The answer after the rows are learned."""
        if self.earlier is not None:
            return self.earlier[1] | {"repeated": True}
        learned: Row = {"learned": len(self.rows)}
        return learned | {"unknown": self.unknown} if self.are_labels else learned


class Learner:
    """The thread that learns rows, and publishes and saves the model."""

    published: Published  # copy of the model for predictions
    recent: float | None  # exponentially weighted mean of the progressive loss, with half-life HALF_LIFE

    def __init__(self, store: Store, model: Trained, sequence: int, reader: Reader, keeping: Keeping) -> None:
        self.store, self._reader, self._keeping, self.counts = store, reader, keeping, Counts()
        self.broken: str | None = None  # error after which nothing can be learned
        self.failure: str | None = None  # error of the last save
        self.n_published = 0
        self._tasks: deque[Request | Task] = deque()  # guarded by the condition, like ``_is_over``
        self._condition, self._is_over = threading.Condition(), False
        self._looked = -math.inf  # time of the last removal of old rows
        self._begin(model, sequence)
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name="tunefree-learning", daemon=True)
        self._thread.start()
        started.result()

    def submit(self, request: Request) -> Future[Row]:
        """Submit rows, which are learned even if the client disconnects."""
        request.answer.set_running_or_notify_cancel()
        self._put(request)
        return request.answer

    def between(self, function: Callable[[], T]) -> T:
        """The result of a function that runs in the learning thread, between groups of requests."""
        answer: Future[T] = Future()
        self._put(Task(function, answer))
        return answer.result()

    def _put(self, task: Request | Task) -> None:
        """Add a task for the thread; after the thread has ended, it is answered with an error."""
        with self._condition:
            if self._thread.is_alive() and not self._is_over:
                self._tasks.append(task)
                self._condition.notify()
                return
        task.answer.set_exception(StoreError("the server has ended; nothing of this request was learned"))

    @property
    def n_queued(self) -> int:
        """Number of requests waiting to be learned."""
        return len(self._tasks)

    @property
    def n_rises(self) -> int:
        """Number of detected rises of the loss."""
        return 0 if self.trained.rises is None else self.trained.rises.count

    def close(self) -> None:
        """Learn the submitted rows, save, and end; later requests are answered with an error."""
        with self._condition:
            self._is_over = True
            self._condition.notify()
        self._thread.join()

    def _run(self, started: Future[None]) -> None:
        threads.lower_priority()  # predictions have priority
        try:
            self._replay()
            self._publish()
            self._publish_at = 0.0  # the first publication takes long, as it warms up the process
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(None)
        while self._tasks or not self._is_over:
            requests, task = self._next_group()
            if requests:
                self._learn_together(requests)
            if self.broken is None:
                self._maintain()
            if task is not None:
                try:
                    task.answer.set_result(task.function())
                except Exception as error:
                    task.answer.set_exception(without_frames(error))
        if self.unsaved:
            self.save("the server ended")

    def _next_group(self) -> tuple[list[Request], Task | None]:
        """A group of requests without repeated names or ids, and the task that follows it, if any."""
        requests, names, n_rows, timeout = list[Request](), set[str](), 0, TICK
        if self._is_stale and self.broken is None:
            timeout = min(max(self._publish_at - time.monotonic(), 0.0), TICK)
        with self._condition:
            self._condition.wait_for(lambda: self._tasks or self._is_over, timeout)
            while self._tasks:
                task = self._tasks[0]
                if isinstance(task, Task):
                    self._tasks.popleft()
                    return requests, task
                further = task.names(self._reader.id_name)
                if requests and (n_rows + len(task.sent) > MAX_ROWS or names & further):
                    break
                self._tasks.popleft()
                requests.append(task)
                names |= further
                n_rows += len(task.sent)
        return requests, None

    def _begin(self, model: Trained, sequence: int) -> None:
        """Continue with a model that has learned all events up to ``sequence``."""
        self.trained = continued(model)
        self.sequence, self.unsaved, self._retry, self.recent = sequence, 0, 0.0, None

    def _replay(self) -> None:
        """Learn the events of the journal since the saved version."""
        events: list[Event] = []
        for event in self.store.events_after(self.sequence):
            events.append(event)
            if sum(len(other.rows) for other in events) >= MAX_ROWS:
                self._learn(events)
                events = []
        self._learn(events)
        if self.unsaved:
            self.counts.rows_replayed = self.unsaved
            log("replayed", rows=self.unsaved)

    @property
    def _is_stale(self) -> bool:
        """Whether rows were learned since the last publication."""
        return self.published.rows < self.trained.progress.rows

    def _maintain(self) -> None:
        """Publish the model, save it and drop old entries, if these are due."""
        try:
            if self._is_stale and time.monotonic() >= self._publish_at:
                self._publish()
            if self.unsaved >= self._keeping.save_every and time.monotonic() >= self._retry:
                self.save("rows were learned")
            with suppress(StoreError):  # the store keeps it as its failure
                self._drop_old()
        except Exception as error:  # such as a MemoryError while copying the model
            self._break(error, [])

    def _join(self, request: Request) -> None:
        """Set the earlier answer of a repeated request, or the rows that belong to the labels."""
        request.rows, request.remembered, request.ids, request.unknown = request.sent, [], [], []
        if request.name is not None and request.earlier is None:
            request.earlier = self.store.answered(request.name)
            self.counts.requests_repeated += request.earlier is not None
        if request.earlier is not None:
            if request.earlier[0] != request.digest:
                problem = f"a request named {request.name!r} came before, and held something else"
                raise DataError(problem, remedy="give each request a name of its own")
            request.rows = []
        elif request.are_labels:
            self._join_labels(request)

    def _join_labels(self, request: Request) -> None:
        encoder, name = self.trained.encoder, self._reader.id_name
        target, known = str(encoder.target), (name, encoder.target, encoder.weight, encoder.group)
        ids = [str(id) for id in self._reader.ids_of(request.sent, needed=True)]
        for number, label in enumerate(request.sent, 1):
            if label.get(target) is None:
                raise DataError("there is no label", REQUEST, number, target, f"send {target!r} with the id")
            if further := [key for key in label if key not in known]:
                column = further[0][:MAX_NAME_LENGTH]
                raise DataError("a label has an id, a target, and a weight", REQUEST, number, column, "leave it out")
        waiting, request.rows = self.store.waiting(ids), []
        for label, id in zip(request.sent, ids, strict=True):
            if id not in waiting:
                request.unknown.append(label[name])
                continue
            row = waiting[id]
            request.rows.append(row.row | {key: value for key, value in label.items() if key != name})
            request.ids.append(id)
            request.remembered += [] if row.remembered is None else [row.remembered]

    def _learn_together(self, requests: list[Request]) -> None:
        """Check requests, write them to the journal, learn them and answer."""
        try:
            if self.broken is not None:
                raise StoreError(self.broken)
            usable, converted = self._check(requests)
            events = self._write(usable)
        except Exception as error:
            for request in [request for request in requests if not request.answer.done()]:
                request.answer.set_exception(error)
            return
        try:
            self._learn(events, converted)
        except Exception as error:
            self._break(error, usable)
            return
        for request in usable:
            self.counts.labels_unknown += len(request.unknown)
            request.answer.set_result(request.outcome())

    def _check(self, requests: list[Request]) -> tuple[list[Request], Converted | None]:
        """The valid requests, and their converted rows; invalid requests are answered with an error."""
        try:
            for request in requests:
                self._join(request)
            rows, converted = self._reader.check(self.trained, [row for request in requests for row in request.rows])
        except Exception as error:  # check the requests one by one to find the invalid one
            if len(requests) > 1:
                return [usable for request in requests for usable in self._check([request])[0]], None
            self.counts.requests_refused += not isinstance(error, StoreError)
            requests[0].answer.set_exception(without_frames(error))
            return [], None
        checked = iter(rows)
        for request in requests:
            request.rows = [next(checked) for _ in request.rows]
        return requests, converted

    def _write(self, requests: list[Request]) -> list[Request]:
        """Write the rows of requests to the journal as events; returns the requests that have rows."""
        if not requests:
            return []
        with self.store.transaction():
            for request in requests:
                if request.rows:
                    request.sequence = self.store.add(request.rows, request.remembered, request.ids)
                if request.name is not None and request.earlier is None:
                    outcome, most = request.outcome(), max(self._keeping.remember, 1)
                    self.store.keep_answer(request.name, request.digest, outcome, request.sequence, most)
        return [request for request in requests if request.rows]

    def _learn(self, events: Sequence[Event | Request], converted: Converted | None = None) -> None:
        """Learn events together; ``converted`` has their rows if they were already converted by the check.

        Models with groups learn events one by one: all rows of a group in a batch are predicted before any is learned,
        and a restarted process does not know which events were learned together.
        """
        if not events:
            return
        trained = self.trained
        if len(events) > 1 and trained.encoder.group is not None:
            for event in events:
                self._learn([event])
            return
        rows = [row for event in events for row in event.rows]
        batch = self._reader.learned(trained, rows, converted=converted)
        remember(trained.model, [row for event in events for row in event.remembered])
        metrics, rises = trained.progress.progressive[0], self.n_rises
        before = metrics.weight, metrics.loss
        learn_batch(trained, batch)
        if self.n_rises > rises:
            log("the loss rose", count=self.n_rises, latest=drifts_of(trained)[-1])
        if (weight := metrics.weight - before[0]) > 0.0:
            mean, share = (metrics.loss - before[1]) / weight, 0.5 ** (len(rows) / HALF_LIFE)
            self.recent = mean if self.recent is None else share * self.recent + (1.0 - share) * mean
        self.counts.rows_learned, self.unsaved = self.counts.rows_learned + len(rows), self.unsaved + len(rows)
        self.sequence = events[-1].sequence

    def _break(self, error: Exception, requests: list[Request]) -> None:
        """Stop learning after an error in the middle of a batch; the model in the store is still valid."""
        self.broken = f"learning failed ({error!r}); the server has to be started again, and goes on from the journal"
        log("broken", problem=self.broken)
        target = self.trained.encoder.target
        with suppress(StoreError), self.store.transaction():  # not acknowledged, and would fail again
            self.store.remove(request.sequence for request in requests if request.sequence)
            for request in requests:  # rows of labels wait again
                rows = [{name: cell for name, cell in row.items() if name != target} for row in request.rows]
                waiting = [Waiting(id, row, None) for id, row in zip(request.ids, rows, strict=False)]
                self.store.keep_waiting(waiting, self._keeping.remember)
        for request in requests:
            request.answer.set_exception(StoreError(self.broken))

    def copied(self) -> Published:
        """A copy of the learned model; to be called in :meth:`between`."""
        trained = self.trained
        model, encoder = published(trained.model), copy.deepcopy(trained.encoder)
        return Published(model, encoder, trained.plan, trained.progress.rows, drifts_of(trained))

    def _publish(self) -> None:
        """Publish the learned model, and schedule the next publication so that they take PUBLISH_SHARE of the time."""
        start, latest = time.thread_time(), self.copied()
        row = {column.name: None for column in latest.encoder.columns}
        with suppress(TunefreeError):  # warm up the structures for single rows, so that no request waits for them
            batch, _ = self._reader.batch(latest, [row], BadRows(options=(), target=latest.encoder.target))
            latest.model.predict(batch.rows)
        self.published, self.n_published = latest, self.n_published + 1
        self._publish_at = time.monotonic() + (time.thread_time() - start) * (1.0 / PUBLISH_SHARE - 1.0)

    def settle(self) -> None:
        """Publish the learned model if it is newer; to be called in :meth:`between`."""
        if self._is_stale:
            self._publish()

    def save(self, reason: str) -> None:
        """Save a version; a failure loses no rows, as the journal has them."""
        start = time.monotonic()
        try:
            if self.broken is not None:  # the model is inconsistent
                raise StoreError(self.broken)
            version = self.store.save(self.trained, self.sequence, reason)  # in memory, only drops events
            if self.store.folder is not None:
                log("saved", version=version.number, rows=version.n_rows, seconds=time.monotonic() - start)
                self.counts.saves += 1
            self.unsaved, self.failure = 0, None
        except Exception as error:
            self.failure = str(error) if isinstance(error, TunefreeError) else repr(error)
            self._retry = time.monotonic() + RETRY_SECONDS
            self.counts.saves_failed += 1
            log("not saved", problem=self.failure)

    def replace(self, model: Trained, reason: str) -> int:
        """Continue with another model, without the rows learned since it was made; returns its version.

        To be called in :meth:`between`. Raises a ModelError if the model has another target or task.
        """
        before = self.trained
        offered, served = ((one.model.task, one.encoder.target) for one in (model, before))
        if offered != served:
            tasks = "the model is for {} of {!r}, and the one that is served for {} of {!r}".format(*offered, *served)
            raise ModelError(f"{tasks}; train it on the same target")
        continued(model)
        last = max((event.sequence for event in self.store.events_after(self.sequence)), default=self.sequence)
        number = self.store.save(model, last, reason).number
        self._begin(self.store.load(number), last)
        self._publish()
        self.broken = self.failure = None
        log("replaced", version=number, reason=reason)
        return number

    def _drop_old(self) -> None:
        """Drop rows whose labels did not arrive in time, and equally old names of requests."""
        if time.monotonic() < self._looked + TICK:
            return
        self._looked, seconds = time.monotonic(), self._keeping.label_days * DAY
        with self.store.transaction():
            dropped = self.store.drop_old(seconds)
        self.counts.waiting_dropped_for_age += dropped
