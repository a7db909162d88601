"""Threads of an estimator, by scikit-learn's rules."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from joblib import effective_n_jobs

from tunefree.core import threads


def threads_of(estimator: Any) -> AbstractContextManager[None]:
    """A context in which no more threads work than ``n_jobs`` of an estimator asks for.

    ``estimator``: without ``n_jobs`` there is one thread for each processor.
    """
    if not hasattr(estimator, "n_jobs"):
        return nullcontext()
    n_threads = partial(effective_n_jobs, estimator.n_jobs)  # which reads files of the system: where it is asked
    return threads.at_most(n_threads if estimator.n_jobs != 0 else n_threads())
