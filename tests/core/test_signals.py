"""Signals wait until what is being learned is whole."""

import signal
import threading

import pytest

from tunefree.core.signals import deferred, deliver
from tunefree.core.threads import at_most, each


class Asked(Exception):
    """What a handler of this test raises."""


@pytest.fixture
def handler():
    def ask(number, frame):
        raise Asked

    before = signal.signal(signal.SIGTERM, ask)
    yield ask
    signal.signal(signal.SIGTERM, before)


def test_a_signal_waits_for_the_end_of_the_context(handler):
    done = []

    def work():
        with deferred(), deferred():
            signal.raise_signal(signal.SIGTERM)
            done.append(1)

    with pytest.raises(Asked):
        work()
    assert done == [1]
    assert signal.getsignal(signal.SIGTERM) is handler


def test_it_is_handled_earlier_where_that_is_asked_for(handler):
    done = []

    def work():
        with deferred():
            deliver()
            signal.raise_signal(signal.SIGTERM)
            deliver()
            done.append(1)

    with pytest.raises(Asked):
        work()
    assert not done
    assert signal.getsignal(signal.SIGTERM) is handler


def test_the_second_signal_does_not_wait(handler):
    done = []

    def work():
        with deferred():
            signal.raise_signal(signal.SIGTERM)
            done.append(1)
            signal.raise_signal(signal.SIGTERM)
            done.append(2)

    with pytest.raises(Asked):
        work()
    assert done == [1]
    with deferred():  # none of the two is left
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
