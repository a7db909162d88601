"""A model in operation on disk: one folder with numbered versions, a journal of rows and targets, and a lock.

The journal is a database of SQLite. A transaction is durable once it is committed: when the process is killed at any
moment, what was committed is there and nothing else. SQLite's write-ahead log is written at each commit; it is also
flushed to the disk unless only the end of the process has to be survived, and not that of the machine.

A version is written as a file first, and counts from the transaction on that names it in the journal. So the process
may end at any moment: the current version and the events of the journal that follow it are the model.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError, TunefreeError, nearest
from tunefree.core.storage import digest_of, make_folder, only_writer
from tunefree.model_files.trained import Trained, ended
from tunefree.pool.waiting import Remembered
from tunefree.serving.settings import CURRENT, INCOMING, JOURNAL, VERSIONS, is_store

ORIGIN = "origin.part"

Row = dict[str, Any]
FORMAT = 3
DURABLE = {"power": "FULL", "process": "NORMAL"}  # what is survived: a loss of power, or the end of the process
BUSY = 10.0  # seconds that another process may hold the file, as a backup does
DROPPED = ("waiting", "requests")  # tables whose old rows are
_WRITER = json.JSONEncoder(separators=(",", ":"))
_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT, rows TEXT NOT NULL, remembered BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS waiting (
    place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, row TEXT NOT NULL, remembered BLOB NOT NULL,
    since REAL NOT NULL);
CREATE TABLE IF NOT EXISTS requests (
    place INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, digest TEXT NOT NULL, answer TEXT NOT NULL,
    sequence INTEGER NOT NULL, since REAL NOT NULL);
CREATE TABLE IF NOT EXISTS versions (
    number INTEGER PRIMARY KEY AUTOINCREMENT, sequence INTEGER NOT NULL, n_rows INTEGER NOT NULL, loss REAL,
    created TEXT NOT NULL, reason TEXT NOT NULL);
"""


class StoreError(TunefreeError):
    """A request cannot be written to the store, and was not learned."""


class Waiting(NamedTuple):
    """A row that was predicted, and waits for its label."""

    id: str
    row: Row
    remembered: Remembered | None


class Event(NamedTuple):
    """Rows that are learned together."""

    sequence: int
    rows: list[Row]
    remembered: list[Remembered]


class Version(NamedTuple):
    """A model that was saved."""

    number: int
    sequence: int  # of the last event that it has learned, or that was left out of it
    n_rows: int  # learned
    loss: float | None  # mean loss of rows before they were learned
    created: str  # ISO 8601
    reason: str


