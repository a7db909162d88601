"""What an estimator may use of the machine: threads by scikit-learn's rules, and memory for the support of kernels."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from joblib import effective_n_jobs

from tunefree.core import machine, threads
from tunefree.core.errors import ModelError
from tunefree.core.rows import Block, n_rows

GROWING = 2  # a store of points is twice as large as it has to be, at most


def threads_of(estimator: Any) -> AbstractContextManager[None]:
    """A context in which no more threads work than ``n_jobs`` of an estimator asks for.

    ``estimator``: without ``n_jobs`` there is one thread for each processor.
    """
    if not hasattr(estimator, "n_jobs"):
        return nullcontext()
    n_threads = partial(effective_n_jobs, estimator.n_jobs)  # which reads files of the system: where it is asked
    return threads.at_most(n_threads if estimator.n_jobs != 0 else n_threads())


def needed(X: Block, n: int, functions: int, n_outputs: int) -> int:
    """Bytes of a support of ``n`` rows like those of a block, with coefficients and lags of some functions.

    >>> from tunefree.core.rows import dense
    >>> needed(dense([[0.0] * 100]), 10**6, 9, 1)
    2688000000
    """
    point = 12 * (X.numbers.shape[1] + len(X.values) / max(n_rows(X), 1))
    return int(GROWING * n * (point + 16 * functions * n_outputs))


def check_memory(bank: Any, X: Any, n: int) -> None:
    """Whether the machine could hold the support of a kernel bank if ``n`` rows like those of a block all joined it.

    ``bank``: None of a model without one.
    """
    most, bytes_needed = machine.memory(), 0 if bank is None else needed(X, n, len(bank.members), bank.n_outputs)
    if most and bytes_needed > most:
        raise ModelError(
            f"{n:,} rows may all become support points, which take {bytes_needed / 2**30:.1f} GiB of memory; this "
            f"machine has {most / 2**30:.1f}: learn fewer rows, or without kernels"
        )
