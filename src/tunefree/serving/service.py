"""A model in operation: it predicts, learns, and is saved as it learns; :mod:`tunefree.serving.http` serves it.

Rows are predicted in the thread of the request. An event loop predicts a few as soon as they have come: another thread
would take longer to be reached than a row to be predicted. More rows are predicted in another thread, part by part, and
other requests in between. Rows with an id are answered once they are in the journal, where all that have come meanwhile
are written in one transaction.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
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
from tunefree.serving.events import Counts, tell
from tunefree.serving.learner import Learner, Published, Request, without_frames
from tunefree.serving.rows import Reader
from tunefree.serving.settings import Admission, Keeping, is_store
from tunefree.serving.store import Row, Store, StoreError, Waiting
from tunefree.stream.batch import Batch, Refused
from tunefree.stream.formats import TABLE
from tunefree.stream.layout import Layout
from tunefree.workflows import explanation
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


class Service:
    """A model that predicts and learns rows, which are dicts as JSON has them.

    What is learned is the stream that the model was trained on, continued. Rows that are predicted with an id wait for
    their label. Methods may be called by several threads; predictions wait neither for learning nor for saving, and
    know what was learned up to a short time before (:meth:`settle`). They raise a DataError if a row cannot be used, a
    StoreError if rows cannot be written down, of which none is learned then, and a ModelError if something is asked for
    that the model or the store does not have.

    Parameters
    ----------
    model : Trained, optional
        A model of tables; by default the one in the folder.
    folder : path, optional
        The store of the model (:mod:`tunefree.serving.store`), which is made if it is not there; nothing is saved by
        default. A store that began with this model goes on from where it was.
    admission : Admission
        Which rows are taken.
    keeping : Keeping
        What is kept, how long, and when it is saved.

    Raises
    ------
    ModelError
        If the model is not one of tables or is a checkpoint, or the folder is that of another model, or is in use.

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
        place = None if folder is None else Path(folder)
        self.admission, self.keeping, self.counts, self.n_asked = admission, keeping, Counts(), 0
        self.store = Store(place, model, keeping.durability, keeping.keep_versions)
        try:
            current = model if place is None else self.store.current()
            assert current is not None
            check_serves(current)
            encoder, name = current.encoder, admission.id
            if name in (encoder.target, encoder.weight, encoder.group):
                problem = f"`id={name!r}`: {name!r} is the target, the weight or the group of the model"
                raise ModelError(f"{problem}; name another")
            self._learns, self._predicts, self._explains = (Reader(admission) for _ in range(3))  # of a thread each
            self.learner = Learner(self.store, current, self._learns, keeping, self.counts)
        except BaseException:
            self.store.close()
            raise
        self._odd = Refused(target=encoder.target)  # oddities of rows that were predicted
        self._lock = threading.Lock()  # of the reader, and of the model, which remembers what it predicted last
        self._turn, self._writing = asyncio.Lock(), asyncio.Lock()  # of requests in an event loop
        self._unkept = list[Asked]()
        self._explaining = ThreadPoolExecutor(1, "tunefree-explaining", threads.lower_priority)
        # The number of the publication when the latest copy to explain was made, that copy, and its terms.
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
        """The prediction of each row, with the probabilities of classes, its id, and the columns that were ignored.

        ``layout`` has the intervals, quantiles and sets that are added. An id comes once, and is a text or a number.
        """
        asked = Asked(rows, self._predicts.ids_of(rows), layout)
        while asked.n_left:
            self._predict_next(asked)
        self._keep([asked])
        return asked.answers

    async def answer(self, rows: list[Row], layout: OutputColumns = PLAIN) -> list[Row]:
        """The answers to rows, as :meth:`predict` gives them, in an event loop."""
        asked = Asked(rows, self._predicts.ids_of(rows), layout)
        self.n_asked += 1
        try:
            while asked.n_left:
                async with self._turn:
                    if asked.n_left > FEW:
                        await asyncio.to_thread(self._predict_next, asked)
                    else:
                        self._predict_next(asked)
        finally:
            self.n_asked -= 1
        if asked.waiting:
            self._unkept.append(asked)
            async with self._writing:
                if asked in self._unkept:  # none of those that came before has taken it along
                    group, self._unkept = self._unkept, []
                    await asyncio.to_thread(self._keep, group)
        return asked.answers

    def learn(self, rows: list[Row], request: str | None = None) -> Row:
        """Learn rows with their targets, all of them or, if one cannot be used, none.

        Under the name of a ``request`` they are learned once, however often they are sent. The answer has the number of
        rows, ``learned``, and ``repeated`` if they had been learned before.
        """
        return self.learner.submit(Request(rows, name=request)).result()

    def label(self, labels: list[Row], request: str | None = None) -> Row:
        """Learn the rows that were predicted under these ids; each label is a dict with an id and a target.

        The answer is that of :meth:`learn`, with the ids that do not wait as ``unknown``.
        """
        return self.learner.submit(Request(labels, True, request)).result()

    def explain(self, rows: list[Row], label: Any = None) -> list[Row]:
        """For each row the class, its margin, and the contributions of columns to the margin.

        The class is ``label``; by default the second of two, and of more the one that is predicted.
        """
        return self.explained(rows, label).result()

    def explained(self, rows: list[Row], label: Any = None) -> Future[list[Row]]:
        """What :meth:`explain` returns, in a thread that explains one request after the other."""
        return self._explaining.submit(self._explain, rows, label)

    def problems(self) -> list[str]:
        """Problems that prevent learning or saving."""
        return [problem for problem in (self.learner.broken, self.learner.failure) if problem is not None]

    def settle(self) -> None:
        """Wait until predictions know all that was learned."""
        self.learner.between(self.learner.settle)

    def save(self) -> None:
        """Save a version now, if rows were learned since the last."""

        def save() -> None:
            if self.learner.unsaved:
                self.learner.save("it was asked for")
            if self.learner.failure is not None:
                raise StoreError(self.learner.failure)

        self.learner.between(save)

    def roll_back(self, number: int) -> int:
        """Go on from an earlier version, without later learning; returns its new number."""
        return self.learner.between(lambda: self._take(self.store.load(number), f"rolled back to version {number}"))

    def take(self, name: str) -> int:
        """Go on with a model file of the store's folder ``incoming``; returns the number of its version."""
        return self.learner.between(lambda: self._take(self.store.incoming(name), f"the incoming model {name}"))

    def _take(self, model: Trained, reason: str) -> int:
        check_serves(model)
        number = self.learner.replace(model, reason)
        self._odd.comparison = None
        return number

    def state(self) -> Row:
        """The state of the model, the rows learned, and the losses of these rows before they were learned."""
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
            "save_failure": learner.failure,
            "learn_failure": learner.broken,
            "waiting": self.store.n_rows["waiting"],
        }

    def _predict_next(self, asked: Asked) -> None:
        """Predict the next rows of a request."""
        try:
            with self._lock:
                self._predict(asked, self.learner.published)
        except TunefreeError as error:
            raise without_frames(error) from None

    def _predict(self, asked: Asked, published: Published) -> None:
        start, model = len(asked.answers), published.model
        rows, ids = asked.rows[start : start + TOGETHER], asked.ids[start : start + TOGETHER]
        batch, unknown = self._predicts.batch(published, rows, self._odd)
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
                    answer["id"] = row[self.admission.id]
                    without_target = {name: cell for name, cell in row.items() if name != published.encoder.target}
                    asked.waiting.append(Waiting(id, without_target, kept))
        asked.answers += answers
        self.counts.rows_predicted += len(rows)

    def _keep(self, group: list[Asked]) -> None:
        """Let rows wait for their labels, or put an error into answers to rows that could not be written."""
        waiting = [row for asked in group for row in asked.waiting]
        if not waiting:
            return
        try:
            with self.store.transaction():
                self.counts.waiting_dropped_for_size += self.store.keep_waiting(waiting, self.keeping.remember)
        except StoreError as error:
            self.counts.waiting_not_kept += len(waiting)
            tell("not written", problem=str(error))
            for answer in [answer for asked in group for answer in asked.answers if "id" in answer]:
                answer["waits_for_label"] = False

    def _oddities(self) -> list[Row]:
        """Oddities of rows."""
        with self._lock:
            odd = Refused(target=self._odd.target, tally=self._odd.tally.copy(), comparison=self._odd.comparison)
            odd.compare()
        return [{"column": of.column, "problem": of.problem, "rows": of.rows} for of in odd.tally.oddities]

    def _explain(self, rows: list[Row], label: Any) -> list[Row]:
        """Explain rows by a copy of the model, which learning is asked for only where a newer one predicts."""
        if self._explained is None or self._explained[0] != self.learner.n_published:
            self._explained = None  # which has the memory that the next one needs
            number, copied, reference = self.learner.between(self._copied)
            terms = Decomposition(copied.model, Layout.of_encoder(copied.encoder), reference=reference)
            self._explained = number, copied, terms
        _, copied, terms = self._explained
        model: Any = copied.model
        batch, _ = self._explains.batch(copied, rows, Refused(target=copied.encoder.target))
        explained = explanation.Explainer(copied, terms, label).of(Predicted(batch, model.predict(batch.rows)))
        answers: list[Row] = []
        for k, margin in enumerate(explained.margins.tolist()):
            class_entry = {} if model.task == "regression" else {"class": model.classes[int(explained.classes[k])]}
            contributions = dict(zip(terms.names, explained.contributions[k].tolist(), strict=True))
            answers.append({**class_entry, "margin": margin, "contributions": contributions})
        return answers

    def _copied(self) -> tuple[int, Published, Reference]:
        """The model as it is now; contributions are relative to the rows of the reference."""
        self.learner.settle()
        return self.learner.n_published, self.learner.copied(), Reference.of(self.learner.trained.model, True)


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


def check_serves(trained: Trained) -> None:
    """Raise an error if a model cannot be served."""
    if trained.kind != TABLE:
        raise ModelError(f"the model was trained on {trained.kind} text; rows of JSON are for models of tables")
    if trained.model.predictor.only_predicts:
        raise ModelError("this model only predicts; serve the model that it was made of")
    continued(trained)


def opened(path: Path, output: Path | None) -> tuple[Trained | None, Path | None]:
    """The model and the store that are meant by a model file or a store, and an output, which is checked first."""
    if is_store(path):
        if output is not None and output.resolve() != path.resolve():
            raise ModelError(f"{path}: is a store, which is served as it is; leave `output` out")
        return None, path
    if str(output) == "-":
        raise ModelError("-: this is not written to standard output; name a folder")
    is_other = output is not None and output.exists() and not is_store(output)
    if output is not None and is_other and (not output.is_dir() or any(output.iterdir())):
        raise ModelError(f"{output}: is something else than a store; name a folder that is empty, or a new one")
    return Trained.load(path), output
