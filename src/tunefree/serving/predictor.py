"""Predictions of a model in operation, in the thread of those who ask.

An event loop predicts a few rows as soon as they have come: another thread would take longer to be reached than a row
to be predicted. More rows are predicted in another thread, part by part, and other requests in between. Rows with an id
are answered once they are in the journal, where all that have come meanwhile are written in one transaction.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from tunefree.core.errors import TunefreeError
from tunefree.losses.objectives import chosen
from tunefree.pool.waiting import remembered
from tunefree.serving.events import Counts, tell
from tunefree.serving.journal import Journal, Row, StoreError, Waiting
from tunefree.serving.learner import Published, without_frames
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
    error: Exception | None = None  # after which no more rows are predicted

    @property
    def n_left(self) -> int:
        """Rows that are still to be predicted."""
        return 0 if self.error is not None else len(self.rows) - len(self.answers)

    def result(self) -> list[Row]:
        """The answers; raises the error if there is one."""
        if self.error is not None:
            raise self.error
        return self.answers


class Predictor:
    """Predicts with the model published last; ``odd`` counts oddities of rows, ``n_queued`` requests."""

    def __init__(
        self,
        published: Callable[[], Published],
        reader: Reader,
        journal: Journal,
        keeping: Keeping,
        counts: Counts,
        odd: Refused,
    ) -> None:
        self._published, self._reader, self._journal, self._keeping = published, reader, journal, keeping
        self._counts, self._odd, self.n_queued = counts, odd, 0
        self._lock = threading.Lock()  # of the reader, and of the model, which remembers what it predicted last

    def asked(self, rows: list[Row], layout: OutputColumns = PLAIN) -> Asked:
        """Rows to predict; raises a DataError if an id cannot be one, or comes twice."""
        return Asked(rows, self._reader.ids_of(rows), layout)

    def predict(self, group: list[Asked]) -> None:
        """Predict the next rows of some requests; one with a row that cannot be used does not hit the others."""
        parts = [asked.rows[len(asked.answers) :][:TOGETHER] for asked in group]
        try:
            with self._lock:
                self._predict(group, parts, self._published())
        except Exception as error:
            for asked in group if len(group) > 1 else ():
                self.predict([asked])
            if len(group) == 1:
                group[0].error = without_frames(error) if isinstance(error, TunefreeError) else error

    def _predict(self, group: list[Asked], parts: list[list[Row]], published: Published) -> None:
        rows = [row for part in parts for row in part]
        batch, unknown = self._reader.batch(published, rows, self._odd)
        predictions = published.model.predict(batch.rows)
        answers = _answers(published.model, predictions, batch)
        stops = list(accumulate(map(len, parts)))
        slices = list(map(slice, [0, *stops], stops))
        for asked, place in zip(group, slices, strict=True):
            if asked.layout != PLAIN:
                asked.layout.check(published.model)
                predicted = Predicted(batch.part(place.start, place.stop), predictions[place])
                for name, level, values in sureness(published.model, predicted, asked.layout):
                    for answer, value in zip(answers[place], map(_finite, values), strict=True):
                        answer.setdefault(name, {})[f"{level:g}"] = value
        for answer, names in zip(answers, unknown, strict=True):
            if names:
                answer["unknown_columns"] = names
        have_ids = any(id is not None for asked in group for id in asked.ids)
        kept = remembered(published.model, batch.rows) if have_ids else [None] * len(rows)
        for asked, place in zip(group, slices, strict=True):
            ids = asked.ids[len(asked.answers) :]
            for id, row, answer, remembered_row in zip(ids, rows[place], answers[place], kept[place], strict=False):
                if id is not None:
                    answer["id"] = row[self._reader.id_name]
                    without_target = {name: cell for name, cell in row.items() if name != published.encoder.target}
                    asked.waiting.append(Waiting(id, without_target, remembered_row))
            asked.answers += answers[place]
        self._counts.predicted += len(rows)

    def keep(self, group: list[Asked]) -> None:
        """Let rows wait for their labels, or tell those who asked that they could not be written down."""
        waiting = [row for asked in group for row in asked.waiting]
        if not waiting:
            return
        try:
            with self._journal.transaction():
                self._counts.dropped_for_size += self._journal.keep_waiting(waiting, self._keeping.remember)
        except StoreError as error:
            self._counts.not_kept += len(waiting)
            tell("not written", problem=str(error))
            for answer in [answer for asked in group for answer in asked.answers if "id" in answer]:
                answer["waits_for_label"] = False

    def oddities(self) -> list[Row]:
        """Oddities of rows."""
        with self._lock:
            odd = Refused(target=self._odd.target, tally=self._odd.tally.copy(), comparison=self._odd.comparison)
            odd.compare()
        return [{"column": of.column, "problem": of.problem, "rows": of.rows} for of in odd.tally.oddities]


class Together:
    """Predictions of the requests in an event loop: those that have come meanwhile are predicted together."""

    def __init__(self, predictor: Predictor) -> None:
        self._predictor, self._unpredicted, self._unkept = predictor, list[Asked](), list[Asked]()
        self._predicting, self._keeping = asyncio.Lock(), asyncio.Lock()

    async def predict(self, rows: list[Row], layout: OutputColumns = PLAIN) -> list[Row]:
        """The answers to rows; raises the errors of :class:`Predictor`."""
        asked = self._predictor.asked(rows, layout)
        self._unpredicted.append(asked)
        self._predictor.n_queued += 1
        try:
            while asked.n_left:
                async with self._predicting:
                    await asyncio.sleep(0)  # others that have come are read first
                    if asked.n_left:
                        await self._predict_next()
        finally:
            self._predictor.n_queued -= 1
            self._unpredicted = [other for other in self._unpredicted if other is not asked]
        if asked.waiting and asked.error is None:
            self._unkept.append(asked)
            async with self._keeping:
                if asked in self._unkept:  # none of those that came before has taken it along
                    group, self._unkept = self._unkept, []
                    await asyncio.to_thread(self._predictor.keep, group)
        return asked.result()

    async def _predict_next(self) -> None:
        """Predict rows of the requests that have waited longest, of each the next ones; those with more wait again."""
        group, n_rows = list[Asked](), 0
        for asked in self._unpredicted:
            if not group or n_rows + asked.n_left <= TOGETHER:
                group.append(asked)
                n_rows += min(asked.n_left, TOGETHER)
        if n_rows > FEW:
            await asyncio.to_thread(self._predictor.predict, group)
        else:
            for asked in group:
                self._predictor.predict([asked])
        others = [asked for asked in self._unpredicted if asked not in group]
        self._unpredicted = [*others, *(asked for asked in group if asked.n_left)]


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
