"""Learning of a model in operation: one thread, which writes down what is to be learned before it learns it.

Requests that come while others are learned are learned together. Each is checked, written to the journal in one
transaction with the others, learned, and only then answered. A model that is started again learns the events that
follow its version, in the same order, and is the same to the byte: a model depends on nothing but its rows. What
predicts is a copy, so predictions wait neither for learning nor for saving.
"""

from __future__ import annotations

import copy
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from tunefree.core import threads
from tunefree.core.errors import ModelError, TunefreeError
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained, continued
from tunefree.pool.published import published, remember
from tunefree.pool.single_row import LIKE
from tunefree.serving.journal import Event, Row, StoreError, Waiting
from tunefree.serving.requests import Counts, Due, Request, Work, checked, works_of
from tunefree.serving.rows import Reader, going_on, is_cut
from tunefree.serving.settings import Keeping
from tunefree.serving.store import Store
from tunefree.stream.batch import Batch, Converted, Refused
from tunefree.stream.notation import ColumnTypes
from tunefree.training.rises import drifts_of
from tunefree.training.training import learn_batch

TOGETHER = 2048  # rows that are learned together, at most, but for a request that has more
SHARE = 0.03  # of a processor that publishing may take
RETRY = 30.0  # seconds until a version that could not be saved is tried again
TICK = 60.0  # seconds between looks for rows that have waited too long
DAY = 86400.0
ENDED = "the server has ended; nothing of this request was learned"
HALF = 1000  # rows in which the weight of a loss halves
T = TypeVar("T")
Tell = Callable[..., None]  # of the name of an event, and what is to be said of it


class Published(NamedTuple):
    """A model as it was: nothing changes it."""

    model: Any
    encoder: Any
    plan: Plan
    rows: int  # learned
    drifts: list[dict[str, Any]]  # where the loss rose


