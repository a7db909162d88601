"""The folder of a served model: numbered versions, a journal of rows and targets, and a lock.

The journal is an SQLite database. Committed transactions survive the end of the process at any moment, uncommitted ones
leave no trace. SQLite's write-ahead log is written at each commit; with the durability ``"power"`` it is also flushed
to the disk, to survive a loss of power.

A version is first written as a file, and becomes valid with the transaction that adds it to the journal. So the process
may end at any moment: the model is the current version plus the later events of the journal.
"""

from __future__ import annotations

import json
import math
import os
import re
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
from tunefree.serving.events import log
from tunefree.serving.settings import CURRENT, INCOMING, JOURNAL, VERSIONS, is_store

ORIGIN = "origin.part"
WRITTEN = re.compile(r"\d{6,}\.model(\.\w+\.part)?")  # names of files that a store writes to VERSIONS

Row = dict[str, Any]
FORMAT = 3
SYNCHRONOUS = {"power": "FULL", "process": "NORMAL"}  # SQLite's setting for each durability
LOCK_TIMEOUT = 10.0  # seconds to wait for a lock of another process, such as a backup
REPLACED = "rolled back", "the incoming"  # first words of the reasons of versions that supersede earlier events
EXPIRING = ("waiting", "requests")  # tables whose old rows are dropped
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
    """A request could not be written to the store, and was not learned."""


class Waiting(NamedTuple):
    """A predicted row that waits for its label."""

    id: str
    row: Row
    remembered: Remembered | None


class Event(NamedTuple):
    """Rows that are learned together."""

    sequence: int
    rows: list[Row]
    remembered: list[Remembered]


class Version(NamedTuple):
    """A saved model."""

    number: int
    sequence: int  # sequence number of the last event that is learned or superseded
    n_rows: int  # number of learned rows
    loss: float | None  # mean progressive loss
    created: str  # ISO 8601
    reason: str


