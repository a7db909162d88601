"""The engine: it calls functions for each shard on a Dask cluster, and adds up the results.

Each call is a task with a key of its own. Nothing is pinned to a
worker, and no worker waits for another. What a lost worker held is computed again from the same arguments, by whoever
is free; a task that was computed twice counts once, since both have the same key. Values that many calls take are
tasks too, so that they can be had again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any
from uuid import uuid4

from tunefree.core.errors import ModelError

FAN_IN = 8  # sums that one task adds
MOST_DEATHS = 20  # of workers on the same task, before it is given up


class Engine:
    """Calls functions on the cluster of a client; these depend on their arguments alone.

    A handle stands for what one of them returns.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        client.run_on_scheduler(_allow_deaths, most=MOST_DEATHS)

    def each(self, stage: str, function: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Handles of what a function returns for each of some tuples of arguments, which may be handles."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            # Dask's dashboard shows tasks by the first words of their keys.
            return [self.client.submit(function, *item, key=f"tunefree-{stage}-{uuid4().hex}") for item in items]

    def one(self, stage: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The handle of the result of a function; its arguments may be handles."""
        return self.each(stage, function, [arguments])[0]

    def hold(self, stage: str, value: Any) -> Any:
        """The handle of a value that many calls take."""
        return self.one(f"hold-{stage}", itemgetter(0), (value,))

    def values(self, handles: Sequence[Any]) -> list[Any]:
        """The values of several handles."""
        from distributed import KilledWorker

        try:
            return list(self.client.gather(list(handles)))
        except KilledWorker:
            raise ModelError(
                f"{MOST_DEATHS} workers died on the same shard, perhaps for want of memory; give them more memory, or"
                " cut smaller shards (shard_rows of tunefree.distributed.train, smaller row groups or partitions)"
            ) from None

    def value(self, handle: Any) -> Any:
        """The value of a handle."""
        return self.values([handle])[0]

    def total(self, stage: str, plus: Callable[..., Any], handles: Sequence[Any]) -> Any:
        """The handle of a sum, added by a tree that depends on the number of handles alone."""
        while len(handles) > 1:
            groups = [tuple(handles[start : start + FAN_IN]) for start in range(0, len(handles), FAN_IN)]
            handles = self.each(f"{stage}-sum", plus, groups)
        return handles[0]


def _allow_deaths(most: int, dask_scheduler: Any = None) -> None:
    """Let the scheduler try a task again until so many workers have died on it."""
    dask_scheduler.allowed_failures = max(dask_scheduler.allowed_failures, most)


_OF_WORKERS = "distributed.nanny.pre-spawn-environ"
KEEPING_MEMORY = {  # what the C library of Linux reads when a process starts
    "MALLOC_TRIM_THRESHOLD_": 2**28,  # bytes that may be free before any are handed back
    "MALLOC_MMAP_THRESHOLD_": 2**25,  # bytes of an array from which on it has pages of its own
}


def local_cluster(n_workers: int, **settings: Any) -> Any:
    """Start processes of one thread each that can learn shards, and keep the memory that they will need again.

    Dask's workers hand memory back to the system whenever 64 KiB are free. Each block of rows takes some megabytes, so
    they would ask for the same pages again and again: rounds took 1.6 to 2.5 times as long.

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

    with dask.config.set({_OF_WORKERS: {**dask.config.get(_OF_WORKERS), **KEEPING_MEMORY}}):
        return LocalCluster(**{"n_workers": n_workers, "threads_per_worker": 1, **settings})
