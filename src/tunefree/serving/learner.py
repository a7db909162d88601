"""Learning of a model in operation: one thread, which writes rows to the journal before it learns them.

Requests that come while others are learned are learned together. Each is checked, written to the journal in one
transaction with the others, learned, and only then answered. A model that is started again learns the events that
follow its version, in the same order, and is the same to the byte: a model depends on nothing but its rows. What
predicts is a copy, so predictions wait neither for learning nor for saving.
"""

from __future__ import annotations

import copy
import hashlib
import json
import queue
import threading
import time
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
from tunefree.serving.events import Counts, tell
from tunefree.serving.rows import REQUEST, Reader
from tunefree.serving.settings import Keeping
from tunefree.serving.store import Event, Row, Store, StoreError, Waiting
from tunefree.stream.batch import Converted, Refused
from tunefree.training.rises import drifts_of
from tunefree.training.training import learn_batch

TOGETHER = 2048  # rows that are learned together, at most, but for a request that has more
SHARE = 0.03  # of a processor that publishing may take
RETRY = 30.0  # seconds until a version that could not be saved is tried again
TICK = 60.0  # seconds between looks for rows that have waited too long
DAY = 86400.0
HALF = 1000  # rows in which the weight of a loss halves
T = TypeVar("T")


class Published(NamedTuple):
    """A model as it was: nothing changes it."""

    model: Any
    encoder: Any
    plan: Plan
    rows: int  # learned
    drifts: list[dict[str, Any]]  # where the loss rose


def without_frames(error: Exception) -> Exception:
    """An error of this package without the functions that raised it.

    Their variables are models, and the error with its future, so that all would stay until garbage is looked for.
    """
    if isinstance(error, TunefreeError):
        error.__traceback__ = error.__context__ = None
    return error


class Due(NamedTuple):
    """A task of a thread: a function, and the future of its value."""

    function: Callable[[], Any]
    answer: Future[Any]


@dataclass(eq=False)
class Request:
    """Rows to learn, or labels of rows that were predicted."""

    sent: list[Row]
    are_labels: bool = False
    name: str | None = None  # under which it is learned once, however often it is sent
    answer: Future[Row] = field(default_factory=Future)
    # What is to be learned of it.
    rows: list[Row] = field(default_factory=list)
    remembered: list[Remembered] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)  # of rows that no longer wait then
    unknown: list[Any] = field(default_factory=list)  # ids of labels whose row does not wait
    earlier: tuple[str, Row] | None = None  # digest and answer of one of this name that came before
    sequence: int = 0  # of its event; 0 for one without rows

    @cached_property
    def digest(self) -> str:
        """The digest of the request."""
        return hashlib.sha256(json.dumps([self.are_labels, self.sent], sort_keys=True).encode()).hexdigest()

    def names(self, id_name: str) -> set[str]:
        """The name of the request, and the ids of its labels."""
        ids = {f"row {row.get(id_name)}" for row in self.sent if self.are_labels}
        return ids if self.name is None else {f"request {self.name}", *ids}

    def outcome(self) -> Row:
        """The answer once the rows are learned."""
        if self.earlier is not None:
            return self.earlier[1] | {"repeated": True}
        learned: Row = {"learned": len(self.rows)}
        return learned | {"unknown": self.unknown} if self.are_labels else learned


