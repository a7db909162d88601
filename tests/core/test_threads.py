"""Threads: what a model is to the last bit depends on none of them."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Thread, get_ident

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tunefree.core.threads import LOWER, at_most, beside, lower_priority, one_for_products


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
    for n_threads in (1, 2):
        with at_most(n_threads):
            assert (beside(get_ident).result() == get_ident()) == (n_threads == 1)


@pytest.mark.skipif(sys.platform != "linux", reason="only there a thread has a priority")
def test_threads_that_work_for_one_of_lower_priority_have_it_too():
    def priorities():
        with at_most(2):
            return priority(), beside(priority).result()

    def priority():
        return os.getpriority(os.PRIO_PROCESS, 0)

    def lower():
        lower_priority()
        return priorities()

    usual = priority()
    with ThreadPoolExecutor(1) as executor:
        assert executor.submit(lower).result() == (min(usual + LOWER, 19),) * 2
    assert priorities() == (usual, usual)
