"""`tunefree train` over shards: on a cluster of this machine, or on one that is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tunefree.core.console import plain_console
from tunefree.core.errors import ModelError

if TYPE_CHECKING:
    from tunefree.stream.source import Source
    from tunefree.workflows.plan import Plan
    from tunefree.workflows.training import Trained


class Cluster(NamedTuple):
    """Where shards are learned, and how large they are."""

    workers: int | None  # processes of this machine
    scheduler: str | None  # address of a cluster that is there
    shard_rows: int
    on_bad_shard: str

    @property
    def is_asked_for(self) -> bool:
        """Whether shards are to be learned."""
        return self.workers is not None or self.scheduler is not None


def learn(cluster: Cluster, source: Source, plan: Plan, checkpoint: Path | None, resume: bool, quiet: bool) -> Trained:
    """Learn the shards of a source.

    Raises
    ------
    ModelError
        If Dask is not installed, there is no such cluster, or both a number of workers and an address are given.
    """
    from tunefree.distributed.dask_training import check, train

    console = plain_console(stderr=True)
    check(plan, cluster.shard_rows, cluster.on_bad_shard)
    with _client(cluster) as client:

        def tell(line: str) -> None:
            if not quiet:
                console.print(f"{line}; {len(client.scheduler_info()['workers'])} workers")

        return train(
            client,
            source,
            plan=plan,
            shard_rows=cluster.shard_rows,
            on_bad_shard=cluster.on_bad_shard,
            checkpoint=checkpoint,
            resume=resume,
            tell=tell,
        ).trained_


@contextmanager
def _client(cluster: Cluster) -> Iterator[Any]:
    """A client of the cluster."""
    try:
        from distributed import Client
        from tunefree.distributed.cluster import local_cluster
    except ImportError:
        raise ModelError("Dask is not installed; pip install 'tunefree[dask]'") from None
    if cluster.scheduler is not None:
        if cluster.workers is not None:
            raise ModelError("--workers starts a cluster, and --scheduler names one; give one of them")
        try:
            client = Client(cluster.scheduler, timeout=10)
        except (OSError, ValueError) as error:
            raise ModelError(f"--scheduler {cluster.scheduler}: no cluster answers ({error})") from None
        with client:
            yield client
        return
    if cluster.workers is None or cluster.workers < 1:
        raise ModelError(f"--workers must be at least 1, not {cluster.workers}")
    with local_cluster(cluster.workers, dashboard_address="127.0.0.1:0") as local, Client(local) as client:
        yield client
