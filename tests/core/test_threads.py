"""Threads, of which a model depends on none, and signals, which wait until what is being learned is whole."""

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from threading import Thread, get_ident

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tunefree.core.signals import deferred, deliver
from tunefree.core.threads import LOWER, at_most, beside, count, each, lower_priority, one_for_products


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def limited(seen):
    with one_for_products():
        seen.append(blas_threads())


def test_products_use_one_thread_whichever_thread_asks():
    np.ones((2, 2)) @ np.ones((2, 2))
    with threadpool_limits(2, "blas"):
        before, seen = blas_threads(), []
        limited(seen)  # threadpoolctl lets the first thread that sets a limit control it
        for _ in range(2):
            thread = Thread(target=limited, args=(seen,))
            thread.start()
            thread.join()
        limited(seen)
        assert seen == [{1}] * 4
        assert blas_threads() == before


def test_work_beside_is_in_another_thread_unless_there_is_one_alone():
    before = count()
    for n_threads in (2, 1):
        with at_most(n_threads):
            assert (beside(get_ident).result() == get_ident()) == (n_threads == 1)
    assert count() == before


@pytest.mark.skipif(sys.platform != "linux", reason="only there a thread has a priority")
def test_threads_that_work_for_one_of_lower_priority_have_it_too():
    def priority():
        return os.getpriority(os.PRIO_PROCESS, 0)

    def priorities(lower):
        if lower:
            lower_priority()
        with at_most(2):
            return priority(), beside(priority).result()

    usual = priority()
    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(priorities, True).result() == (min(usual + LOWER, 19),) * 2
    assert priorities(False) == (usual, usual)


class Asked(Exception):
    """What a handler of this test raises."""


@pytest.fixture
def handler():
    def ask(number, frame):
        raise Asked

    before = signal.signal(signal.SIGTERM, ask)
    yield ask
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("events", "handled_after"), [("s1", "1"), ("ds1", "1"), ("sd1", ""), ("s1s2", "1")], ids=["", "none", "d", "twice"]
)
def test_a_signal_waits_for_the_end_of_the_context_for_deliver_or_for_the_second_one(handler, events, handled_after):
    """Events are signals, deliveries, and work."""
    done = ""

    def work():
        nonlocal done
        with deferred(), deferred():
            for event in events:
                if event == "s":
                    signal.raise_signal(signal.SIGTERM)
                elif event == "d":
                    deliver()
                else:
                    done += event

    with pytest.raises(Asked):
        work()
    assert done == handled_after and signal.getsignal(signal.SIGTERM) is handler
    with deferred():  # no signal is left
        pass


def test_threads_that_work_have_ended_when_an_error_leaves_the_one_they_work_for():
    begun, ends, ended = threading.Barrier(2), threading.Event(), []

    def work(fails):
        begun.wait()
        if fails:
            ends.set()
            raise Asked
        ends.wait()
        for _ in range(1000):
            threading.Event().wait(1e-5)
        ended.append(1)

    with at_most(2), pytest.raises(Asked):
        each(work, [(True,), (False,)], 1000)
    assert ended == [1]
