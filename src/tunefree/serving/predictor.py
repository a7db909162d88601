"""Predictions of a model in operation, in the thread of those who ask.

An event loop predicts a few rows as soon as they have come: another thread would take longer to be reached than a row
to be predicted. Where there are more of them, another thread predicts them together, and those that come meanwhile are
the next. Rows with an id are answered once they are in the journal, where all that have come meanwhile are written in
one transaction.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import accumulate

from tunefree.core.errors import TunefreeError
from tunefree.pool.published import remembered
from tunefree.serving.journal import Journal, Row, StoreError, Waiting
from tunefree.serving.learner import Published, Tell
from tunefree.serving.requests import Counts, without_frames
from tunefree.serving.rows import Reader, add_sureness, answers_of
from tunefree.serving.settings import Keeping
from tunefree.stream.batch import Refused
from tunefree.workflows.output_columns import PLAIN, OutputColumns

TOGETHER = 256  # rows that are predicted together; of a request that has more, others are predicted in between
FEW = 8  # rows that are predicted faster one by one, as single rows have a way of their own


@dataclass
class _Asked:
    """Rows to predict, and what is answered so far."""

    rows: list[Row]
    ids: list[str | None]
    layout: OutputColumns
    answers: list[Row] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)  # rows that are to wait for their labels
    error: Exception | None = None

    @property
    def n_left(self) -> int:
        """Rows that are still to be predicted."""
        return 0 if self.error is not None else len(self.rows) - len(self.answers)

    def result(self) -> list[Row]:
        if self.error is not None:
            raise self.error
        return self.answers


class _Together:
    """Requests in an event loop, of which those that have come meanwhile are worked on together.

    One with rows that are left to be predicted is worked on again, after the others.
    """

    def __init__(self, work: Callable[[list[_Asked]], Awaitable[None]]) -> None:
        self._work, self.items = work, deque[tuple[_Asked, asyncio.Future[None]]]()
        self._task: asyncio.Task[None] | None = None

    async def on(self, asked: _Asked) -> None:
        """Work on a request until that is done."""
        done = asyncio.get_running_loop().create_future()
        self.items.append((asked, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        await done

    async def _run(self) -> None:
        while self.items:
            group, n_rows = [self.items.popleft()], 0
            while self.items and (n_rows := n_rows + group[-1][0].n_left) < TOGETHER:
                group.append(self.items.popleft())
            try:
                await self._work([asked for asked, _ in group])
            except Exception as error:  # such as one that no thread can be had
                for asked, _ in group:
                    asked.error = error
            for asked, done in group:
                if asked.n_left:
                    self.items.append((asked, done))
                elif not done.done():  # who asked may have gone
                    done.set_result(None)
            await asyncio.sleep(0)


class Predictor:
    """Predicts with the model that was published last; ``odd`` counts what is odd about rows."""

    def __init__(
        self,
        published: Callable[[], Published],
        reader: Reader,
        journal: Journal,
        keeping: Keeping,
        counts: Counts,
        odd: Refused,
        tell: Tell,
    ) -> None:
        self._published, self._reader, self._journal, self._keeping = published, reader, journal, keeping
        self._counts, self._odd, self._tell = counts, odd, tell
        self._lock = threading.Lock()  # of the reader, and of the model, which remembers what it predicted last
        self._unpredicted, self._unkept = _Together(self._predict_soon), _Together(self._keep_soon)

    def predict(self, rows: list[Row], layout: OutputColumns = PLAIN) -> list[Row]:
        """The answer to rows, with intervals, quantiles and sets if the layout has them.

        Raises
        ------
        DataError
            If an id cannot be one, or comes twice, or a row cannot be used.
        ModelError
            If the model has no such intervals, or too little evidence for them.
        """
        asked = _Asked(rows, self._reader.ids_of(rows), layout)
        while asked.n_left:
            self._predict([asked])
        self._keep([asked])
        return asked.result()

    async def predict_together(self, rows: list[Row], layout: OutputColumns = PLAIN) -> list[Row]:
        """The same in an event loop, together with other requests."""
        asked = _Asked(rows, self._reader.ids_of(rows), layout)
        await self._unpredicted.on(asked)
        if asked.waiting:
            await self._unkept.on(asked)
        return asked.result()

    async def _predict_soon(self, group: list[_Asked]) -> None:
        if sum(asked.n_left for asked in group) <= FEW:
            for asked in group:
                self._predict([asked])
        else:
            await asyncio.to_thread(self._predict, group)

    async def _keep_soon(self, group: list[_Asked]) -> None:
        await asyncio.to_thread(self._keep, group)

    @property
    def n_queued(self) -> int:
        """Requests that wait to be predicted."""
        return len(self._unpredicted.items)

    def oddities(self) -> list[Row]:
        """What was odd about rows."""
        with self._lock:
            odd = Refused(target=self._odd.target, tally=self._odd.tally.copy(), comparison=self._odd.comparison)
            odd.compare()
        return [
            {"column": oddity.column, "problem": oddity.problem, "rows": oddity.rows} for oddity in odd.tally.oddities()
        ]

    def _predict(self, group: list[_Asked]) -> None:
        """Predict the next rows of some requests; one with a row that cannot be used does not hit the others."""
        parts = [asked.rows[len(asked.answers) :][:TOGETHER] for asked in group]
        try:
            with self._lock:
                self._answer(self._published(), group, parts)
        except Exception as error:
            if len(group) > 1:
                for asked in group:
                    self._predict([asked])
                return
            group[0].error = without_frames(error)
            if not isinstance(error, TunefreeError):
                self._tell("not predicted", problem=repr(error))

    def _answer(self, published: Published, group: list[_Asked], parts: list[list[Row]]) -> None:
        rows = [row for part in parts for row in part]
        batch, unknown = self._reader.batch(published, rows, self._odd)
        predictions = published.model.predict(batch.rows)
        answers = answers_of(published.model, predictions, batch)
        stops = list(accumulate(map(len, parts)))
        slices = list(map(slice, [0, *stops], stops))
        for asked, of in zip(group, slices, strict=True):
            if asked.layout != PLAIN:
                add_sureness(answers, published.model, batch, predictions, of, asked.layout)
        for answer, names in zip(answers, unknown, strict=True):
            if names:
                answer["unknown_columns"] = names
        have_ids = any(id is not None for asked in group for id in asked.ids)
        kept = remembered(published.model, batch.rows) if have_ids else [None] * len(rows)
        self._counts.predicted += len(rows)
        target = published.encoder.target
        for asked, of in zip(group, slices, strict=True):
            ids = asked.ids[len(asked.answers) :]
            asked.answers += answers[of]
            for id, row, answer, of_row in zip(ids, rows[of], answers[of], kept[of], strict=False):
                if id is not None:
                    answer["id"] = row[self._reader.id_name]
                    without_target = {name: value for name, value in row.items() if name != target}
                    asked.waiting.append(Waiting(id, without_target, of_row))

    def _keep(self, group: list[_Asked]) -> None:
        """Let rows wait for their labels, or tell those who asked that they could not be written down."""
        waiting = [row for asked in group if asked.error is None for row in asked.waiting]
        if not waiting:
            return
        try:
            with self._journal.transaction():
                self._counts.dropped_for_size += self._journal.keep_waiting(waiting, self._keeping.remember)
        except StoreError as error:
            self._counts.not_kept += len(waiting)
            self._tell("not written", problem=str(error))
            for asked in group:
                for answer in asked.answers:
                    if "id" in answer:
                        answer["waits_for_label"] = False
