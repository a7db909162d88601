"""A cluster of this machine, whose workers keep the memory that they will need again.

Dask's workers hand memory back to the system whenever 64 KiB are free. Each block of rows takes some megabytes, so they
would ask for the same pages again and again: rounds took 1.6 to 2.5 times as long.
"""

from __future__ import annotations

from typing import Any

import dask

from distributed import LocalCluster

_OF_WORKERS = "distributed.nanny.pre-spawn-environ"
KEEPING_MEMORY = {  # what the C library of Linux reads when a process starts
    "MALLOC_TRIM_THRESHOLD_": 2**28,  # bytes that may be free before any are handed back
    "MALLOC_MMAP_THRESHOLD_": 2**25,  # bytes of an array from which on it has pages of its own
}


def local_cluster(n_workers: int, **settings: Any) -> LocalCluster:
    """Start processes of one thread each that can learn shards.

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
    with dask.config.set({_OF_WORKERS: {**dask.config.get(_OF_WORKERS), **KEEPING_MEMORY}}):
        return LocalCluster(**{"n_workers": n_workers, "threads_per_worker": 1, **settings})
