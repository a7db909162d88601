"""`tunefree train` over shards: on a cluster of this machine, or on one that is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tunefree.core.console import plain_console
from tunefree.core.errors import ModelError
from tunefree.core.parameters import as_options

if TYPE_CHECKING:
    from tunefree.cli.options import Run
    from tunefree.stream.source import Source
    from tunefree.workflows.plan import Plan
    from tunefree.workflows.training import Trained


def learn(source: Source, plan: Plan, run: Run, checkpoint: Path | None) -> Trained:
    """Learn the shards of a source.

    Raises
    ------
    ModelError
        If Dask is not installed, or there is no such cluster.
    """
    from tunefree.distributed.dask_training import train

    console = plain_console(stderr=True)
    with _client(run) as client:

        def tell(line: str) -> None:
            if not run.quiet:
                console.print(f"{as_options(line)}; {len(client.scheduler_info()['workers'])} workers")

        return train(
            client,
            source,
            plan=plan,
            on_bad_shard=run.on_bad_shard,
            checkpoint=checkpoint,
            resume=run.resume,
            tell=tell,
        )


@contextmanager
def _client(run: Run) -> Iterator[Any]:
    """A client of the cluster."""
    try:
        from distributed import Client
        from tunefree.distributed.cluster import local_cluster
    except ImportError:
        raise ModelError("Dask is not installed; pip install 'tunefree[dask]'") from None
    if run.scheduler is None:
        with local_cluster(run.workers or 1, dashboard_address="127.0.0.1:0") as local, Client(local) as client:
            yield client
        return
    try:
        client = Client(run.scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise ModelError(f"--scheduler {run.scheduler}: no cluster answers ({error})") from None
    with client:
        yield client