class Store:
    """A folder of a model in operation, which nothing else writes while it is open; without one it is in memory.

    A new store begins with ``model``. So many versions are ``kept``, with the rows since the oldest of them; in memory
    they cannot be loaded. It has ``facts``, numbers and texts by name; the ``versions``, the oldest first, of which the
    last is the current one; and ``n_rows`` of the tables ``"waiting"`` and ``"requests"``. Threads may use it, one
    transaction at a time.

    Raises a ModelError if the folder cannot be written, is written by another process, or there is neither a store nor
    a model. All methods raise a StoreError if the journal cannot be read or written.
    """

    def __init__(
        self, folder: Path | None, model: Trained | None = None, durability: str = "power", kept: int = 5
    ) -> None:
        self.folder, self._kept, self._lock, self._open = folder, kept, threading.RLock(), ExitStack()
        self._path = None if folder is None else folder / JOURNAL
        try:
            if folder is not None:
                if model is None and not is_store(folder):
                    raise ModelError(f"{folder}: is no store of a model; name a model to begin one with")
                for part in (folder, folder / VERSIONS, folder / INCOMING):
                    make_folder(part)
                self._open.enter_context(only_writer(folder / "lock", folder))
            self._connect(durability)
            self._begin(model)
            self._tidy()
        except BaseException:
            self._open.close()
            raise

    def _connect(self, durability: str) -> None:
        """Open the journal."""
        with self._refusing():
            name = ":memory:" if self._path is None else str(self._path)
            self._database = sqlite3.connect(name, timeout=BUSY, isolation_level=None, check_same_thread=False)
            self._open.callback(self._disconnect)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute(f"PRAGMA synchronous = {DURABLE[durability]}")
            self._database.executescript(_TABLES)
        self._file = None if self._path is None else self._path.stat()
        self._read()
        if self.facts.get("format", FORMAT) != FORMAT:
            raise StoreError(f"{self._path}: was written by another version of tunefree; use that one")
        self._started, self._before = time.monotonic(), float(self.facts.get("clock", 0.0))

    def _disconnect(self) -> None:
        with self._lock, self._refusing():
            self._database.close()

    def _begin(self, model: Trained | None) -> None:
        """Save the model that a new store begins with; an old one must have begun with it, if there is one."""
        digest = None
        if model is not None and self.folder is not None:
            model.save(self.folder / ORIGIN)
            digest = digest_of(self.folder / ORIGIN)
            (self.folder / ORIGIN).unlink()
        if not self.versions:
            assert model is not None
            self.save(model, 0, "the model to begin with")
            self._state("origin", digest)
        elif digest not in (None, self.facts.get("origin")):
            remedy = "leave the model out to go on with what is there, or name another folder"
            raise ModelError(f"{self.folder}: began with another model; {remedy}")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the lock, so that other processes can write."""
        self._open.close()

    def _tidy(self) -> None:
        """Remove files that the journal does not name, and let the link be right: the process may have ended before."""
        if self.folder is None:
            return
        named = {self.file(version.number).name for version in self.versions}
        for path in (self.folder / VERSIONS).iterdir():
            if path.name not in named:
                path.unlink()
        link, target = self.folder / CURRENT, Path(VERSIONS) / self.file(self.versions[-1].number).name
        if not link.is_symlink() or link.readlink() != target:
            beside = self.folder / f"{CURRENT}.part"
            beside.unlink(missing_ok=True)
            beside.symlink_to(target)
            os.replace(beside, link)

    def file(self, number: int) -> Path:
        """The file of a version."""
        assert self.folder is not None
        return self.folder / VERSIONS / f"{number:06d}.model"

    def save(self, trained: Trained, sequence: int, reason: str) -> Version:
        """Save a model that has learned all events up to one, as the current version.

        If it cannot be saved, which raises a ModelError or a StoreError, the version before stays the current one.
        """
        number, created = 1 + max((version.number for version in self.versions), default=0), datetime.now(UTC)
        rows, loss = 0, math.nan
        for metrics in trained.progress.progressive[:1]:
            rows, loss = metrics.rows, metrics.mean_loss()
        known = None if math.isnan(loss) else loss
        version = Version(number, sequence, rows, known, created.isoformat(timespec="seconds"), reason)
        if self.folder is not None:
            (trained if trained.progress.complete else ended(trained)).save(self.file(number))
            handle = os.open(self.folder / VERSIONS, os.O_RDONLY)  # which brings the name of the file to the disk
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        with self.transaction():
            self.add_version(version, self._kept)
        self._tidy()
        return version

    def load(self, number: int) -> Trained:
        """A version that is kept."""
        if self.folder is None or number not in [version.number for version in self.versions]:
            kept = ", ".join(str(version.number) for version in self.versions)
            raise ModelError(f"there is no version {number}; those that are kept are {kept}")
        return Trained.load(self.file(number))

    def incoming(self, name: str) -> Trained:
        """A model that was put into the folder for incoming ones."""
        if self.folder is None:
            raise ModelError("there is no store, whose folder could have a model to take; name one by `output`")
        names = sorted(path.name for path in (self.folder / INCOMING).iterdir())
        if name not in names:
            remedy = nearest(name, names, "files there") if names else "put it there first"
            raise ModelError(f"the store's folder {INCOMING!r} has no file {name!r}; {remedy}")
        return Trained.load(self.folder / INCOMING / name)

    def current(self) -> Trained:
        """The current version, without the events that follow it."""
        return self.load(self.versions[-1].number)

    def _read(self) -> None:
        """Load the facts, the versions and the numbers of rows into memory."""
        self.facts: dict[str, Any] = dict(self._all("SELECT name, value FROM facts"))
        columns = "number, sequence, n_rows, loss, created, reason"
        self.versions = [Version(*values) for values in self._all(f"SELECT {columns} FROM versions ORDER BY number")]
        self.n_rows = {table: int(self._all(f"SELECT COUNT(*) FROM {table}")[0][0]) for table in DROPPED}

    def _now(self) -> float:
        """Seconds for which the store was open in all: no clock of a machine can jump in them."""
        return self._before + time.monotonic() - self._started

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            remedy = "make room, or restore the folder from a backup; nothing of this request was learned"
            raise StoreError(f"{self._path}: the journal cannot be used ({error}); {remedy}") from None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction: either all changes in it are written, or none."""
        with self._lock, self._refusing():
            self._check_place()
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                self._read()
                raise

    def _check_place(self) -> None:
        """Raise a StoreError if the file is no longer where it was: nothing that is written now would be there."""
        if self._path is not None and self._file is not None:
            try:
                is_there = os.path.samestat(self._path.stat(), self._file)
            except OSError:
                is_there = False
            if not is_there:
                raise StoreError(f"{self._path}: was moved or removed; put it back, or end the server")

    def _all(self, statement: str, *values: Any) -> list[Any]:
        with self._lock, self._refusing():
            return self._database.execute(statement, values).fetchall()

    def _state(self, name: str, value: Any) -> None:
        """Write a number or text down."""
        self._all("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, value)
        self.facts[name] = value

    def add(self, rows: Sequence[Row], remembered: Sequence[Remembered], ids: Iterable[str] = ()) -> int:
        """Write down rows to learn, which no longer wait under their ids; returns the number of the event."""
        packed = b"".join(map(_packed, remembered))
        statement = "INSERT INTO events (rows, remembered) VALUES (?, ?) RETURNING sequence"
        sequence = int(self._all(statement, as_text(rows), packed)[0][0])
        for id in ids:
            self._forget(id)
        return sequence

    def remove(self, sequences: Iterable[int]) -> None:
        """Remove events that could not be learned, and the answers to their requests."""
        for sequence in sequences:
            self._all("DELETE FROM events WHERE sequence = ?", sequence)
            answers = self._all("DELETE FROM requests WHERE sequence = ? RETURNING place", sequence)
            self.n_rows["requests"] -= len(answers)

    def events_after(self, sequence: int) -> Iterator[Event]:
        """Events that follow one, in order."""
        statement = "SELECT sequence, rows, remembered FROM events WHERE sequence > ? ORDER BY sequence LIMIT 10"
        while events := self._all(statement, sequence):
            for sequence, rows, remembered in events:
                yield Event(sequence, json.loads(rows), _unpacked(remembered))

    def keep_waiting(self, rows: Iterable[Waiting], most: int) -> int:
        """Keep rows until their labels come, the latest ``most``; returns how many were dropped for that."""
        for row in rows:
            packed = b"" if row.remembered is None else _packed(row.remembered)
            values = row.id, _WRITER.encode(row.row), packed, self._now()
            self._forget(row.id)  # so that it is the latest one
            self._all("INSERT INTO waiting (id, row, remembered, since) VALUES (?, ?, ?, ?)", *values)
            self.n_rows["waiting"] += 1
        return self._drop_oldest("waiting", most)

    def _drop_oldest(self, table: str, most: int) -> int:
        excess = self.n_rows[table] - most
        if excess > 0:
            self._all(f"DELETE FROM {table} WHERE place IN (SELECT place FROM {table} ORDER BY place LIMIT ?)", excess)
            self.n_rows[table] = most
        return max(excess, 0)

    def drop_old(self, seconds: float) -> int:
        """Drop answers, and rows that wait for labels, older than ``seconds``; returns the number of these rows."""
        now, before = self._now(), self.n_rows["waiting"]
        for table in DROPPED:
            self.n_rows[table] -= len(self._all(f"DELETE FROM {table} WHERE since < ? RETURNING place", now - seconds))
        self._state("clock", now)
        return before - self.n_rows["waiting"]

    def waiting(self, ids: Iterable[str]) -> dict[str, Waiting]:
        """The waiting rows among some ids, by id."""
        kept = {}
        for id in ids:
            for row, remembered in self._all("SELECT row, remembered FROM waiting WHERE id = ?", id):
                unpacked = _unpacked(remembered)
                kept[id] = Waiting(id, json.loads(row), unpacked[0] if unpacked else None)
        return kept

    def _forget(self, id: str) -> None:
        """A row no longer waits."""
        self.n_rows["waiting"] -= len(self._all("DELETE FROM waiting WHERE id = ? RETURNING place", id))

    def answered(self, request: str) -> tuple[str, Row] | None:
        """The digest of a request and its answer; None if it is new."""
        answers = self._all("SELECT digest, answer FROM requests WHERE name = ?", request)
        return (answers[0][0], json.loads(answers[0][1])) if answers else None

    def keep_answer(self, request: str, digest: str, answer: Row, sequence: int, most: int) -> None:
        """Keep the answer to a request with an event, or 0 for none, among the latest ``most``."""
        values = request, digest, json.dumps(answer), sequence, self._now()
        self._all("INSERT INTO requests (name, digest, answer, sequence, since) VALUES (?, ?, ?, ?, ?)", *values)
        self.n_rows["requests"] += 1
        self._drop_oldest("requests", most)

    def add_version(self, version: Version, most: int) -> None:
        """Write down a version; forget versions but the latest, and the events before all that are kept."""
        self._all("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?)", *version)
        self.versions = [*self.versions, version][-most:]
        self._all("DELETE FROM versions WHERE number < ?", self.versions[0].number)
        self._all("DELETE FROM events WHERE sequence <= ?", self.versions[0].sequence)
        self._state("clock", self._now())


def as_text(rows: Iterable[Row]) -> str:
    """Rows as JSON, one after the other: a call for all would let no other thread go on meanwhile."""
    return f"[{','.join(map(_WRITER.encode, rows))}]"


def _packed(remembered: Remembered) -> bytes:
    """The predictions for a row as bytes: a digest, a shape, numbers."""
    numbers = np.ascontiguousarray(remembered.predictions, "<f8")
    return np.array([remembered.digest, *numbers.shape], "<u8").tobytes() + numbers.tobytes()


def _unpacked(packed: bytes) -> list[Remembered]:
    rows, start = [], 0
    while start < len(packed):
        digest, *shape = np.frombuffer(packed, "<u8", 3, start).tolist()
        numbers = np.frombuffer(packed, "<f8", shape[0] * shape[1], start + 24).reshape(shape)
        rows.append(Remembered(digest, numbers))
        start += 24 + numbers.nbytes
    return rows
