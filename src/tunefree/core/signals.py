"""Signals are deferred until a row is fully learned, so that a model is usable after Ctrl-C."""

from __future__ import annotations

import signal
import threading
from _signal import getsignal  # avoids creating twenty enum members for each single row
from _signal import signal as set_signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_NAMES = ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2")
_NUMBERS = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
_handlers: dict[int, Callable[..., Any]] = {}  # handlers of the program, while signals are deferred
_waiting: dict[int, Any] = {}  # frame in which each waiting signal arrived


@contextmanager
def deferred() -> Iterator[None]:
    """Defer the handlers of signals to :func:`deliver` or the end of this context.

    A second signal of the same number is not deferred. Only the main thread handles signals, so other threads do
    nothing.

    >>> try:
    ...     with deferred():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("whole")
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    whole
    interrupted
    """
    if _handlers or threading.current_thread() is not threading.main_thread():
        yield
        return
    try:
        for number in _NUMBERS:
            handler = getsignal(number)
            if callable(handler):
                _handlers[number] = handler
                set_signal(number, _wait)
        yield
    finally:
        for number, handler in _handlers.items():
            set_signal(number, handler)
        handlers = dict(_handlers)
        _handlers.clear()
        _deliver(handlers)


def deliver() -> None:
    """Handle the waiting signals now."""
    if _waiting and threading.current_thread() is threading.main_thread():
        _deliver(dict(_handlers))


def _deliver(handlers: dict[int, Callable[..., Any]]) -> None:
    for number in list(_waiting):
        handlers[number](number, _waiting.pop(number))


def _wait(number: int, frame: Any) -> None:
    if number in _waiting:
        _waiting.pop(number)
        _handlers[number](number, frame)
    else:
        _waiting[number] = frame
