"""What a service knows of its challenger, which is another process (:mod:`tunefree.serving.challenger`)."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tunefree.core.errors import ModelError
from tunefree.model_files.trained import Trained
from tunefree.serving.challenger import Following
from tunefree.serving.journal import Row
from tunefree.serving.place import Place
from tunefree.serving.store import Store

ENDING = 60.0  # seconds that the process has to save its model
RESTART = 10.0  # seconds until a process that was killed is started again
LARGEST = 700.0  # logarithm of evidence that is told


class Shadow:
    """A process that follows a store, which keeps the events that follow the last one up to which it is saved.

    Attributes
    ----------
    place : Place
        How far the challenger is.
    broken : str or None
        Why it does not learn any more.
    failure : str or None
        Why it could not be saved last.
    """

    def __init__(self, following: Following, store: Store, tell: Callable[..., None]) -> None:
        place = Place.read(Path(following.folder))
        assert place is not None
        self.place, self._saved, self._store, self._tell = place, place.sequence, store, tell
        self._changed, self._is_ending = threading.Condition(), threading.Event()
        self._following, self._is_running = following, False
        self.broken: str | None = None
        self.failure: str | None = None
        self._process = self._started()
        self._reading = threading.Thread(target=self._read, name="tunefree-challenger", daemon=True)
        self._reading.start()

    def _started(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "ignore", "-m", "tunefree.serving.challenger"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        _say(process, self._following._asdict())
        return process

    def _read(self) -> None:
        """Take note of what the process says until it ends; one that was killed is started again."""
        while True:
            assert self._process.stdout is not None
            with self._process.stdout as lines:
                for line in lines:
                    if line.endswith("\n"):  # it may have been killed in between
                        self._take(json.loads(line))
            status = self._process.wait()
            if self._is_ending.is_set():
                return
            with self._changed:
                self.broken = self.broken or f"its process ended with status {status}"
                self._changed.notify_all()
            self._tell("challenger ended", problem=self.broken)
            if status >= 0 or self._is_ending.wait(RESTART):
                return
            with self._changed:
                if self._is_ending.is_set():
                    return
                self._process, self.broken = self._started(), None

    def _take(self, said: dict[str, Any]) -> None:
        with self._changed:
            if "cannot learn" in said:
                self.broken = said["cannot learn"]
            elif "cannot be saved" in said:
                self.failure = said["cannot be saved"]
                self._tell("challenger not saved", problem=self.failure)
            else:
                saved, self._is_running = said.pop("saved"), True
                self.place = Place.of(said)
                if saved != self._saved:
                    self._saved = self._store.needed_after = saved
                    self.failure = None
            self._changed.notify_all()

    def wait_for_start(self, seconds: float) -> None:
        """Wait until it follows.

        Raises
        ------
        ModelError
            If it does not, in time.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_running or self.broken, seconds)
        if not self._is_running:
            raise ModelError(f"the challenger cannot be followed: {self.broken or 'it has not started yet'}")

    def model(self, sequence: int, seconds: float) -> Trained:
        """The model as it is once it has learned all events up to one.

        Raises
        ------
        ModelError
            If it is not so far in time, or cannot be saved.
        """
        self.failure = None
        _say(self._process, sequence)
        with self._changed:
            self._changed.wait_for(lambda: self._saved >= sequence or self.broken or self.failure, seconds)
        if self._saved >= sequence:
            return Trained.load(self.place.file(Path(self._following.folder)))
        problem = self.broken or self.failure or f"it has not learned all rows yet after {seconds:g} seconds"
        raise ModelError(f"the challenger {self.place.name} cannot be promoted: {problem}")

    def close(self) -> None:
        """Let the process save its model, and end."""
        with self._changed:
            self._is_ending.set()
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(ENDING)
        except subprocess.TimeoutExpired:  # nothing is lost: the journal has what it has learned since
            self._process.kill()
        self._reading.join()

    def state(self) -> Row:
        """How the challenger compares with the model that is served, on the rows that both predicted."""
        comparison = self.place.comparison
        served, challenger = comparison.means()
        worse, better = (math.exp(min(log, LARGEST)) for log in comparison.log_evidence())
        return {
            "name": self.place.name,
            "rows learned here": self.place.rows,
            "requests that it could not learn": self.place.refused,
            "rows compared": comparison.rows,
            "loss": None if math.isnan(challenger) else challenger,
            "loss of the served model": None if math.isnan(served) else served,
            "evidence that it is better": better,
            "evidence that it is worse": worse,
            "is better": comparison.is_second_better() or (False if comparison.is_first_better() else None),
            "cannot learn": self.broken,
            "cannot be saved": self.failure,
        }


def _say(process: subprocess.Popen[str], message: Any) -> None:
    assert process.stdin is not None
    with suppress(OSError):  # if it has ended, its output says so
        print(json.dumps(message), file=process.stdin, flush=True)