class Store:
    """The store of a served model in a folder, locked while it is open; without a folder it is in memory.

    A new store starts with ``model``. It keeps the latest ``kept`` versions, and the rows since the oldest of them; in
    memory, versions cannot be loaded. ``versions`` are sorted by age; the last is the current one. ``n_rows`` are the
    numbers of rows in the tables ``"waiting"`` and ``"requests"``. ``failure`` is the latest error of the journal,
    until a transaction succeeds. Threads may share a store, one transaction at a time.

    Raises a ModelError if the folder cannot be written or is locked by another process, or if there is neither a store
    nor a model. All methods raise a StoreError if the journal cannot be read or written.
    """

    def __init__(
        self, folder: Path | None, model: Trained | None = None, durability: str = "power", kept: int = 5
    ) -> None:
        self.folder, self._kept, self._lock, self._resources = folder, kept, threading.RLock(), ExitStack()
        self._path = None if folder is None else folder / JOURNAL
        self.failure: str | None = None
        try:
            if folder is not None:
                if model is None and not is_store(folder):
                    raise ModelError(f"{folder}: is no store of a model; name a model to begin one with")
                for part in (folder, folder / VERSIONS, folder / INCOMING):
                    make_folder(part)
                self._resources.enter_context(only_writer(folder / "lock", folder))
            self._connect(durability)
            self._begin(model)
            self._clean_up()
        except BaseException:
            self._resources.close()
            raise

    def _connect(self, durability: str) -> None:
        with self._store_errors():
            name = ":memory:" if self._path is None else str(self._path)
            self._database = sqlite3.connect(name, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False)
            self._resources.callback(self._disconnect)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute(f"PRAGMA synchronous = {SYNCHRONOUS[durability]}")
            self._database.executescript(_TABLES)
        self._file: Any = None if self._path is None else self._path.stat()
        self._read()
        if self.facts.get("format", FORMAT) != FORMAT:
            raise StoreError(f"{self._path}: was written by another version of tunefree; use that one")
        self._started, self._before = time.monotonic(), float(self.facts.get("clock", 0.0))

    def _disconnect(self) -> None:
        with self._lock, self._store_errors():
            self._database.close()

    def _begin(self, model: Trained | None) -> None:
        """Save the first model of a new store; an existing store goes on with its current version."""
        digest = None
        if model is not None and self.folder is not None:
            model.save(self.folder / ORIGIN)
            digest = digest_of(self.folder / ORIGIN)
            (self.folder / ORIGIN).unlink()
        if not self.versions:
            begun = set() if self.folder is None else {*(self.folder / VERSIONS).glob("*.model")}
            if self.folder is not None and not (self.folder / CURRENT).is_symlink():
                begun -= {self.file(1)}  # an earlier process was killed before the version was in the journal
            if begun:
                remedy = "restore it from a backup, or serve one of them with another folder"
                raise ModelError(f"{self._path}: lists no version, but {VERSIONS!r} has models; {remedy}")
            if model is None:  # an earlier process was killed before it saved the first version
                raise ModelError(f"{self.folder}: has no version of a model; name a model to begin with")
            self.save(model, 0, "the model to begin with")
            self._set_fact("origin", digest)
        elif digest not in (None, self.facts.get("origin")):
            remedy = f'copy it to {self.folder}/{INCOMING}, and POST {{"take": FILE}} to /versions'
            log("another model", problem=f"{self.folder} goes on with its versions; to serve the model, {remedy}")

    def close(self) -> None:
        """Close the journal, and release the lock."""
        self._resources.close()

    def _clean_up(self) -> None:
        """Remove files without an entry in the journal, and update the link, after an earlier process was killed."""
        if self.folder is None:
            return
        expected = {self.file(version.number).name for version in self.versions}
        link, target = self.folder / CURRENT, Path(VERSIONS) / self.file(self.versions[-1].number).name
        with self._store_errors():
            for path in (self.folder / VERSIONS).iterdir():
                if path.is_file() and path.name not in expected and WRITTEN.fullmatch(path.name):
                    path.unlink()
            if not link.is_symlink() or link.readlink() != target:
                temporary = self.folder / f"{CURRENT}.part"
                temporary.unlink(missing_ok=True)
                temporary.symlink_to(target)
                os.replace(temporary, link)

    def file(self, number: int) -> Path:
        """The file of a version."""
        assert self.folder is not None
        return self.folder / VERSIONS / f"{number:06d}.model"

    def save(self, trained: Trained, sequence: int, reason: str) -> Version:
        """Save a model that has learned all events up to ``sequence`` as the current version.

        If this fails with a ModelError or a StoreError, the previous version remains the current one.
        """
        number, created = 1 + max((version.number for version in self.versions), default=0), datetime.now(UTC)
        metrics = trained.progress.progressive[0]
        loss = None if math.isnan(metrics.mean_loss()) else metrics.mean_loss()
        version = Version(number, sequence, metrics.rows, loss, created.isoformat(timespec="seconds"), reason)
        if self.folder is not None:
            (trained if trained.progress.complete else ended(trained)).save(self.file(number))
            handle = os.open(self.folder / VERSIONS, os.O_RDONLY)  # flushing the folder makes the new file name durable
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        with self.transaction():
            self.add_version(version, self._kept)
        self._clean_up()
        return version

    def load(self, number: int) -> Trained:
        """Load a version."""
        if self.folder is None or number not in [version.number for version in self.versions]:
            kept = ", ".join(str(version.number) for version in self.versions)
            raise ModelError(f"there is no version {number}; those that are kept are {kept}")
        return Trained.load(self.file(number))

    def incoming(self, name: str) -> Trained:
        """Load a model from the folder for incoming models."""
        if self.folder is None:
            raise ModelError("there is no store, whose folder could have a model to take; name one by `output`")
        names = sorted(path.name for path in (self.folder / INCOMING).iterdir())
        if name not in names:
            remedy = nearest(name, names, "files there") if names else "put it there first"
            raise ModelError(f"the store's folder {INCOMING!r} has no file {name!r}; {remedy}")
        return Trained.load(self.folder / INCOMING / name)

    def latest(self) -> tuple[Trained, int]:
        """Load the latest version that is readable, and the sequence number after which events are to be replayed."""
        superseded = 0
        for version in self.versions[:0:-1]:
            try:
                return self.load(version.number), max(version.sequence, superseded)
            except ModelError as error:
                log("damaged", problem=f"{error}; the server goes on with an earlier version and the rows since then")
            if version.reason.startswith(REPLACED):
                superseded = max(version.sequence, superseded)
        return self.load(self.versions[0].number), max(self.versions[0].sequence, superseded)

    def _read(self) -> None:
        """Read the facts, the versions and the numbers of rows into memory."""
        self.facts: dict[str, Any] = dict(self._run("SELECT name, value FROM facts"))
        columns = "number, sequence, n_rows, loss, created, reason"
        self.versions = [Version(*values) for values in self._run(f"SELECT {columns} FROM versions ORDER BY number")]
        self.n_rows = {table: int(self._run(f"SELECT COUNT(*) FROM {table}")[0][0]) for table in EXPIRING}

    def _now(self) -> float:
        """Total seconds for which the store was open, which changes of the system clock do not affect."""
        return self._before + time.monotonic() - self._started

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        """Raise errors of the journal as StoreErrors; the latest is its failure until a transaction succeeds."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            remedy = "make room, or put the folder back or restore it from a backup"
            problem = f"the journal cannot be used ({error}); {remedy}; nothing of this request was learned"
            self.failure = f"{self._path}: {problem}"
            log("not written", problem=self.failure)
            raise StoreError(self.failure) from None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction, whose changes are written all or not at all."""
        with self._lock, self._store_errors():
            if self._path is not None and not os.path.samestat(self._path.stat(), self._file):
                raise FileNotFoundError("the file was moved or removed, so that new rows would be lost")
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
                self.failure = None
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                self._read()
                raise

    def _run(self, statement: str, *values: Any) -> list[Any]:
        with self._lock, self._store_errors():
            return self._database.execute(statement, values).fetchall()

    def _set_fact(self, name: str, value: Any) -> None:
        self._run("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, value)
        self.facts[name] = value

    def add(self, rows: Sequence[Row], remembered: Sequence[Remembered], ids: Iterable[str] = ()) -> int:
        """Add rows to learn as an event, and remove waiting rows by ``ids``; returns the sequence number."""
        packed = b"".join(map(_packed, remembered))
        statement = "INSERT INTO events (rows, remembered) VALUES (?, ?) RETURNING sequence"
        sequence = int(self._run(statement, as_text(rows), packed)[0][0])
        for id in ids:
            self._stop_waiting(id)
        return sequence

    def remove(self, sequences: Iterable[int]) -> None:
        """Remove events that could not be learned, and the answers to their requests."""
        for sequence in sequences:
            self._run("DELETE FROM events WHERE sequence = ?", sequence)
            answers = self._run("DELETE FROM requests WHERE sequence = ? RETURNING place", sequence)
            self.n_rows["requests"] -= len(answers)

    def events_after(self, sequence: int) -> Iterator[Event]:
        """The events after ``sequence``, in order."""
        statement = "SELECT sequence, rows, remembered FROM events WHERE sequence > ? ORDER BY sequence LIMIT 10"
        while events := self._run(statement, sequence):
            for sequence, rows, remembered in events:
                try:
                    event = Event(sequence, json.loads(rows), _unpacked(remembered))
                except ValueError as error:
                    problem = f"event {sequence} of the journal is damaged ({error})"
                    raise StoreError(f"{self._path}: {problem}; restore the folder from a backup") from None
                yield event

    def keep_waiting(self, rows: Iterable[Waiting], most: int) -> int:
        """Add rows that wait for labels, and keep the latest ``most``; returns the number of dropped rows."""
        for row in rows:
            packed = b"" if row.remembered is None else _packed(row.remembered)
            values = row.id, _WRITER.encode(row.row), packed, self._now()
            self._stop_waiting(row.id)  # so that the row becomes the latest one
            self._run("INSERT INTO waiting (id, row, remembered, since) VALUES (?, ?, ?, ?)", *values)
            self.n_rows["waiting"] += 1
        return self._drop_oldest("waiting", most)

    def _drop_oldest(self, table: str, most: int) -> int:
        excess = self.n_rows[table] - most
        if excess > 0:
            self._run(f"DELETE FROM {table} WHERE place IN (SELECT place FROM {table} ORDER BY place LIMIT ?)", excess)
            self.n_rows[table] = most
        return max(excess, 0)

    def drop_old(self, seconds: float) -> int:
        """Drop answers and waiting rows older than ``seconds``; returns the number of dropped waiting rows."""
        now, before = self._now(), self.n_rows["waiting"]
        for table in EXPIRING:
            self.n_rows[table] -= len(self._run(f"DELETE FROM {table} WHERE since < ? RETURNING place", now - seconds))
        self._set_fact("clock", now)
        return before - self.n_rows["waiting"]

    def waiting(self, ids: Iterable[str]) -> dict[str, Waiting]:
        """The waiting rows with these ids, by id."""
        kept = {}
        for id in ids:
            for row, remembered in self._run("SELECT row, remembered FROM waiting WHERE id = ?", id):
                unpacked = _unpacked(remembered)
                kept[id] = Waiting(id, json.loads(row), unpacked[0] if unpacked else None)
        return kept

    def _stop_waiting(self, id: str) -> None:
        """Remove a waiting row, if there is one."""
        self.n_rows["waiting"] -= len(self._run("DELETE FROM waiting WHERE id = ? RETURNING place", id))

    def answered(self, request: str) -> tuple[str, Row] | None:
        """The digest of a request and its answer; None if it is new."""
        answers = self._run("SELECT digest, answer FROM requests WHERE name = ?", request)
        return (answers[0][0], json.loads(answers[0][1])) if answers else None

    def keep_answer(self, request: str, digest: str, answer: Row, sequence: int, most: int) -> None:
        """Store the answer to a request and its event (0 for none), and keep the latest ``most`` answers."""
        values = request, digest, json.dumps(answer), sequence, self._now()
        self._run("INSERT INTO requests (name, digest, answer, sequence, since) VALUES (?, ?, ?, ?, ?)", *values)
        self.n_rows["requests"] += 1
        self._drop_oldest("requests", most)

    def add_version(self, version: Version, most: int) -> None:
        """Add a version, keep the latest ``most``, and remove events that the oldest of these has learned."""
        self._run("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?)", *version)
        self.versions = [*self.versions, version][-most:]
        self._run("DELETE FROM versions WHERE number < ?", self.versions[0].number)
        self._run("DELETE FROM events WHERE sequence <= ?", self.versions[0].sequence)
        self._set_fact("clock", self._now())


def as_text(rows: Iterable[Row]) -> str:
    """Rows as a JSON array; encoding row by row lets other threads run in between."""
    return f"[{','.join(map(_WRITER.encode, rows))}]"


def _packed(remembered: Remembered) -> bytes:
    """The predictions for a row as bytes: digest, shape, numbers."""
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
