"""Threads in which members learn, and threads in which generations are grown.

Compiled passes let go of Python's lock, so threads are all that is needed. Nothing depends on their number or order:
members do not know each other.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import numpy.random  # noqa: F401 - now: NumPy imports it at its first use, in which two threads disturb each other

_here = threading.local()
FEW = 256  # rows that do not pay for a thread
LOWER = 5  # than the priority before


def count() -> int:
    """The number of threads that may work for this one: one for each processor, or the limit of :func:`at_most`."""
    most = getattr(_here, "most", None)
    if callable(most):
        most = _here.most = most()
    return most or os.cpu_count() or 1


@contextmanager
def at_most(n: int | Callable[[], int]) -> Iterator[None]:
    """Let no more than ``n`` threads work for this one; a function is asked once, where there is work for several.

    >>> with at_most(3):
    ...     count()
    3
    """
    before = getattr(_here, "most", None)
    _here.most = n
    try:
        yield
    finally:
        _here.most = before


def lower_priority() -> None:
    """Let this thread, and those that work for it, give way to others of the process; on Linux, where threads can."""
    if sys.platform == "linux":
        lower = min(os.getpriority(os.PRIO_PROCESS, 0) + LOWER, 19)  # 0 is this thread, 19 the lowest there is
        with suppress(OSError):  # where a sandbox does not allow it
            os.setpriority(os.PRIO_PROCESS, 0, lower)
        _here.is_lower = True


def each(function: Any, arguments: Iterable[tuple[Any, ...]], rows: int) -> None:
    """Call a function for each member, in threads where there are rows enough; none of these begins others."""
    left = deque(arguments)  # threads take one after another: to hand out each by itself costs as much as some rows
    if len(left) < 2 or rows < FEW or getattr(_here, "works", False) or count() == 1:
        for argument in left:
            function(*argument)
        return

    def work() -> None:
        while True:
            try:
                argument = left.popleft()
            except IndexError:  # a thread took the last one
                return
            function(*argument)

    futures = [_threads(count(), "tunefree-member", _is_lower()).submit(work) for _ in range(min(count(), len(left)))]
    try:
        for future in futures:
            future.result()
    except BaseException:
        left.clear()
        wait(futures)  # no thread goes on with what the caller takes for ended
        raise


class Turn:
    """A lock that belongs to one object: whoever copies the object gets another.

    >>> import copy
    >>> turn = Turn()
    >>> with turn, copy.deepcopy(turn):
    ...     print("two objects")
    two objects
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Turn], tuple[()]]:
        return Turn, ()


def now(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """The result of a function that is called at once."""
    future: Future[Any] = Future()
    future.set_result(function(*arguments))
    return future


def beside(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Call a function in a thread of its own beside this one; at once, in this thread, if only one may be used."""
    if count() == 1:
        return now(function, *arguments)
    return _threads(2, "tunefree-grower", _is_lower()).submit(function, *arguments)


@cache
def one_for_products() -> Any:
    """A context in which BLAS uses one thread: products are made in our own threads, or are too small for several.

    So how they are cut, and what they give to the last bit, never depends on the number of threads.
    """
    return _Limit()


class _Limit:
    """A limit that many threads may ask for: the first sets it, and the last takes it away."""

    def __init__(self) -> None:
        self.lock, self.askers, self.limiter = threading.Lock(), 0, None

    def __enter__(self) -> None:
        with self.lock:
            if self.askers == 0:
                _take_control()
                self.limiter = _libraries().limit(limits=1, user_api="blas")
            self.askers += 1

    def __exit__(self, *_: Any) -> None:
        with self.lock:
            self.askers -= 1
            if self.askers == 0 and self.limiter is not None:
                _take_control()
                self.limiter.restore_original_limits()
                _take_control()


def _take_control() -> None:
    """Let any thread set the limit: threadpoolctl, from 3.8 on, ignores all threads but the first to set one."""
    for library in _libraries().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _is_lower() -> bool:
    return getattr(_here, "is_lower", False)


@cache
def _threads(n: int, name: str, are_lower: bool) -> ThreadPoolExecutor:
    """Threads; each has the priority of the one that starts it."""
    return ThreadPoolExecutor(n, name, lambda: setattr(_here, "works", True))


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_threads.cache_clear)
    os.register_at_fork(after_in_child=one_for_products.cache_clear)
