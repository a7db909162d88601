"""The engine: it calls functions for each shard on a Dask cluster, and adds the results.

Each call is a task with a unique key. No task is pinned to a worker, and no worker waits for another. The results of a
lost worker are computed again from the same arguments by any free worker. A task that ran twice counts once, because
both results have the same key. Values that many calls need are tasks, too, so that they can be computed again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any
from uuid import uuid4

from tunefree.core.errors import ModelError

FAN_IN = 8  # maximum number of terms that one task adds
MOST_DEATHS = 20  # number of workers that may die on the same task before it fails


class Engine:
    """Calls pure functions on the cluster of a client.

    A handle is a future of the result of a call.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        client.run_on_scheduler(_allow_deaths, most=MOST_DEATHS)

    def each(self, stage: str, function: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a function with each tuple of arguments, which may be handles; return the handles of the results."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            # Dask's dashboard shows tasks by the first words of their keys.
            return [self.client.submit(function, *item, key=f"tunefree-{stage}-{uuid4().hex}") for item in items]

    def one(self, stage: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function, whose arguments may be handles; return the handle of the result."""
        return self.each(stage, function, [arguments])[0]

    def hold(self, stage: str, value: Any) -> Any:
        """Return a handle of a value that many calls need."""
        return self.one(f"hold-{stage}", itemgetter(0), (value,))

    def values(self, handles: Sequence[Any]) -> list[Any]:
        """Gather the values of several handles."""
        from distributed import KilledWorker

        try:
            return list(self.client.gather(list(handles)))
        except KilledWorker:
            raise ModelError(
                f"{MOST_DEATHS} workers died on the same shard, perhaps for want of memory; give them more memory, or"
                " cut smaller shards (shard_rows of tunefree.distributed.train, smaller row groups or partitions)"
            ) from None

    def value(self, handle: Any) -> Any:
        """Gather the value of a handle."""
        return self.values([handle])[0]

    def total(self, stage: str, plus: Callable[..., Any], handles: Sequence[Any]) -> Any:
        """Return the handle of a sum; the order of additions depends only on the number of handles."""
        while len(handles) > 1:
            groups = [tuple(handles[start : start + FAN_IN]) for start in range(0, len(handles), FAN_IN)]
            handles = self.each(f"{stage}-sum", plus, groups)
        return handles[0]


def _allow_deaths(most: int, dask_scheduler: Any = None) -> None:
    """Let the scheduler retry a task until ``most`` workers have died on it."""
    dask_scheduler.allowed_failures = max(dask_scheduler.allowed_failures, most)


_WORKER_ENVIRONMENT = "distributed.nanny.pre-spawn-environ"
KEEPING_MEMORY = {  # environment variables of glibc
    "MALLOC_TRIM_THRESHOLD_": 2**28,  # free bytes above which memory is returned to the system
    "MALLOC_MMAP_THRESHOLD_": 2**25,  # bytes above which an allocation gets separate pages
}


def local_cluster(n_workers: int, **settings: Any) -> Any:
    """Start a cluster of single-threaded processes for learning shards, which keep freed memory for reuse.

    By default, Dask's workers return memory to the system as soon as 64 KiB are free. Each block of rows needs some
    megabytes, so they would request the same pages repeatedly: rounds took 1.6 to 2.5 times as long.

    Parameters
    ----------
    n_workers : int
    **settings
        Further arguments of ``distributed.LocalCluster``.

    Examples
    --------
    >>> from distributed import Client  # doctest: +SKIP
    >>> with local_cluster(8) as cluster, Client(cluster) as client:  # doctest: +SKIP
    ...     train(client, "part-*.parquet", target="income").save("people.model")
    """
    import dask

    from distributed import LocalCluster

    with dask.config.set({_WORKER_ENVIRONMENT: {**dask.config.get(_WORKER_ENVIRONMENT), **KEEPING_MEMORY}}):
        return LocalCluster(**{"n_workers": n_workers, "threads_per_worker": 1, **settings})
