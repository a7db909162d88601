"""A request to end a training early: after the current batch, so that the model can be saved."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from tunefree.stream.source import Source
from tunefree.training.callbacks import Callback, Step

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
PATIENCE = 5.0  # seconds from a stop request until training ends even if the model cannot be saved
INTERRUPTED = 128  # plus the signal number is the exit status after a signal, as in shells


@contextmanager
def handling(handle: Callable[[int, Any], None], ends_process: Callable[[], bool]) -> Iterator[None]:
    """A context in which a function handles signals; ignored ones stay ignored, as under ``nohup``.

    A shutdown sends several signals. So if the process ends, those after the context are ignored, except Ctrl-C: the
    model must still be saved, and the last message printed.
    """
    is_main = threading.current_thread() is threading.main_thread()  # only it can set signal handlers
    handlers = {number: signal.getsignal(number) for number in SIGNALS if is_main}
    replaced = {number: handler for number, handler in handlers.items() if handler not in (signal.SIG_IGN, None)}
    for number in replaced:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, signal.SIG_IGN if ends_process() and number != signal.SIGINT else handler)


class Stopped(Exception):  # noqa: N818 - no error
    """No more rows are read, because the end of the training was requested."""


class Interrupted(KeyboardInterrupt):
    """A signal ended a training."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number, self.status = number, INTERRUPTED + number


class Stop(Callback):
    """A request to end a training, from a signal handler or another thread.

    The reader thread looks for it after each wait for rows, so that no row passes once another thread has seen both the
    request and the wait.
    """

    may_end = False

    def __init__(self) -> None:
        self.number = 0  # signal of the request; 0 before any request
        self.asked = 0.0  # time of the request in seconds
        self.learns = False  # whether there is anything to save
        self.reader_waits = False  # whether the reader waits for rows of the source
        self._ends_process = False  # whether a signal other than Ctrl-C arrived, after which the process ends

    def ask(self, number: int = signal.SIGTERM) -> None:
        """Request the end of the training; a signal handler may call it at any time."""
        if not self.number:
            self.number, self.asked = number, time.monotonic()

    def step(self, trained: Any, step: Step) -> None:
        """Raise Interrupted if it takes too long after a request to learn the batch and save the model."""
        if self.number and not step.batch.is_last and time.monotonic() > self.asked + PATIENCE:
            raise Interrupted("the training was asked to end amid a block of rows", self.number)

    def through(self, chunks: Iterator[Any]) -> Iterator[Any]:
        """The chunks of a source; raises Stopped after a request."""
        while not self.number:
            self.reader_waits = True
            try:
                chunk = next(chunks, None)
            finally:
                self.reader_waits = False
                if self.number:
                    raise Stopped
            if chunk is None:
                return
            yield chunk
        raise Stopped

    def on_signals(self) -> AbstractContextManager[None]:
        """A context in which signals request the end of the training; only in the main thread.

        Before anything is learned, a signal interrupts training at once; a second Ctrl-C always does.
        """
        return handling(self._handle, lambda: self._ends_process)

    def _handle(self, number: int, _frame: Any) -> None:
        is_second = self.number and number == signal.SIGINT
        self._ends_process = self._ends_process or number != signal.SIGINT
        if self.learns and not is_second:
            self.ask(number)
        else:
            raise Interrupted("interrupted; nothing was saved", number)


@dataclass(frozen=True)
class Stoppable(Source):
    """A source whose rows end when the end of a training is requested."""

    stop: Stop = field(default_factory=Stop)

    def chunks(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        return self.stop.through(super().chunks(*arguments, **options))
