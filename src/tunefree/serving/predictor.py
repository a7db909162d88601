"""Predictions of a model in operation: one thread, which predicts together what has come while it was busy."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from tunefree.core.errors import TunefreeError
from tunefree.pool.published import remembered
from tunefree.serving.journal import Journal, Row, StoreError, Waiting
from tunefree.serving.learner import Published, Tell
from tunefree.serving.requests import Counts, begun, end
from tunefree.serving.rows import Reader, answers_of
from tunefree.serving.settings import Keeping
from tunefree.serving.sureness import add_sureness
from tunefree.stream.batch import Refused
from tunefree.workflows.prediction import PLAIN, OutputColumns

TOGETHER = 256  # rows that are predicted together; of a request that has more, others are predicted in between


@dataclass
class _Asked:
    """Rows to predict, and what was answered so far."""

    rows: list[Row]
    ids: list[str | None]
    layout: OutputColumns
    answer: Future[list[Row]] = field(default_factory=begun)
    answers: list[Row] = field(default_factory=list)


class Predictor:
    """The thread that predicts.

    Parameters
    ----------
    published : function
        To the model of now.
    reader : Reader
        Of this thread alone.
    journal : Journal
        Where rows with an id wait for their labels.
    keeping : Keeping
    counts : Counts
    odd : Refused
        Counts what is odd about rows.
    tell : function
    """

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
        self._queue: queue.SimpleQueue[_Asked | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="tunefree-predicting", daemon=True)
        self._thread.start()

    def submit(self, rows: list[Row], layout: OutputColumns = PLAIN) -> Future[list[Row]]:
        """Let rows be predicted, with intervals, quantiles and sets if the layout has them.

        Raises
        ------
        DataError
            If an id cannot be one, or comes twice.
        """
        asked = _Asked(rows, self._reader.ids_of(rows), layout)
        self._queue.put(asked)
        return asked.answer

    @property
    def n_queued(self) -> int:
        """Requests that wait to be predicted."""
        return self._queue.qsize()

    def close(self) -> None:
        """Predict what was submitted, and end."""
        end(self._thread, self._queue)

    def _run(self) -> None:
        is_over = False
        while not (is_over and self._queue.empty()):
            first = self._queue.get()
            group, n_rows = [] if first is None else [first], 0 if first is None else len(first.rows)
            is_over = is_over or first is None
            while n_rows < TOGETHER:
                try:
                    asked = self._queue.get_nowait()
                except queue.Empty:
                    break
                if asked is None:
                    is_over = True
                else:
                    group.append(asked)
                    n_rows += len(asked.rows) - len(asked.answers)
            if group:
                self._answer(group)

    def _answer(self, group: list[_Asked]) -> None:
        """Predict the next rows of some requests; one with a row that cannot be used is answered alone."""
        published = self._published()
        parts = [asked.rows[len(asked.answers) : len(asked.answers) + TOGETHER] for asked in group]
        try:
            answers = self._predicted(published, group, parts)
        except Exception as error:
            if len(group) == 1:
                group[0].answer.set_exception(error)
                if not isinstance(error, TunefreeError):
                    self._tell("not predicted", problem=repr(error))
                return
            for asked in group:
                self._answer([asked])
            return
        start = 0
        for asked, part in zip(group, parts, strict=True):
            asked.answers += answers[start : start + len(part)]
            start += len(part)
            if len(asked.answers) < len(asked.rows):
                self._queue.put(asked)
            else:
                asked.answer.set_result(asked.answers)

    def _predicted(self, published: Published, group: list[_Asked], parts: list[list[Row]]) -> list[Row]:
        rows = [row for part in parts for row in part]
        batch, unknown = self._reader.batch(published.encoder, rows, self._odd)
        self._counts.predicted += len(rows)
        predictions = published.model.predict(batch.rows)
        answers = answers_of(published.model, predictions, batch)
        layouts = [asked.layout for asked, part in zip(group, parts, strict=True) for _ in part]
        add_sureness(answers, published.model, batch, predictions, layouts)
        for answer, names in zip(answers, unknown, strict=True):
            if names:
                answer["unknown columns"] = names
        starts = [len(asked.answers) for asked in group]
        ids = [
            id for asked, part, start in zip(group, parts, starts, strict=True) for id in asked.ids[start:][: len(part)]
        ]
        if any(id is not None for id in ids):
            kept = zip(ids, rows, remembered(published.model, batch.rows), strict=True)
            target = published.encoder.target
            waiting = [
                Waiting(id, {name: value for name, value in row.items() if name != target}, of_row)
                for id, row, of_row in kept
                if id is not None
            ]
            are_kept = self._kept(waiting)
            for answer, id, row in zip(answers, ids, rows, strict=True):
                if id is not None:
                    answer["id"] = row[self._reader.id_name]
                    if not are_kept:
                        answer["waits for its label"] = False
        return answers

    def _kept(self, waiting: list[Waiting]) -> bool:
        """Let rows wait for their labels; whether they could be written down."""
        try:
            with self._journal.transaction():
                self._counts.dropped_for_size += self._journal.keep_waiting(waiting, self._keeping.remember)
        except StoreError as error:
            self._counts.not_kept += len(waiting)
            self._tell("not written", problem=str(error))
            return False
        return True
