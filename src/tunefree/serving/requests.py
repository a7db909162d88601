"""Requests to learn: which of them are new, and which rows they ask to learn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tunefree.core.errors import DataError, TunefreeError
from tunefree.model_files.trained import Trained
from tunefree.pool.published import Remembered
from tunefree.serving.journal import Journal, Row, StoreError
from tunefree.serving.rows import REQUEST, Reader
from tunefree.stream.batch import Converted


def _count(metric: str, meaning: str) -> int:
    """A number of events, with its metric."""
    number: int = field(default=0, metadata={"metric": metric, "meaning": meaning})
    return number


@dataclass
class Counts:
    """What happened since the start."""

    predicted: int = _count("rows_predicted", "Rows predicted since the start.")
    learned: int = _count("rows_learned", "Rows learned since the start.")
    replayed: int = _count("rows_replayed", "Rows of the journal learned at the start.")
    unknown: int = _count("labels_unknown", "Labels whose row does not wait.")
    repeated: int = _count("requests_repeated", "Requests to learn that came again.")
    refused: int = _count("requests_refused", "Requests to learn what cannot be learned.")
    dropped_for_size: int = _count("waiting_dropped_for_size", "Rows dropped before a label, being too many.")
    dropped_for_age: int = _count("waiting_dropped_for_age", "Rows dropped before a label, being too old.")
    not_kept: int = _count("waiting_not_kept", "Rows with an id that could not be written down, and do not wait.")
    saves: int = _count("saves", "Versions saved since the start.")
    failed_saves: int = _count("saves_failed", "Versions that could not be saved.")


def begun() -> Future[Any]:
    """A future that nobody can cancel: those who asked may go away, and what they asked is done all the same."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


def without_frames(error: Exception) -> Exception:
    """An error of this package without the functions that raised it, whose variables are models.

    What holds the error, such as a future, is one of these variables, so that all of them would stay in memory until
    garbage is looked for.
    """
    if isinstance(error, TunefreeError):
        error.__traceback__ = error.__context__ = None
    return error


class Due(NamedTuple):
    """What a thread is asked to do: a function, and where its value goes."""

    function: Callable[[], Any]
    answer: Future[Any]

    def do(self) -> None:
        """Do it, and answer, be it with an error."""
        try:
            self.answer.set_result(self.function())
        except Exception as error:
            self.answer.set_exception(without_frames(error))


@dataclass(eq=False)
class Request:
    """Rows to learn, or labels of rows that were predicted."""

    rows: list[Row]
    are_labels: bool = False
    name: str | None = None  # under which it is learned once, however often it is sent
    answer: Future[Row] = field(default_factory=begun)

    @property
    def digest(self) -> str:
        """Of what it holds."""
        return hashlib.sha256(json.dumps([self.are_labels, self.rows], sort_keys=True).encode()).hexdigest()


@dataclass
class Work:
    """What is to be learned of a request."""

    request: Request
    rows: list[Row]
    remembered: list[Remembered] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)  # of rows that no longer wait then
    unknown: list[Any] = field(default_factory=list)  # ids of labels whose row does not wait
    sequence: int = 0  # of its event; 0 for one without rows

    def outcome(self) -> Row:
        """What is answered once it is learned."""
        learned: Row = {"learned": len(self.rows)}
        return learned | {"unknown": self.unknown} if self.request.are_labels else learned


def works_of(requests: list[Request], trained: Trained, reader: Reader, journal: Journal, counts: Counts) -> list[Work]:
    """What is to be learned of requests; those that were learned before, or cannot be used, are answered.

    A request that brings a column comes alone, before others: what kind of column that is depends on its rows.
    """
    works: list[Work] = []
    for request in requests:
        try:
            before = None if request.name is None else journal.answered(request.name)
            if before is not None:
                counts.repeated += 1
                request.answer.set_result(_repeated(request, *before))
                continue
            joined = _joined(request, trained, reader, journal) if request.are_labels else Work(request, request.rows)
            is_alone = reader.learns_columns and reader.has_new_columns(trained, joined.rows)
        except StoreError:
            raise
        except Exception as error:
            _refuse(request, error, counts)
            continue
        if is_alone and works:
            break
        works.append(joined)
        if is_alone:
            break
    return works


def _repeated(request: Request, digest: str, answer: Row) -> Row:
    if digest != request.digest:
        problem = f"a request named {request.name!r} came before, and held something else"
        raise DataError(problem, remedy="give each request a name of its own")
    return answer | {"repeated": True}


def checked(works: list[Work], trained: Trained, reader: Reader, counts: Counts) -> tuple[list[Work], Converted | None]:
    """Those that can be learned, and what all rows were converted to if they were together; others are answered."""
    try:
        rows, converted = reader.check(trained, [row for work in works for row in work.rows])
    except Exception as error:  # whatever it is, it is of one request
        if len(works) > 1:
            return [usable for work in works for usable in checked([work], trained, reader, counts)[0]], None
        _refuse(works[0].request, error, counts)
        return [], None
    kept = iter(rows)
    for work in works:
        work.rows = [next(kept) for _ in work.rows]
    return works, converted


def _refuse(request: Request, error: Exception, counts: Counts) -> None:
    counts.refused += 1
    request.answer.set_exception(without_frames(error))


def _joined(request: Request, trained: Trained, reader: Reader, journal: Journal) -> Work:
    """Rows that wait, with their labels."""
    target, name = str(trained.encoder.target), reader.id_name
    ids = [str(id) for id in reader.ids_of(request.rows, needed=True)]
    for place, label in enumerate(request.rows, 1):
        if label.get(target) is None:
            raise DataError("there is no label", REQUEST, place, target, f"send {target!r} with the id")
        if further := [key for key in label if key not in (name, target)]:
            raise DataError("a label has an id and a target", REQUEST, place, further[0], "leave it out")
    waiting, work = journal.waiting(ids), Work(request, [])
    for label, id in zip(request.rows, ids, strict=True):
        if id in waiting:
            row = waiting[id]
            work.rows.append(row.row | {target: label[target]})
            work.ids.append(id)
            work.remembered += [] if row.remembered is None else [row.remembered]
        else:
            work.unknown.append(label[name])
    return work
