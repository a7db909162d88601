"""A model that predicts and learns rows as they are sent, and its HTTP face (`pip install 'tunefree[serve]'`).

Rows are objects of JSON, read as JSON lines are. Rows that are predicted under an id are remembered, so that their
labels can come later. What is learned is the stream that the model was trained on, continued. So what rows to learn
hold beside the model's columns and the id becomes further columns. Over HTTP it is JSON in and JSON out, and Starlette
and uvicorn do the rest.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tunefree.core.errors import DataError, ModelError, TunefreeError
from tunefree.losses.objectives import chosen
from tunefree.stream.batch import Batch, Refused
from tunefree.stream.file_notation import as_written, with_json_numbers
from tunefree.stream.formats import TABLE
from tunefree.stream.jsonlines import read_objects
from tunefree.stream.late import is_among
from tunefree.stream.notation import ColumnTypes
from tunefree.stream.spelling import renamed
from tunefree.training.closed_classes import of_named_classes
from tunefree.model_files.trained import Trained, continued, ended
from tunefree.workflows.prediction import numbers_of
from tunefree.training.training import learn_batches

Row = dict[str, Any]
_LOG = logging.getLogger("uvicorn.error")
LARGEST = 1 << 24  # bytes of a request


class Service:
    """A model that predicts and learns, one request at a time.

    Parameters
    ----------
    trained : Trained
        A model of tables.
    path : path, optional
        Where the model is saved; nowhere by default.
    id_column : str, default "id"
        The name under which rows have their id.
    remembered : int, default 100000
        Rows with an id that wait for their label; the oldest are forgotten.
    save_every : int, default 10000
        Rows learned between two savings.
    column_types : ColumnTypes, optional
        How strings of requests write numbers and dates; by default as the file of training did.

    Raises
    ------
    ModelError
        If the model is not one of tables, or is a checkpoint.

    Examples
    --------
    >>> from tunefree.stream.source import open_source
    >>> from tunefree.model_files.plan import Plan
    >>> from tunefree.training.training import train
    >>> table = {"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}
    >>> service = Service(train(open_source(table), Plan(target="rich")))
    >>> [answer] = service.predict([{"age": 25.0, "id": "a"}])
    >>> answer["id"], answer["prediction"], service.label([{"id": "a", "rich": "no"}])
    ('a', 'no', {'learned': 1, 'unknown': []})
    """

    def __init__(
        self,
        trained: Trained,
        path: str | os.PathLike[str] | None = None,
        id_column: str = "id",
        remembered: int = 100_000,
        save_every: int = 10_000,
        column_types: ColumnTypes = ColumnTypes(),  # noqa: B008 - an immutable tuple
    ) -> None:
        if trained.kind != TABLE:
            raise ModelError(f"the model was trained on {trained.kind} text; rows of JSON are for models of tables")
        trained = replace(trained, encoder=as_written(trained.encoder, None, column_types))
        self.trained, self.path, self.id_column = continued(trained), path, id_column
        self.remembered, self.save_every = remembered, save_every
        self.waiting: OrderedDict[Any, Row] = OrderedDict()
        self.learned = self.unsaved = 0
        self.due = save_every  # rows that are not saved, from which on the model is saved
        self.failure: str | None = None  # why the model could not be saved last
        self._predicted = Refused(target=self.trained.encoder.target)  # what was odd about rows that were predicted
        self._lock = threading.Lock()

    def predict(self, rows: list[Row]) -> list[Row]:
        """The prediction of each row, with the probabilities of classes, its id, and the columns that are not known.

        Raises
        ------
        DataError
            If a row cannot be used.
        """
        with self._lock:
            model = self.trained.model
            batch = self._encoded(rows, labelled=False)
            predictions = model.predict(batch.rows)
            unknown = [self._unknown(row) for row in rows]
            for place, names in enumerate(unknown, 1):
                for name in names:
                    self._predicted.note("the model does not know it", "the request", place, name)
            if model.task == "regression":
                answers: list[Row] = [{"prediction": value} for value in numbers_of(model, predictions, batch).tolist()]
            else:
                classes, values = pa.array(model.classes).to_pylist(), model.probabilities(predictions).tolist()
                answers = [
                    {"prediction": classes[k], "probabilities": dict(zip(map(str, classes), own, strict=True))}
                    for k, own in zip(chosen(predictions).tolist(), values, strict=True)
                ]
            for row, answer, names in zip(rows, answers, unknown, strict=True):
                if names:
                    answer["unknown columns"] = names
                if row.get(self.id_column) is not None:
                    answer["id"] = row[self.id_column]
                    self._remember(row)
            return answers

    def _remember(self, row: Row) -> None:
        self.waiting[_key(row[self.id_column])] = row
        while len(self.waiting) > self.remembered:
            self.waiting.popitem(last=False)

    def learn(self, rows: list[Row]) -> dict[str, Any]:
        """Learn rows with their targets, all of them or, if one cannot be used, none.

        Raises
        ------
        DataError
        """
        with self._lock:
            return {"learned": self._learn(rows)}

    def label(self, labels: list[Row]) -> dict[str, Any]:
        """Learn the rows that were predicted under these ids; each label is an object with an id and a target.

        Raises
        ------
        DataError
            If a label has no target, or cannot be used.
        """
        target = self.trained.encoder.target
        with self._lock:
            known, unknown = [], []
            for place, label in enumerate(labels, 1):
                if label.get(target) is None:
                    raise DataError("there is no label", "the request", place, target, f"send {target!r} with the id")
                key = _key(label.get(self.id_column))
                if key in self.waiting:
                    known.append((key, {**self.waiting[key], target: label[target]}))
                else:
                    unknown.append(label.get(self.id_column))
            learned = self._learn([row for _, row in known])
            for key, _ in known:
                self.waiting.pop(key, None)
            return {"learned": learned, "unknown": unknown}

    def _learn(self, rows: list[Row]) -> int:
        if rows:
            learn_batches(self.trained, [self._encoded(rows, labelled=True)])
            self.learned, self.unsaved = self.learned + len(rows), self.unsaved + len(rows)
        if self.unsaved >= self.due:
            self._save()
        return len(rows)

    def state(self) -> dict[str, Any]:
        """What the model is, what it has learned, and how well: losses are those of rows before they were learned."""
        with self._lock:
            trained, model = self.trained, self.trained.model
            metrics = trained.progress.progressive[0]
            return {
                "task": model.task,
                "target": trained.encoder.target,
                "columns": [column.name for column in trained.encoder.columns],
                "classes": pa.array(model.classes).to_pylist() if model.task == "classification" else None,
                "rows": metrics.rows,
                "progressive loss": metrics.mean_loss(),
                "oddities": self._oddities(),
                "learned here": self.learned,
                "not saved": self.unsaved,
                "cannot be saved": self.failure,
                "waiting for labels": len(self.waiting),
            }

    def save(self) -> None:
        """Save the model if it has learned since it was saved last."""
        with self._lock:
            self._save()

    def _save(self) -> None:
        """Save the model; that it cannot be saved is told, and undoes nothing of what was learned."""
        if self.path is None or not self.unsaved:
            return
        try:
            ended(self.trained).save(self.path)
            self.unsaved, self.due, self.failure = 0, self.save_every, None
        except ModelError as error:
            self.due, self.failure = self.unsaved + self.save_every, str(error)

    def _encoded(self, rows: list[Row], labelled: bool) -> Batch:
        encoder = self.trained.encoder
        rows, types = with_json_numbers(encoder, rows)
        if self.id_column not in types:
            rows = [{name: value for name, value in row.items() if name != self.id_column} for row in rows]
        for place, row in enumerate(rows, 1):
            self._check(place, row)
        chunk = read_objects(rows, types, "the request")
        refused = Refused(classes=self.trained.plan.classes, target=encoder.target) if labelled else self._predicted
        return of_named_classes(encoder.encode(chunk, labelled, refused, labelled), refused)

    def _check(self, place: int, row: Row) -> None:
        """Raise a DataError if a row lacks a column that no row lacked in training, or all columns."""
        encoder = self.trained.encoder
        present = [is_among(column.name, row) for column in encoder.columns]
        needed = encoder.profile.present == encoder.profile.rows
        absent = [
            column.name
            for column, is_present, is_needed in zip(encoder.columns, present, needed.tolist(), strict=True)
            if not is_present and (is_needed or not any(present))
        ]
        if absent:
            problem = f"{'column' if len(absent) == 1 else 'columns'} {', '.join(map(repr, absent))} missing"
            remedy = renamed(absent, self._unknown(row)) or "send null where a value is not known"
            raise DataError(problem, "the request", place, remedy=remedy)

    def _unknown(self, row: Row) -> list[str]:
        """The columns of a row that the model does not know."""
        known = [*self.trained.encoder.types(), self.id_column]
        return [name for name in row if name not in known and not any(is_among(own, [name]) for own in known)]

    def _oddities(self) -> list[dict[str, Any]]:
        """What was odd about rows that were predicted."""
        bad = replace(self._predicted, tally=self._predicted.tally.copy())
        bad.compare()
        return [
            {"column": oddity.column, "problem": oddity.problem, "rows": oddity.rows} for oddity in bad.tally.oddities()
        ]


def _key(id: Any) -> str:
    """What ids of JSON are remembered by."""
    return json.dumps(id, sort_keys=True)


class _RequestError(Exception):
    """A request that cannot be answered."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


def application(service: Service) -> Starlette:
    """The application that answers for a service.

    Parameters
    ----------
    service : Service

    Returns
    -------
    starlette.applications.Starlette
        ``POST /predict`` and ``POST /learn`` take a row or an array of rows, ``POST /labels`` an id with a label or an
        array of them; ``GET /model`` and ``GET /health`` tell how things are. The model is saved on shutdown.
    """

    async def predict(request: Request) -> JSONResponse:
        rows, is_one = await _rows_of(request)
        answers = await run_in_threadpool(service.predict, rows)
        return JSONResponse(answers[0] if is_one else answers)

    async def learn(request: Request) -> JSONResponse:
        return JSONResponse(await run_in_threadpool(service.learn, (await _rows_of(request))[0]))

    async def labels(request: Request) -> JSONResponse:
        return JSONResponse(await run_in_threadpool(service.label, (await _rows_of(request))[0]))

    async def model(request: Request) -> JSONResponse:
        return JSONResponse(await run_in_threadpool(service.state))

    async def health(request: Request) -> JSONResponse:
        return JSONResponse({"status": service.failure or "ok"})

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(service.save)
        if service.failure:
            _LOG.error("%s; %d rows that were learned are lost", service.failure, service.unsaved)

    posts: dict[str, Callable[[Request], Any]] = {"/predict": predict, "/learn": learn, "/labels": labels}
    routes = [Route(path, answer, methods=["POST"]) for path, answer in posts.items()]
    routes += [Route("/model", model), Route("/health", health)]
    refusals: Any = {_RequestError: _not_taken, TunefreeError: _unusable}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=refusals)


async def _rows_of(request: Request) -> tuple[list[Row], bool]:
    """The rows of a request, and whether it is one row rather than an array."""
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST:
            raise _RequestError(413, f"a request may have at most {LARGEST} bytes; send fewer rows at a time")
    try:
        sent = json.loads(bytes(body), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise _RequestError(400, "the request is not JSON; send an object or an array of objects") from None
    rows = [sent] if isinstance(sent, dict) else sent
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise _RequestError(400, "send an object (a row), or an array of objects that is not empty")
    return rows, isinstance(sent, dict)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number in JSON")


async def _not_taken(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": str(error)}, getattr(error, "status", 400))


async def _unusable(request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": str(error)}, 422)
