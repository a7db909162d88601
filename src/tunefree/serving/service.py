"""A model that predicts and learns, and is saved while it learns; :mod:`tunefree.serving.http` serves it over HTTP.

Rows with an id are answered after they are written to the journal, in one transaction with all other rows that arrived
in the meantime.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tunefree.core import threads
from tunefree.core.errors import ModelError, TunefreeError
from tunefree.explanation.decomposition import Decomposition
from tunefree.explanation.members import Reference
from tunefree.losses.objectives import chosen
from tunefree.model_files.trained import Trained, continued
from tunefree.pool.waiting import remembered
from tunefree.serving.learner import Learner, Published, Request, without_frames
from tunefree.serving.rows import Reader, check_rows
from tunefree.serving.settings import Admission, Keeping
from tunefree.serving.store import Row, Store, StoreError, Waiting
from tunefree.stream.batch import BadRows, Batch
from tunefree.stream.formats import TABLE
from tunefree.stream.layout import Layout
from tunefree.workflows import explanation
from tunefree.workflows.output_columns import PLAIN, OutputColumns
from tunefree.workflows.prediction import Predicted, numbers_of, sureness

PART_ROWS = 256  # rows predicted together; other requests are predicted between the parts of a large one
Answers = list[tuple[Row, Waiting | None]]  # answers, each with the row that waits for its label if it has an id
MAX_INLINE_ROWS = 8  # rows whose prediction takes less time than switching to another thread


class Service:
    """A model that predicts and learns rows, which are dicts of JSON values.

    Learning continues the stream that the model was trained on. Rows that are predicted with an id wait for their
    label. Methods may be called from several threads. Predictions wait neither for learning nor for saving; they lag
    behind learning by a short time (:meth:`settle`). Methods raise a DataError if a row is unusable, a StoreError if
    rows cannot be written to the store (none is learned then), and a ModelError if the model or the store does not
    support the request.

    Parameters
    ----------
    model : Trained, optional
        A model of tables; by default the one in the folder.
    folder : path, optional
        The store of the model (:mod:`tunefree.serving.store`), created if it does not exist; nothing is saved by
        default. A store that exists continues from its latest version, whatever the model.
    admission : Admission
        Settings on the rows that are accepted.
    keeping : Keeping
        Settings of the store.

    Raises
    ------
    ModelError
        If the model is not for tables or is a checkpoint, or the folder is in use.

    Examples
    --------
    >>> from tunefree.stream.source import open_source
    >>> from tunefree.model_files.plan import Plan
    >>> from tunefree.training.training import train
    >>> table = {"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}
    >>> with Service(train(open_source(table), Plan(target="rich"))) as service:
    ...     [answer] = service.predict([{"age": 25.0, "id": "a"}])
    ...     answer["id"], answer["prediction"], service.label([{"id": "a", "rich": "no"}])
    ('a', 'no', {'learned': 1, 'unknown': []})
    """

    def __init__(
        self,
        model: Trained | None = None,
        folder: str | Path | None = None,
        admission: Admission = Admission(),  # noqa: B008 - immutable
        keeping: Keeping = Keeping(),  # noqa: B008 - immutable
    ) -> None:
        if model is not None:
            check_serves(model)
        path = None if folder is None else Path(folder)
        self.admission, self.keeping, self.n_asked = admission, keeping, 0
        self.store = Store(path, model, keeping.durability, keeping.keep_versions)
        try:
            current, sequence = (model, 0) if path is None else self.store.latest()
            assert current is not None
            check_serves(current)
            encoder, name = current.encoder, admission.id
            if name in (encoder.target, encoder.weight, encoder.group):
                problem = f"`id={name!r}`: {name!r} is the target, the weight or the group of the model"
                raise ModelError(f"{problem}; name another")
            self._learns, self._predicts, self._explains = (Reader(admission) for _ in range(3))  # one for each thread
            self.learner = Learner(self.store, current, sequence, self._learns, keeping)
        except BaseException:
            self.store.close()
            raise
        self.counts = self.learner.counts
        self._odd = BadRows(options=(), target=encoder.target)  # oddities of predicted rows
        self._lock = threading.Lock()  # guards the reader, and the model, which caches its last predictions
        self._predict_lock, self._write_lock = asyncio.Lock(), asyncio.Lock()  # order the requests of an event loop
        self._unwritten: Answers = []
        self._explaining = ThreadPoolExecutor(1, "tunefree-explaining", threads.lower_priority)
        # Cache of the latest explained model: number of its publication, copy, and terms.
        self._explained: tuple[int, Published, Decomposition] | None = None

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Explain and learn the submitted rows, save, and release the store."""
        self._explaining.shutdown()
        self.learner.close()
        self.store.close()

    def predict(self, rows: list[Row], layout: OutputColumns = PLAIN) -> list[Row]:
        """The prediction of each row, with the probabilities of classes, its id, and its ignored columns.

        ``layout`` selects intervals, quantiles and sets to add. Ids are unique strings or integers.
        """
        ids = self._predicts.ids_of(rows)
        predicted = [pair for part in _parts(rows) for pair in self._predict(rows[part], ids[part], layout)]
        self._keep(predicted)
        return [answer for answer, _ in predicted]

    async def answer(self, rows: list[Row], layout: OutputColumns = PLAIN) -> list[Row]:
        """The answers of :meth:`predict`, computed in an event loop."""
        ids, predicted = self._predicts.ids_of(rows), Answers()
        self.n_asked += 1
        try:
            for part in _parts(rows):
                arguments = rows[part], ids[part], layout
                async with self._predict_lock:
                    if len(rows) - part.start > MAX_INLINE_ROWS:
                        predicted += await asyncio.to_thread(self._predict, *arguments)
                    else:
                        predicted += self._predict(*arguments)
        finally:
            self.n_asked -= 1
        if any(waiting for _, waiting in predicted):
            self._unwritten += predicted
            async with self._write_lock:
                if self._unwritten:  # not written by an earlier request
                    unwritten, self._unwritten = self._unwritten, []
                    await asyncio.to_thread(self._keep, unwritten)
        return [answer for answer, _ in predicted]

    def learn(self, rows: list[Row], request: str | None = None) -> Row:
        """Learn rows with their targets; if one is unusable, none is learned.

        Rows of a named ``request`` are learned once, however often they are sent. The answer has the number of rows as
        ``learned``, and ``repeated`` if they had been learned before.
        """
        return self.learner.submit(Request(rows, name=request)).result()

    def label(self, labels: list[Row], request: str | None = None) -> Row:
        """Learn the rows that were predicted with these ids; each label is a dict with an id and a target.

        Returns the answer of :meth:`learn`, with the ids without a waiting row as ``unknown``.
        """
        return self.learner.submit(Request(labels, True, request)).result()

    def explain(self, rows: list[Row], label: Any = None) -> list[Row]:
        """The class, its margin, and the contributions of columns to the margin, for each row.

        The class is ``label``; by default the second of two, or with more classes the predicted one.
        """
        return self.explained(rows, label).result()

    def explained(self, rows: list[Row], label: Any = None) -> Future[list[Row]]:
        """The result of :meth:`explain`, from a thread that explains one request after another."""
        check_rows(rows)
        return self._explaining.submit(self._explain, rows, label)

    def problems(self) -> list[str]:
        """Problems that prevent learning or saving."""
        problems = self.learner.broken, self.learner.failure, self.store.failure
        return [problem for problem in dict.fromkeys(problems) if problem is not None]

    def settle(self) -> None:
        """Wait until predictions use the latest learned model."""
        self.learner.between(self.learner.settle)

    def save(self) -> None:
        """Save a version now, if rows were learned since the last one."""

        def save() -> None:
            if self.learner.unsaved:
                self.learner.save("it was asked for")
            if self.learner.failure is not None:
                raise StoreError(self.learner.failure)

        self.learner.between(save)

    def roll_back(self, number: int) -> int:
        """Continue from an earlier version, without later learning; returns its new number."""
        return self.learner.between(lambda: self._take(self.store.load(number), f"rolled back to version {number}"))

    def take(self, name: str) -> int:
        """Continue with a model file in the store's folder ``incoming``; returns the number of its version."""
        return self.learner.between(lambda: self._take(self.store.incoming(name), f"the incoming model {name}"))

    def _take(self, model: Trained, reason: str) -> int:
        check_serves(model)
        number = self.learner.replace(model, reason)
        self._odd.comparison = None
        return number

    def state(self) -> Row:
        """The state of the model, with the number of learned rows and their progressive losses."""
        learner, published = self.learner, self.learner.published
        model, metrics = published.model, learner.trained.progress.progressive[0]
        return {
            "version": self.store.versions[-1].number,
            "task": model.task,
            "target": published.encoder.target,
            "columns": [column.name for column in published.encoder.columns],
            "classes": model.classes if model.task == "classification" else None,
            "rows": metrics.rows,
            "rows_published": published.rows,
            "progressive_loss": metrics.mean_loss(),
            "recent_loss": learner.recent,
            "drift_count": learner.n_rises,
            "drifts": published.drifts,
            "oddities": self._oddities(),
            "values_ignored": sum(reader.n_ignored for reader in (self._learns, self._predicts, self._explains)),
            "learn_queue": learner.n_queued,
            "predict_queue": self.n_asked,
            "unsaved": learner.unsaved,
            "save_failure": learner.failure or self.store.failure,
            "learn_failure": learner.broken or self.store.failure,
            "waiting": self.store.n_rows["waiting"],
        }

    def _predict(self, rows: list[Row], ids: list[str | None], layout: OutputColumns) -> Answers:
        try:
            with self._lock:
                published = self.learner.published
                model: Any = published.model
                batch, unknown = self._predicts.batch(published, rows, self._odd)
                predictions = model.predict(batch.rows)
                answers = _answers(model, predictions, batch)
                if layout != PLAIN:
                    layout.check(model)
                    for name, level, values in sureness(model, Predicted(batch, predictions), layout):
                        for answer, value in zip(answers, map(_finite, values), strict=True):
                            answer.setdefault(name, {})[f"{level:g}"] = value
                has_ids = any(id is not None for id in ids)
                memories = remembered(model, batch.rows) if has_ids else [None] * len(rows)
                self.counts.rows_predicted += len(rows)
        except TunefreeError as error:
            raise without_frames(error) from None
        waiting = list[Waiting | None]()
        for id, row, answer, names, memory in zip(ids, rows, answers, unknown, memories, strict=True):
            if names:
                answer["unknown_columns"] = names
            if id is not None:
                answer["id"] = row[self.admission.id]
                row = {name: cell for name, cell in row.items() if name != published.encoder.target}
            waiting.append(None if id is None else Waiting(id, row, memory))
        return list(zip(answers, waiting, strict=True))

    def _keep(self, predicted: Answers) -> None:
        """Store rows that wait for their labels; if that fails, mark their answers."""
        waiting = [row for _, row in predicted if row is not None]
        if not waiting:
            return
        try:
            with self.store.transaction():
                self.counts.waiting_dropped_for_size += self.store.keep_waiting(waiting, self.keeping.remember)
        except StoreError:
            self.counts.waiting_not_kept += len(waiting)
            for answer, row in predicted:
                if row is not None:
                    answer["waits_for_label"] = False

    def _oddities(self) -> list[Row]:
        with self._lock:
            odd = replace(self._odd, tally=self._odd.tally.copy())
            odd.compare()
        return [{"column": of.column, "problem": of.problem, "rows": of.rows} for of in odd.tally.oddities]

    def _explain(self, rows: list[Row], label: Any) -> list[Row]:
        """Explain rows with a copy of the model, which is renewed after each publication."""
        if self._explained is None or self._explained[0] != self.learner.n_published:
            self._explained = None  # frees its memory for the next one
            number, copied, reference = self.learner.between(self._copy_to_explain)
            terms = Decomposition(copied.model, Layout.of_encoder(copied.encoder), reference=reference)
            self._explained = number, copied, terms
        _, copied, terms = self._explained
        model: Any = copied.model
        batch, _ = self._explains.batch(copied, rows, BadRows(options=(), target=copied.encoder.target))
        explained = explanation.Explainer(copied, terms, label).of(Predicted(batch, model.predict(batch.rows)))
        answers: list[Row] = []
        for k, margin in enumerate(explained.margins.tolist()):
            class_entry = {} if model.task == "regression" else {"class": model.classes[int(explained.classes[k])]}
            contributions = dict(zip(terms.names, explained.contributions[k].tolist(), strict=True))
            answers.append({**class_entry, "margin": margin, "contributions": contributions})
        return answers

    def _copy_to_explain(self) -> tuple[int, Published, Reference]:
        """The publication number, a copy of the current model, and the reference of contributions."""
        self.learner.settle()
        return self.learner.n_published, self.learner.copied(), Reference.of(self.learner.trained.model, True)


def _parts(rows: list[Row]) -> list[slice]:
    """Parts of the rows that are predicted together."""
    return [slice(start, start + PART_ROWS) for start in range(0, len(rows), PART_ROWS)]


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
    """A number or a list of numbers for JSON; infinite ends of intervals become null."""
    if isinstance(value, np.ndarray):
        return list(map(_finite, value.tolist()))
    return None if isinstance(value, float) and not math.isfinite(value) else value


def check_serves(trained: Trained) -> None:
    """Raise an error if a model cannot be served."""
    if not isinstance(trained, Trained):
        raise ModelError(f"{trained!r} is no model; load one by `Trained.load(path)`")
    if trained.kind != TABLE:
        raise ModelError(f"the model was trained on {trained.kind} text; rows of JSON are for models of tables")
    if trained.model.predictor.only_predicts:
        raise ModelError("this model only predicts; serve the model that it was made of")
    continued(trained)
