"""Engines: they call functions for each shard and add up the results, in this process or on a Dask cluster.

On Dask each call is a task with a key of its own: the run, the stage and the number of the shard. Nothing is pinned to
a worker, and no worker waits for another. What a lost worker held is computed again from the same arguments, by whoever
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


class Engine:
    """Calls functions in this process, one after the other.

    Functions depend on their arguments alone. A handle stands for what one of them returns; here it is that.

    >>> Engine().total("sum", lambda *parts: "(" + " ".join(parts) + ")", list("abcdefghij"))
    '((a b c d e f g h) (i j))'
    """

    def each(self, stage: str, function: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Handles of what a function returns for each of some tuples of arguments, which may be handles."""
        return [function(*item) for item in items]

    def one(self, stage: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The handle of the result of a function; its arguments may be handles."""
        return self.each(stage, function, [arguments])[0]

    def hold(self, stage: str, value: Any) -> Any:
        """The handle of a value that many calls take."""
        return value

    def values(self, handles: Sequence[Any]) -> list[Any]:
        """The values of several handles."""
        return list(handles)

    def value(self, handle: Any) -> Any:
        """The value of a handle."""
        return self.values([handle])[0]

    def total(self, stage: str, plus: Callable[..., Any], handles: Sequence[Any]) -> Any:
        """The handle of a sum, added by a tree that depends on the number of handles alone."""
        level, left = 0, list(handles)
        while len(left) > 1 or level == 0:
            groups = [tuple(left[start : start + FAN_IN]) for start in range(0, len(left), FAN_IN)]
            left = self.each(f"{stage}-sum{level}", plus, groups)
            level += 1
        return left[0]

    def sent(self) -> int:
        """Bytes that were sent between processes so far."""
        return 0


MOST_DEATHS = 20  # of workers on the same task, before it is given up


def bytes_sent(dask_worker: Any) -> int:
    """Bytes that a worker has sent to others and to the client."""
    return int(dask_worker.transfer_outgoing_bytes_total)


def allow_deaths(most: int, dask_scheduler: Any = None) -> None:
    """Let the scheduler try a task again until so many workers have died on it."""
    dask_scheduler.allowed_failures = max(dask_scheduler.allowed_failures, most)


class OnDask(Engine):
    """Calls functions on the cluster of a client."""

    def __init__(self, client: Any) -> None:
        self.client, self.run = client, uuid4().hex[:8]
        self.numbers: dict[str, int] = {}
        self.sent_by: dict[str, int] = {}  # bytes, by the address of a worker, which may have died since
        client.run_on_scheduler(allow_deaths, most=MOST_DEATHS)

    def sent(self) -> int:
        """Bytes that workers sent; for a dead worker, as of the last call of this method."""
        self.sent_by |= self.client.run(bytes_sent, on_error="ignore")
        return sum(self.sent_by.values())

    def each(self, stage: str, function: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> list[Any]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            return [self.client.submit(function, *item, key=self._key(stage), pure=False, retries=0) for item in items]

    def _key(self, stage: str) -> str:
        """The key of the next call of a stage, which Dask's dashboard shows by its first words."""
        number = self.numbers.get(stage, 0)
        self.numbers[stage] = number + 1
        return f"tunefree-{stage}-{self.run}-{number}"

    def hold(self, stage: str, value: Any) -> Any:
        return self.one(f"hold-{stage}", itemgetter(0), (value,))

    def values(self, handles: Sequence[Any]) -> list[Any]:
        from distributed import KilledWorker

        try:
            return list(self.client.gather(list(handles)))
        except KilledWorker:
            raise ModelError(
                f"{MOST_DEATHS} workers died on the same shard, perhaps for want of memory; give them more memory, or"
                " cut smaller shards (shard_rows of tunefree.distributed.train, smaller row groups or partitions)"
            ) from None


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
