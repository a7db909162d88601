"""Threads: what a model is to the last bit depends on none of them."""

from __future__ import annotations

from threading import Thread, get_ident

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from tunefree.core.threads import at_most, beside, one_for_products


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
