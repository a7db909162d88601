"""A request to end a training early: after the current batch, so that the model can be saved."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tunefree.stream.source import Source
from tunefree.training.callbacks import Callback, Step

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
PATIENCE = 5.0  # seconds until a training that was asked to end does so though its model cannot be saved
INTERRUPTED = 128  # and the number of the signal are the status of a command that a signal ended, as shells have it


class Stopped(Exception):  # noqa: N818 - no error
    """No more rows are read, because the training was asked to end."""


class Interrupted(KeyboardInterrupt):
    """A signal ended a training."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number, self.status = number, INTERRUPTED + number


class Stop(Callback):
    """Asks a training to end, from a handler of signals or another thread; no row passes while its gate is held."""

    may_end = False

    def __init__(self) -> None:
        self.number = 0  # of the signal that asked; 0 as long as none did
        self.asked = 0.0  # when it did, in seconds
        self.learns = False  # whether there is anything to save
        self._gate, self._waits = threading.Lock(), False
        self._ends = False  # whether a signal other than Ctrl-C came, after which the process ends

    def ask(self, number: int = signal.SIGTERM) -> None:
        """Ask the training to end; a handler of signals may call it at any time."""
        if not self.number:
            self.number, self.asked = number, time.monotonic()

    def step(self, trained: Any, step: Step) -> None:
        """Raise Interrupted if it takes too long until the batch is learned and the model can be saved."""
        if self.number and not step.batch.is_last and time.monotonic() > self.asked + PATIENCE:
            raise Interrupted("the training was asked to end amid a block of rows", self.number)

    def through(self, chunks: Iterator[Any]) -> Iterator[Any]:
        """The chunks of a source, and then Stopped if the training is asked to end."""
        while True:
            self._set(waits=True)
            try:
                chunk = next(chunks, None)
            finally:
                self._set(waits=False)
            if chunk is None:
                return
            yield chunk

    def _set(self, waits: bool) -> None:
        with self._gate:
            self._waits = waits and not self.number
            if self.number:
                raise Stopped

    @contextmanager
    def paused(self) -> Iterator[bool]:
        """Let no row pass; whether the reader waits for rows."""
        with self._gate:
            yield self._waits

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Signals ask the training to end, from the main thread.

        As long as there is nothing to learn they interrupt it at once, and a second Ctrl-C does so at any time.
        """
        is_main = threading.current_thread() is threading.main_thread()  # to which alone handlers are given
        before = {number: signal.getsignal(number) for number in SIGNALS if is_main}
        # Signals that are ignored, as of a command under ``nohup``, stay so.
        kept = {number: handler for number, handler in before.items() if handler not in (signal.SIG_IGN, None)}
        for number in kept:
            signal.signal(number, self._handle)
        try:
            yield
        finally:
            for number, handler in kept.items():
                # a system that shuts down sends several, and the line that says what was saved is still to come
                signal.signal(number, signal.SIG_IGN if self._ends and number != signal.SIGINT else handler)

    def _handle(self, number: int, _frame: Any) -> None:
        is_second = self.number and number == signal.SIGINT
        self._ends = self._ends or number != signal.SIGINT
        if self.learns and not is_second:
            self.ask(number)
        else:
            raise Interrupted("interrupted; nothing was saved", number)


@dataclass(frozen=True)
class Stoppable(Source):
    """A source whose rows end where a training is asked to."""

    stop: Stop = field(default_factory=Stop)

    def chunks(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        return self.stop.through(super().chunks(*arguments, **options))
