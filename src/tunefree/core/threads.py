"""Threads in which members learn, and threads in which generations grow.

Compiled passes release the GIL, so threads suffice. Results do not depend on their number or order, since members are
independent of each other.
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

import numpy.random  # noqa: F401 - NumPy imports it lazily, which is not thread-safe

_local = threading.local()
FEW = 256  # rows; fewer are not worth a thread
LOWER = 5  # increment of the nice value


def count() -> int:
    """The number of threads that may work for this one: the number of processors, or the limit of :func:`at_most`."""
    limit = getattr(_local, "most", None)
    if callable(limit):
        limit = _local.most = limit()
    return limit or os.cpu_count() or 1


@contextmanager
def at_most(n: int | Callable[[], int]) -> Iterator[None]:
    """Limit the number of threads that work for this one; a function is called once, at the first use of threads.

    >>> with at_most(3):
    ...     count()
    3
    """
    previous = getattr(_local, "most", None)
    _local.most = n
    try:
        yield
    finally:
        _local.most = previous


def lower_priority() -> None:
    """Lower the priority of this thread and of the threads that work for it, on Linux."""
    if sys.platform == "linux":
        lower = min(os.getpriority(os.PRIO_PROCESS, 0) + LOWER, 19)  # 0 is this thread, 19 the lowest priority
        with suppress(OSError):  # a sandbox may forbid it
            os.setpriority(os.PRIO_PROCESS, 0, lower)
        _local.is_lower = True


def each(function: Any, arguments: Iterable[tuple[Any, ...]], rows: int) -> None:
    """Call a function for each member, in threads if there are enough rows; these threads do not start others."""
    queue = deque(arguments)  # threads take arguments from the queue: submitting each call separately is slower
    if len(queue) < 2 or rows < FEW or getattr(_local, "works", False) or count() == 1:
        for argument in queue:
            function(*argument)
        return

    def work() -> None:
        while True:
            try:
                argument = queue.popleft()
            except IndexError:  # a thread took the last one
                return
            function(*argument)

    futures = [_pool(count(), "tunefree-member", _is_lower()).submit(work) for _ in range(min(count(), len(queue)))]
    try:
        for future in futures:
            future.result()
    except BaseException:
        queue.clear()
        wait(futures)  # no thread continues after the caller has failed
        raise


class Turn:
    """A lock that belongs to one object; a copy of the object has a new lock.

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
    """A future with the result of a function that is called immediately."""
    future: Future[Any] = Future()
    future.set_result(function(*arguments))
    return future


def beside(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Call a function in a separate thread, or immediately in this thread if only one may be used."""
    if count() == 1:
        return now(function, *arguments)
    return _pool(2, "tunefree-grower", _is_lower()).submit(function, *arguments)


@cache
def one_for_products() -> Any:
    """A context in which BLAS uses one thread: products run in our own threads, or are too small for several.

    So the results of products are bit-identical for any number of threads.
    """
    return _Limit()


class _Limit:
    """A limit shared by threads: the first one sets it, and the last one removes it."""

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
    """Let any thread set the limit: threadpoolctl >= 3.8 ignores all threads except the first that sets one."""
    for library in _libraries().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _is_lower() -> bool:
    return getattr(_local, "is_lower", False)


@cache
def _pool(n: int, name: str, are_lower: bool) -> ThreadPoolExecutor:
    """A pool of threads; each inherits the priority of the thread that starts it."""
    return ThreadPoolExecutor(n, name, lambda: setattr(_local, "works", True))


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_pool.cache_clear)
    os.register_at_fork(after_in_child=one_for_products.cache_clear)
