"""Predictions of a model in operation, in the thread of the request.

An event loop predicts a few rows as soon as they have come: another thread would take longer to be reached than a row
to be predicted. More rows are predicted in another thread, part by part, and other requests in between. Rows with an id
are answered once they are in the journal, where all that have come meanwhile are written in one transaction.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tunefree.core.errors import TunefreeError
from tunefree.losses.objectives import chosen
from tunefree.pool.waiting import remembered
from tunefree.serving.events import Counts, tell
from tunefree.serving.journal import Row, StoreError, Waiting
from tunefree.serving.learner import Learner, Published, without_frames
from tunefree.serving.rows import Reader
from tunefree.serving.settings import Keeping
from tunefree.stream.batch import Batch, Refused
from tunefree.workflows.output_columns import PLAIN, OutputColumns
from tunefree.workflows.prediction import Predicted, numbers_of, sureness

TOGETHER = 256  # rows that are predicted together; of a request that has more, others are predicted in between
FEW = 8  # rows that are predicted before another thread could be reached


@dataclass(eq=False)
class Asked:
    """Rows to predict, and their answers so far."""

    rows: list[Row]
    ids: list[str | None]
    layout: OutputColumns
    answers: list[Row] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)  # rows that are to wait for their labels

    @property
    def n_left(self) -> int:
        """Rows that are still to be predicted."""
        return len(self.rows) - len(self.answers)


class Predictor:
    """Predicts with the model published last; ``odd`` counts oddities of rows, ``n_queued`` requests."""

    def __init__(self, learner: Learner, reader: Reader, keeping: Keeping, counts: Counts) -> None:
        self._learner, self._reader, self._keeping, self._counts = learner, reader, keeping, counts
        self.odd, self.n_queued = Refused(target=learner.trained.encoder.target), 0
        self._lock = threading.Lock()  # of the reader, and of the model, which remembers what it predicted last
        self._turn, self._writing = asyncio.Lock(), asyncio.Lock()  # of requests in an event loop
        self._unkept = list[Asked]()

    def predict(self, rows: list[Row], layout: OutputColumns = PLAIN) -> list[Row]:
        """The answers to rows; raises a DataError if an id cannot be one, comes twice, or a row cannot be used."""
        asked = Asked(rows, self._reader.ids_of(rows), layout)
        while asked.n_left:
            self._predict_next(asked)
        self._keep([asked])
        return asked.answers

    async def answer(self, rows: list[Row], layout: OutputColumns = PLAIN) -> list[Row]:
        """The answers to rows, as :meth:`predict` gives them, to requests in an event loop."""
        asked = Asked(rows, self._reader.ids_of(rows), layout)
        self.n_queued += 1
        try:
            while asked.n_left:
                async with self._turn:
                    if asked.n_left > FEW:
                        await asyncio.to_thread(self._predict_next, asked)
                    else:
                        self._predict_next(asked)
        finally:
            self.n_queued -= 1
        if asked.waiting:
            self._unkept.append(asked)
            async with self._writing:
                if asked in self._unkept:  # none of those that came before has taken it along
                    group, self._unkept = self._unkept, []
                    await asyncio.to_thread(self._keep, group)
        return asked.answers

    def _predict_next(self, asked: Asked) -> None:
        """Predict the next rows of a request."""
        try:
            with self._lock:
                self._predict(asked, self._learner.published)
        except TunefreeError as error:
            raise without_frames(error) from None

    def _predict(self, asked: Asked, published: Published) -> None:
        start, model = len(asked.answers), published.model
        rows, ids = asked.rows[start : start + TOGETHER], asked.ids[start : start + TOGETHER]
        batch, unknown = self._reader.batch(published, rows, self.odd)
        predictions = model.predict(batch.rows)
        answers = _answers(model, predictions, batch)
        if asked.layout != PLAIN:
            asked.layout.check(model)
            for name, level, values in sureness(model, Predicted(batch, predictions), asked.layout):
                for answer, value in zip(answers, map(_finite, values), strict=True):
                    answer.setdefault(name, {})[f"{level:g}"] = value
        for answer, names in zip(answers, unknown, strict=True):
            if names:
                answer["unknown_columns"] = names
        if any(id is not None for id in ids):
            for id, row, answer, kept in zip(ids, rows, answers, remembered(model, batch.rows), strict=True):
                if id is not None:
                    answer["id"] = row[self._reader.id_name]
                    without_target = {name: cell for name, cell in row.items() if name != published.encoder.target}
                    asked.waiting.append(Waiting(id, without_target, kept))
        asked.answers += answers
        self._counts.rows_predicted += len(rows)

    def _keep(self, group: list[Asked]) -> None:
        """Let rows wait for their labels, or put an error into answers to rows that could not be written."""
        waiting = [row for asked in group for row in asked.waiting]
        if not waiting:
            return
        try:
            with (journal := self._learner.store.journal).transaction():
                self._counts.waiting_dropped_for_size += journal.keep_waiting(waiting, self._keeping.remember)
        except StoreError as error:
            self._counts.waiting_not_kept += len(waiting)
            tell("not written", problem=str(error))
            for answer in [answer for asked in group for answer in asked.answers if "id" in answer]:
                answer["waits_for_label"] = False

    def oddities(self) -> list[Row]:
        """Oddities of rows."""
        with self._lock:
            odd = Refused(target=self.odd.target, tally=self.odd.tally.copy(), comparison=self.odd.comparison)
            odd.compare()
        return [{"column": of.column, "problem": of.problem, "rows": of.rows} for of in odd.tally.oddities]


def _answers(model: Any, predictions: np.ndarray, batch: Batch) -> list[Row]:
    """The prediction of each row, with the probabilities of classes."""
    if model.task == "regression":
        return [{"prediction": value} for value in numbers_of(model, predictions, batch).tolist()]
    values = model.probabilities(predictions).tolist()
    classes = [label if isinstance(label, str | bool | int | float) else str(label) for label in model.classes]
    names = [label if isinstance(label, str) else json.dumps(label) for label in classes]
    return [
        {"prediction": classes[k], "probabilities": dict(zip(names, probabilities, strict=True))}
        for k, probabilities in zip(chosen(predictions).tolist(), values, strict=True)
    ]


def _finite(value: Any) -> Any:
    """A number as JSON has it, or several; an infinite end of an interval is null."""
    if isinstance(value, np.ndarray):
        return list(map(_finite, value.tolist()))
    return None if isinstance(value, float) and not math.isfinite(value) else value