class Learner:
    """The thread that learns, publishes and saves the store's current version."""

    published: Published  # what predicts
    sequence: int  # of the last event that was learned
    recent: float | None  # mean loss of the latest rows before they were learned, whose weights halve in HALF rows

    def __init__(self, store: Store, model: Trained, reader: Reader, keeping: Keeping, counts: Counts) -> None:
        self.store, self._reader, self._keeping = store, reader, keeping
        self._counts = counts
        self.broken: str | None = None  # why nothing can be learned any more
        self.failure: str | None = None  # why the last version could not be saved
        self.n_published = 0
        self._queue: queue.SimpleQueue[Request | Due] = queue.SimpleQueue()
        self._next: Request | Due | None = None  # what was taken of the queue, and does not fit those before
        self._is_over = False
        self._looked = 0.0  # when rows that have waited too long were dropped last
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(model, started), name="tunefree-learning", daemon=True)
        self._thread.start()
        started.result()

    def submit(self, request: Request) -> Future[Row]:
        """Submit rows to be learned, also if the client goes away."""
        request.answer.set_running_or_notify_cancel()
        self._queue.put(request)
        return request.answer

    def between(self, function: Callable[[], T]) -> T:
        """The value of a function that runs while nothing is learned."""
        answer: Future[T] = Future()
        self._queue.put(Due(function, answer))
        return answer.result()

    @property
    def n_queued(self) -> int:
        """Requests that wait to be learned."""
        return self._queue.qsize() + (self._next is not None)

    @property
    def n_rises(self) -> int:
        """The number of rises of the loss along the stream."""
        return 0 if self.trained.rises is None else self.trained.rises.count

    def close(self) -> None:
        """Learn the submitted rows, save, and end; later requests are answered with an error."""
        self.between(lambda: setattr(self, "_is_over", True))
        self._thread.join()
        while not self._queue.empty():
            late = StoreError("the server has ended; nothing of this request was learned")
            self._queue.get().answer.set_exception(late)

    def _run(self, model: Trained, started: Future[None]) -> None:
        threads.lower_priority()  # predictions come first where processors are few
        try:
            self._begin(model, self.store.versions[-1].sequence)
            self._replay()
            self._publish()
        except BaseException as error:
            started.set_exception(error)
            return
        started.set_result(None)
        while not self._is_over:
            requests, task = self._taken()
            if requests:
                self._learn_together(requests)
            if self.broken is None:
                self._keep_up()
            if task is not None:
                try:
                    task.answer.set_result(task.function())
                except Exception as error:
                    task.answer.set_exception(without_frames(error))
        if self.unsaved and self.broken is None:
            self.save("the server ended")

    def _taken(self) -> tuple[list[Request], Due | None]:
        """Requests to learn together, in which no name and no id comes twice, and a task that follows them."""
        requests, names, n_rows, patience = list[Request](), set[str](), 0, TICK
        if self._is_stale and self.broken is None:
            patience = min(max(self._publish_at - time.monotonic(), 0.0), TICK)
        while True:
            try:
                task = self._next or self._queue.get(timeout=patience)
            except queue.Empty:
                return requests, None
            self._next, patience = None, 0.0
            if not isinstance(task, Request):
                return requests, task
            further = task.names(self._reader.id_name)
            if requests and (n_rows + len(task.sent) > TOGETHER or names & further):
                self._next = task
                return requests, None
            requests.append(task)
            names |= further
            n_rows += len(task.sent)

    def _begin(self, model: Trained, sequence: int) -> None:
        """Go on with a model that has learned all events up to one."""
        self.trained = continued(model)
        self.sequence, self.unsaved, self._retry, self.recent = sequence, 0, 0.0, None

    def _replay(self) -> None:
        """Learn the events that follow the version."""
        events: list[Event] = []
        for event in self.store.events_after(self.sequence):
            events.append(event)
            if sum(len(other.rows) for other in events) >= TOGETHER:
                self._learn(events)
                events = []
        self._learn(events)
        if self.unsaved:
            self._counts.rows_replayed = self.unsaved
            tell("replayed", rows=self.unsaved)

    @property
    def _is_stale(self) -> bool:
        """Whether rows were learned that predictions do not know."""
        return self.published.rows < self.trained.progress.rows

    def _keep_up(self) -> None:
        """Publish a version, save the model and drop old entries, as far as they are due."""
        try:
            if self._is_stale and time.monotonic() >= self._publish_at:
                self._publish()
            if self.unsaved >= self._keeping.save_every and time.monotonic() >= self._retry:
                self.save("rows were learned")
            self._drop_old()
        except StoreError as error:
            tell("not written", problem=str(error))
        except Exception as error:  # such as too little memory for a copy
            self._break(error, [])

    def _refuse(self, request: Request, error: Exception) -> None:
        if isinstance(error, StoreError):
            tell("not written", problem=str(error))
        else:
            self._counts.requests_refused += 1
        request.answer.set_exception(without_frames(error))

    def _join(self, request: Request) -> None:
        """Find the answer to a request that was learned before, or the waiting rows of its labels."""
        request.rows, request.remembered, request.ids, request.unknown = request.sent, [], [], []
        if request.name is not None and request.earlier is None:
            request.earlier = self.store.answered(request.name)
            self._counts.requests_repeated += request.earlier is not None
        if request.earlier is not None:
            if request.earlier[0] != request.digest:
                problem = f"a request named {request.name!r} came before, and held something else"
                raise DataError(problem, remedy="give each request a name of its own")
            request.rows = []
        elif request.are_labels:
            self._join_labels(request)

    def _join_labels(self, request: Request) -> None:
        target, name = str(self.trained.encoder.target), self._reader.id_name
        ids = [str(id) for id in self._reader.ids_of(request.sent, needed=True)]
        for place, label in enumerate(request.sent, 1):
            if label.get(target) is None:
                raise DataError("there is no label", REQUEST, place, target, f"send {target!r} with the id")
            if further := [key for key in label if key not in (name, target)]:
                raise DataError("a label has an id and a target", REQUEST, place, further[0], "leave it out")
        waiting, request.rows = self.store.waiting(ids), []
        for label, id in zip(request.sent, ids, strict=True):
            if id not in waiting:
                request.unknown.append(label[name])
                continue
            row = waiting[id]
            request.rows.append(row.row | {target: label[target]})
            request.ids.append(id)
            request.remembered += [] if row.remembered is None else [row.remembered]

    def _learn_together(self, requests: list[Request]) -> None:
        """Check requests, write them down, learn them and answer."""
        try:
            if self.broken is not None:
                raise StoreError(self.broken)
            usable, converted = self._checked(requests)
            events = self._written(usable)
        except Exception as error:
            tell("not written", problem=str(error) if isinstance(error, StoreError) else repr(error))
            for request in [request for request in requests if not request.answer.done()]:
                request.answer.set_exception(error)
            return
        try:
            self._learn(events, converted)
        except Exception as error:
            self._break(error, usable)
            return
        for request in usable:
            self._counts.labels_unknown += len(request.unknown)
            request.answer.set_result(request.outcome())

    def _checked(self, requests: list[Request]) -> tuple[list[Request], Converted | None]:
        """The requests that can be learned, and the batch of their rows; others are answered."""
        try:
            for request in requests:
                self._join(request)
            rows, converted = self._reader.check(self.trained, [row for request in requests for row in request.rows])
        except Exception as error:  # whatever it is, it is of one request
            if len(requests) > 1:
                return [usable for request in requests for usable in self._checked([request])[0]], None
            self._refuse(requests[0], error)
            return [], None
        checked = iter(rows)
        for request in requests:
            request.rows = [next(checked) for _ in request.rows]
        return requests, converted

    def _written(self, requests: list[Request]) -> list[Request]:
        """The requests that have rows to learn, after these are written to the journal as events."""
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
        """Learn events together, whose rows were converted to something as they were checked.

        They are learned one by one if the model would depend on which of them came together, which a process that is
        started again does not know: a run of rows of one group is predicted before any is learned.
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
            tell("the loss rose", count=self.n_rises, latest=drifts_of(trained)[-1])
        if (weight := metrics.weight - before[0]) > 0.0:
            mean, share = (metrics.loss - before[1]) / weight, 0.5 ** (len(rows) / HALF)
            self.recent = mean if self.recent is None else share * self.recent + (1.0 - share) * mean
        self._counts.rows_learned, self.unsaved = self._counts.rows_learned + len(rows), self.unsaved + len(rows)
        self.sequence = events[-1].sequence

    def _break(self, error: Exception, requests: list[Request]) -> None:
        """Learning failed halfway: the model in memory is unusable, the model in the store is complete."""
        self.broken = f"learning failed ({error!r}); the server has to be started again, and goes on from the journal"
        tell("broken", problem=self.broken)
        target = self.trained.encoder.target
        try:
            with self.store.transaction():  # they are not acknowledged, and would fail again
                self.store.remove(request.sequence for request in requests if request.sequence)
                for request in requests:  # whose rows wait for their labels again
                    rows = [{name: cell for name, cell in row.items() if name != target} for row in request.rows]
                    waiting = [Waiting(id, row, None) for id, row in zip(request.ids, rows, strict=False)]
                    self.store.keep_waiting(waiting, self._keeping.remember)
        except StoreError as problem:
            tell("not written", problem=str(problem))
        for request in requests:
            request.answer.set_exception(StoreError(self.broken))

    def copied(self) -> Published:
        """The learned model as it is now; to be called :meth:`between` learning."""
        trained = self.trained
        model, encoder = published(trained.model), copy.deepcopy(trained.encoder)
        return Published(model, encoder, trained.plan, trained.progress.rows, drifts_of(trained))

    def _publish(self) -> None:
        """Publish the learned model for predictions, and pause much longer than that takes."""
        start, latest = time.thread_time(), self.copied()
        row = {column.name: None for column in latest.encoder.columns}
        with suppress(TunefreeError):  # what a model makes for its first single rows, requests need not wait for
            batch, _ = self._reader.batch(latest, [row], Refused(target=latest.encoder.target))
            latest.model.predict(batch.rows)
        self.published, self.n_published = latest, self.n_published + 1
        self._publish_at = time.monotonic() + (time.thread_time() - start) * (1.0 / SHARE - 1.0)

    def settle(self) -> None:
        """Publish the learned model; to be called :meth:`between` learning."""
        if self._is_stale:
            self._publish()

    def save(self, reason: str) -> None:
        """Save a version; if that fails nothing is lost, since the journal has the rows."""
        start = time.monotonic()
        if self.broken is not None:  # the model is half of one
            self.failure = self.broken
            return
        try:
            version = self.store.save(self.trained, self.sequence, reason)  # without a folder only the journal forgets
            if self.store.folder is not None:
                tell("saved", version=version.number, rows=version.n_rows, seconds=time.monotonic() - start)
                self._counts.saves += 1
            self.unsaved, self.failure = 0, None
        except TunefreeError as error:
            self.failure, self._retry = str(error), time.monotonic() + RETRY
            self._counts.saves_failed += 1
            tell("not saved", problem=str(error))

    def replace(self, model: Trained, reason: str) -> int:
        """Go on with another model, without the rows learned since; returns its version.

        To be called :meth:`between` learning. Raises a ModelError if the model has another target or task.
        """
        before = self.trained
        offered, served = ((one.model.task, one.encoder.target) for one in (model, before))
        if offered != served:
            tasks = "the model is for {} of {!r}, and the one that is served for {} of {!r}".format(*offered, *served)
            raise ModelError(f"{tasks}; train it on the same target")
        continued(model)
        last = max((event.sequence for event in self.store.events_after(self.sequence)), default=self.sequence)
        number = self.store.save(model, last, reason).number
        self._begin(self.store.current(), last)
        self._publish()
        self.broken = None
        tell("replaced", version=number, reason=reason)
        return number

    def _drop_old(self) -> None:
        """Drop rows whose labels have not come in time, and names of requests as old."""
        if time.monotonic() < self._looked + TICK and self._looked:
            return
        self._looked, seconds = time.monotonic(), self._keeping.label_days * DAY
        with self.store.transaction():
            dropped = self.store.drop_old(seconds)
        self._counts.waiting_dropped_for_age += dropped
        if dropped:
            tell("dropped for age", rows=dropped)
