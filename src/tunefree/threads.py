"""Threads that members learn in, and one that mixes what they predicted while they learn on.

Compiled passes let go of Python's lock, so threads are all that is needed. Nothing depends on their number or order:
members do not know each other, and what is asked for later is done in the order in which it is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

FEW = 256  # rows that do not pay for a thread


def each(function: Any, arguments: Iterable[tuple[Any, ...]], rows: int) -> None:
    """Call a function for each member, in threads where there are rows enough to pay for them."""
    if rows < FEW:
        for argument in arguments:
            function(*argument)
    else:
        for future in [_workers().submit(function, *argument) for argument in arguments]:
            future.result()


def later(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Call a function in a thread, in the order in which calls are asked for."""
    return _judges().submit(function, *arguments)


def now(function: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Call a function at once."""
    future: Future[Any] = Future()
    future.set_result(function(*arguments))
    return future


def one_for_products() -> Any:
    """A context in which BLAS uses one thread: products are made in our own threads, or are too small for several.

    So how they are cut, and what they give to the last bit, never depends on the number of threads.
    """
    return _libraries().limit(limits=1, user_api="blas")


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count(), "tunefree-member")


@cache
def _judges() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "tunefree-judge")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_workers.cache_clear)
    os.register_at_fork(after_in_child=_judges.cache_clear)