class Learner:
    """The thread that learns, publishes and saves the store's current version.

    Attributes
    ----------
    published : Published
        What predicts.
    broken : str or None
        Why nothing can be learned any more.
    failure : str or None
        Why the last version could not be saved.
    sequence : int
        Of the last event that was learned.
    recent : float or None
        Mean loss of the latest rows before they were learned, whose weights halve in HALF rows; None before the first.
    rose_at : float or None
        When it was sure that the loss rose last, in seconds since 1970; None if it did not since the start.
    """

    def __init__(
        self,
        store: Store,
        model: Trained,
        reader: Reader,
        keeping: Keeping,
        column_types: ColumnTypes,
        counts: Counts,
        tell: Tell,
    ) -> None:
        self.store, self._reader, self._keeping, self._tell = store, reader, keeping, tell
        self._column_types, self._counts = column_types, counts
        self.broken: str | None = None
        self.failure: str | None = None
        self.rose_at: float | None = None
        self._queue: queue.SimpleQueue[Request | Due | None] = queue.SimpleQueue()
        self._behind: list[Request | Due | None] = []  # what was taken, and is for the next group
        self._looked = 0.0  # when rows that have waited too long were dropped last
        begun: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(model, begun), name="tunefree-learning", daemon=True)
        self._thread.start()
        begun.result()

    def _begin(self, model: Trained, sequence: int) -> None:
        """Go on with a model that has learned all events up to one."""
        self.trained = going_on(model, self._column_types)
        self.sequence, self.unsaved, self._retry = sequence, 0, 0.0
        self.recent: float | None = None

    def _replay(self) -> None:
        """Learn the events that follow the version."""
        events: list[Event] = []
        for event in self.store.unlearned():
            events.append(event)
            if sum(len(other.rows) for other in events) >= TOGETHER:
                self._learn(events)
                events = []
        self._learn(events)
        if self.unsaved:
            self._counts.replayed = self.unsaved
            self._tell("replayed", rows=self.unsaved)

    def submit(self, request: Request) -> Future[Row]:
        """Let rows be learned."""
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
        return self._queue.qsize() + len(self._behind)

    def close(self) -> None:
        """Learn what was submitted, save it, and end; what came too late is answered with an error."""
        self._queue.put(None)
        self._thread.join()
        while not self._queue.empty():
            late = self._queue.get()
            if late is not None:
                late.answer.set_exception(StoreError(ENDED))

    def _run(self, model: Trained, begun: Future[None]) -> None:
        threads.lower_priority()  # predictions come first where processors are few
        try:
            self._begin(model, self.store.versions[-1].sequence)
            self._replay()
            self._publish()
        except BaseException as error:
            begun.set_exception(error)
            return
        begun.set_result(None)
        while (group := self._taken()) is not None:
            for due in [item for item in group if isinstance(item, Due)]:
                due.do()
            requests = [request for request in group if isinstance(request, Request)]
            if requests:
                self._process(requests)
            if self.broken is None:
                self._keep_up()
        if self.unsaved and self.broken is None:
            self.save("the server ended")

    def _keep_up(self) -> None:
        """Publish, save and drop what is due."""
        try:
            if self._is_stale and time.monotonic() >= self._publish_at:
                self._publish()
            if self.unsaved >= self._keeping.save_every and time.monotonic() >= self._retry:
                self.save("rows were learned")
            self._drop_old()
        except StoreError as error:
            self._tell("not written", problem=str(error))
        except Exception as error:  # such as too little memory for a copy
            self._break(error, [])

    def _taken(self) -> list[Request | Due] | None:
        """What is to be done next; nothing when it is time to publish, None at the end."""
        group: list[Request | Due] = []
        n_rows, names = 0, set[str]()  # of requests, and ids of rows: none comes twice in a group
        while True:
            try:
                item = self._behind.pop(0) if self._behind else self._queue.get(not group, self._patience)
            except queue.Empty:
                return group
            if not isinstance(item, Request):
                if not group:
                    return None if item is None else [item]
                self._behind.insert(0, item)
                return group
            of_item = {f"row {row.get(self._reader.id_name)}" for row in item.rows} if item.are_labels else set()
            of_item |= set() if item.name is None else {f"request {item.name}"}
            if group and (n_rows + len(item.rows) > TOGETHER or names & of_item):
                self._behind.insert(0, item)
                return group
            group.append(item)
            n_rows, names = n_rows + len(item.rows), names | of_item

    @property
    def _is_stale(self) -> bool:
        """Whether rows were learned that predictions do not know."""
        return self.published.rows < self.trained.progress.rows

    @property
    def _patience(self) -> float:
        """Seconds until something is to be done even if nothing comes."""
        is_due = self._is_stale and self.broken is None
        return min(max(self._publish_at - time.monotonic(), 0.0), TICK) if is_due else TICK

    def _process(self, requests: list[Request]) -> None:
        """Check requests, write them down, learn them and answer."""
        journal, reader = self.store.journal, self._reader
        works: list[Work] = []
        try:
            if self.broken is not None:
                raise StoreError(self.broken)
            works = works_of(requests, self.trained, reader, journal, self._counts)
            taken = [work.request for work in works]
            self._behind[:0] = [other for other in requests if not other.answer.done() and other not in taken]
            works, converted = checked(works, self.trained, reader, self._counts)
            events = self._written(works)
        except Exception as error:
            self._tell("not written", problem=str(error) if isinstance(error, StoreError) else repr(error))
            for request in requests:
                if not request.answer.done() and request not in self._behind:
                    request.answer.set_exception(error)
            return
        try:
            self._learn(events, converted)
        except Exception as error:
            self._break(error, works)
            return
        for work in works:
            self._counts.unknown += len(work.unknown)
            work.request.answer.set_result(work.outcome())

    def _written(self, works: list[Work]) -> list[Event]:
        """The events of what is to be learned, once they are in the journal."""
        journal = self.store.journal
        with journal.transaction():
            for work in works:
                if work.rows:
                    work.sequence = journal.add(work.rows, work.remembered)
                    journal.forget_waiting(work.ids)
                if work.request.name is not None:
                    kept = work.request.name, work.request.digest, work.outcome(), work.sequence
                    journal.keep_answer(*kept, max(self._keeping.remember, 1))
        return [Event(work.sequence, work.rows, work.remembered) for work in works if work.rows]

    def _learn(self, events: list[Event], converted: Converted | None = None) -> None:
        """Learn events together, whose rows were converted to something as they were checked."""
        if not events:
            return
        if is_cut(self.trained, self._reader, events):
            for event in events:
                self._learn([event])
            return
        rows = [row for event in events for row in event.rows]
        batch = self._reader.learned(self.trained, rows, converted=converted)
        remember(self.trained.model, [row for event in events for row in event.remembered])
        self._follow(len(rows), batch)
        self._counts.learned, self.unsaved = self._counts.learned + len(rows), self.unsaved + len(rows)
        self.sequence = events[-1].sequence

    def _follow(self, n_rows: int, batch: Batch) -> None:
        """Learn a batch of so many rows, and take note of their loss."""
        metrics, rises = self.trained.progress.progressive[0], self.n_rises
        before = metrics.weight, metrics.loss
        learn_batch(self.trained, batch)
        if self.n_rises > rises:
            self.rose_at = time.time()
            self._tell("the loss rose", count=self.n_rises, latest=drifts_of(self.trained)[-1])
        weight = metrics.weight - before[0]
        if weight > 0.0:
            mean, share = (metrics.loss - before[1]) / weight, 0.5 ** (n_rows / HALF)
            self.recent = mean if self.recent is None else share * self.recent + (1.0 - share) * mean

    @property
    def n_rises(self) -> int:
        """How often the loss rose along the stream."""
        return 0 if self.trained.rises is None else self.trained.rises.count

    def _break(self, error: Exception, works: list[Work]) -> None:
        """Learning failed halfway: the model in memory is of no use any more, that of the store is whole."""
        self.broken = f"learning failed ({error!r}); the server has to be started again, and goes on from the journal"
        self._tell("broken", problem=self.broken)
        target = self.trained.encoder.target
        try:
            with self.store.journal.transaction():  # they are not acknowledged, and would fail again
                self.store.journal.remove(work.sequence for work in works if work.sequence)
                for work in works:  # whose rows wait for their labels again
                    rows = [{name: cell for name, cell in row.items() if name != target} for row in work.rows]
                    waiting = [Waiting(id, row, None) for id, row in zip(work.ids, rows, strict=False)]
                    self.store.journal.keep_waiting(waiting, self._keeping.remember)
        except StoreError as problem:
            self._tell("not written", problem=str(problem))
        for work in works:
            work.request.answer.set_exception(StoreError(self.broken))

    def _publish(self) -> None:
        """Let predictions know what was learned, and rest much longer than that takes."""
        start, trained = time.thread_time(), self.trained
        of_now = published(trained.model), copy.deepcopy(trained.encoder), trained.plan, trained.progress.rows
        latest = Published(*of_now, drifts_of(trained))
        self._warm_up(latest)
        self.published = latest
        self._publish_at = time.monotonic() + (time.thread_time() - start) * (1.0 / SHARE - 1.0)

    def _warm_up(self, latest: Published) -> None:
        """Let a model make what it makes for its first single rows, for which requests would wait otherwise."""
        row = {column.name: None for column in latest.encoder.columns}
        with suppress(TunefreeError):
            batch, _ = self._reader.batch(latest, [row], Refused(target=latest.encoder.target))
            for _ in range(LIKE + 1):
                latest.model.predict(batch.rows)

    def save(self, reason: str) -> None:
        """Save a version; if that fails nothing is lost, since the journal has the rows."""
        start = time.monotonic()
        if self.broken is not None:  # the model is half of one
            self.failure = self.broken
            return
        try:
            version = self.store.add(self.trained, self.sequence, reason)  # without a folder only the journal forgets
            if self.store.folder is not None:
                self._tell("saved", version=version.number, rows=version.n_rows, seconds=time.monotonic() - start)
                self._counts.saves += 1
            self.unsaved, self.failure = 0, None
        except TunefreeError as error:
            self.failure, self._retry = str(error), time.monotonic() + RETRY
            self._counts.failed_saves += 1
            self._tell("not saved", problem=str(error))

    def replace(self, model: Trained, reason: str) -> int:
        """Go on with another model, which leaves out the rows learned since; returns its version.

        To be called :meth:`between` learning.

        Raises
        ------
        ModelError
            If it has another target or task.
        """
        before = self.trained
        if (model.model.task, model.encoder.target) != (before.model.task, before.encoder.target):
            raise ModelError("the model has another target or task than the one that is served")
        continued(model)
        last = self.store.journal.last()
        number = self.store.add(model, last, reason).number
        self._begin(self.store.current(), last)
        self._publish()
        self.broken = None
        self._tell("replaced", version=number, reason=reason)
        return number

    def settle(self) -> None:
        """Publish what was learned; to be called :meth:`between` learning."""
        if self._is_stale:
            self._publish()

    def _drop_old(self) -> None:
        """Drop rows whose labels have not come in time, and names of requests as old."""
        if time.monotonic() < self._looked + TICK and self._looked:
            return
        self._looked, seconds = time.monotonic(), self._keeping.label_days * DAY
        try:
            with self.store.journal.transaction():
                dropped = self.store.journal.drop_before("waiting", seconds)
                self.store.journal.drop_before("requests", seconds)
                self.store.journal.state("clock", self.store.journal.now)
        except StoreError as error:
            self._tell("not written", problem=str(error))
            return
        self._counts.dropped_for_age += dropped
        if dropped:
            self._tell("dropped for age", rows=dropped)
