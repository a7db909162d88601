"""A challenger: a process of its own, in which another model learns the rows of the journal after the model served.

The journal is all that the two have in common. So the challenger costs the model that is served no time but to write
down the losses of its rows, and the rows that the challenger has not learned yet wait on the disk. After any end it
goes on from the model that it saved last, with the events that follow: it has learned each row that was acknowledged,
once.

Each row's loss before it was learned is compared with that of the model that is served
(:mod:`tunefree.theory.superiority`). Where a label comes late, the model that is served may be judged by what its
members predicted when the row came. The challenger is judged by what it predicted when it saw the row wait, and such a
row is not compared if it did not see it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import machine
from tunefree.core.errors import DataError, ModelError, TunefreeError
from tunefree.core.locks import only_writer
from tunefree.model_files.trained import Trained, ended
from tunefree.pool.published import remembered
from tunefree.serving.journal import Event, Journal, Row
from tunefree.serving.place import CHAMPION_SINCE, Place
from tunefree.serving.rows import Reader, going_on, is_cut
from tunefree.serving.settings import CHALLENGER, IGNORE, JOURNAL, Admission
from tunefree.stream.batch import Refused
from tunefree.stream.jsonlines import flattened
from tunefree.stream.notation import ColumnTypes
from tunefree.theory.superiority import Superiority
from tunefree.training.training import learn_batch

TOGETHER = 2048  # rows that are learned together, about
LOWER = 10  # priority, than that of the process that predicts, whose thread that learns has one 5 lower
PAUSE = 0.2  # seconds between looks for events
RETRY = 30.0  # seconds until a model that could not be saved is tried again
PATIENCE = 60.0  # seconds that the process before has to end


class Following(NamedTuple):
    """How a challenger follows: what the service says to the process first."""

    folder: str  # of the store
    id: str
    unknown_columns: str  # "ignore" or "learn"
    save_every: int  # rows
    remember: int  # rows that wait for their labels
    column_types: ColumnTypes


class Challenger:
    """A model that follows the journal of a store."""

    def __init__(self, following: Following) -> None:
        self._folder, self._following = Path(following.folder), following
        place = Place.read(self._folder)
        if place is None:
            raise ModelError(f"{self._folder}: has no challenger")
        self.place, self._saved, self._retry = place, place.sequence, 0.0
        self._trained = going_on(Trained.load(place.file(self._folder)), following.column_types)
        self._reader = Reader(Admission(id=following.id, unknown_columns=IGNORE))
        self._journal = Journal(self._folder / JOURNAL)
        self._unsaved = 0  # rows
        self._waiting: dict[str, np.ndarray] = {}  # what was predicted of rows that wait for their labels
        self._last_waiting = self._journal.last_waiting()

    def close(self) -> None:
        """Save what was learned, and end."""
        self.save()
        self._journal.close()

    def state(self) -> dict[str, Any]:
        """How far it is, and how far its model is saved."""
        return {"saved": self._saved, **asdict(self.place)}

    def follow(self) -> bool:
        """Learn the next events, if there are any; returns whether there were."""
        self._predict_waiting()
        events, n_rows = list[Event](), 0
        for event in self._journal.events_after(self.place.sequence):
            if event.losses is None or n_rows >= TOGETHER:
                break
            events.append(event)
            n_rows += len(event.rows)
        if events:
            self._learn(events)
        if self._unsaved >= self._following.save_every and time.monotonic() >= self._retry:
            self.save()
        return bool(events)

    def save(self) -> None:
        """Save what was learned; what cannot be saved is learned again after the next start."""
        if self._saved == self.place.sequence:
            return
        try:
            self.place.save(self._folder, ended(self._trained))
            self._saved, self._unsaved = self.place.sequence, 0
        except TunefreeError as error:
            self._retry = time.monotonic() + RETRY
            print(json.dumps({"cannot be saved": str(error)}), flush=True)

    def _learn(self, events: list[Event]) -> None:
        """Learn events together, and compare; what it cannot learn is left out."""
        rows = [row for event in events for row in event.rows]
        if is_cut(self._trained, self._reader, events, self._following.unknown_columns):
            self._learn_one_by_one(events)
            return
        try:
            batch = self._reader.learned(self._trained, rows, self._following.unknown_columns)
        except DataError:
            if len(events) > 1:
                self._learn_one_by_one(events)
            else:
                self.place.refused, self.place.sequence = self.place.refused + 1, events[0].sequence
            return
        step = learn_batch(self._trained, batch)
        late = self._losses_of_late_rows(rows, step) if any(event.remembered for event in events) else None
        start, champion_since = 0, int(self._journal.fact(CHAMPION_SINCE, 0))
        for event in events:
            if self.place.since < champion_since < event.sequence:
                self.place.since, self.place.comparison = champion_since, Superiority()
            part = slice(start, start + len(event.rows))
            of_challenger = late if late is not None and event.remembered else step.row_losses
            assert event.losses is not None
            self.place.comparison.add(event.losses, of_challenger[part], step.piece.counts[part])
            start = part.stop
        self.place.sequence = events[-1].sequence
        self.place.rows, self._unsaved = self.place.rows + len(rows), self._unsaved + len(rows)

    def _learn_one_by_one(self, events: list[Event]) -> None:
        for event in events:
            self._learn([event])

    def _losses_of_late_rows(self, rows: list[Row], step: Any) -> np.ndarray:
        """The losses of what was predicted as rows were seen to wait; NaN where they were not seen."""
        predictions = np.full(step.predictions.shape, np.nan)
        for place, row in enumerate(rows):
            kept = self._waiting.get(self._key(row))
            if kept is not None and kept.shape == predictions[place].shape:
                predictions[place] = kept
        losses = self._trained.model.losses(step.piece.y, np.nan_to_num(predictions))
        return np.where(np.isnan(predictions).any(axis=1), np.nan, losses)

    def _predict_waiting(self) -> None:
        """Predict rows that wait for their labels, as of now; the model does not know of it."""
        while rows := self._journal.waiting_after(self._last_waiting):
            self._last_waiting = rows[-1][0]
            kept = self._predicted([row for _, row in rows])
            self._waiting |= kept
            for key in list(self._waiting)[: max(len(self._waiting) - self._following.remember, 0)]:
                del self._waiting[key]

    def _predicted(self, rows: list[Row]) -> dict[str, np.ndarray]:
        keys = [self._key(row) for row in rows]
        try:
            batch, _ = self._reader.batch(self._trained, rows, Refused(target=self._trained.encoder.target))
        except DataError:
            return {} if len(rows) == 1 else {key: of for row in rows for key, of in self._predicted([row]).items()}
        predictions = self._trained.model.predict(batch.rows)
        remembered(self._trained.model, batch.rows)
        return dict(zip(keys, predictions, strict=True))

    def _key(self, row: Row) -> str:
        """What the model sees of a row."""
        names, flat = {column.name for column in self._trained.encoder.columns}, flattened(row)
        return json.dumps(sorted((name, cell) for name, cell in flat.items() if name in names and cell is not None))


def main() -> None:
    """Follow until standard input ends; each line of it names an event up to which the model is to be saved."""
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", None)):
        if number is not None:
            signal.signal(number, signal.SIG_IGN)  # it ends when the service ends
    if hasattr(os, "nice"):
        os.nice(LOWER)
    machine.share_freed_memory()
    options = json.loads(sys.stdin.readline())
    following = Following(**options | {"column_types": ColumnTypes(*options["column_types"])})
    asked: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()
    try:
        with _alone(Path(following.folder)):
            _run(Challenger(following), asked)
    except Exception as error:
        print(json.dumps({"cannot learn": str(error) if isinstance(error, TunefreeError) else repr(error)}), flush=True)


def _listen(asked: queue.SimpleQueue[int | None]) -> None:
    for line in sys.stdin:
        asked.put(json.loads(line))
    asked.put(None)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait for the process before, which may be saving its model still."""
    until = time.monotonic() + PATIENCE
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(only_writer(folder / CHALLENGER / "lock", folder / CHALLENGER))
                break
            except ModelError:
                if time.monotonic() > until:
                    raise
                time.sleep(PAUSE)
        yield


def _run(challenger: Challenger, asked: queue.SimpleQueue[int | None]) -> None:
    """Follow, and save when that is asked for."""
    wanted, is_over, pause = 0, False, 0.0
    while not is_over:
        print(json.dumps(challenger.state()), flush=True)
        with suppress(queue.Empty):
            number = asked.get(timeout=pause) if pause else asked.get_nowait()
            is_over, wanted = number is None, max(wanted, number or 0)
        pause = 0.0 if challenger.follow() else PAUSE
        if wanted and challenger.place.sequence >= wanted:
            challenger.save()
            wanted = 0
    challenger.close()


if __name__ == "__main__":
    main()
