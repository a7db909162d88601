"""An engine that calls functions on the workers of a Dask cluster.

Each call is a task with a key of its own: the run, the stage and the number of the shard. Nothing is pinned to a
worker, and no worker waits for another. What a lost worker held is computed again from the same arguments, by whoever
is free; a task that was computed twice counts once, since both have the same key. Values that many calls take are
tasks too, so that they can be had again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from tunefree.core.errors import ModelError
from tunefree.distributed.engines import Engine

MOST_DEATHS = 20  # of workers on the same task, before it is given up


def kept(value: Any) -> Any:
    """The value."""
    return value


def bytes_sent(dask_worker: Any) -> int:
    """What a worker has sent to others and to the client."""
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
        """Bytes that workers sent; of one that died, what it had sent when this was last asked for."""
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
        return self.one(f"hold-{stage}", kept, value)

    def values(self, handles: Sequence[Any]) -> list[Any]:
        from distributed import KilledWorker

        try:
            return list(self.client.gather(list(handles)))
        except KilledWorker:
            raise ModelError(
                f"{MOST_DEATHS} workers died on the same shard, perhaps for want of memory; give them more memory, or"
                " cut smaller shards (shard_rows of tunefree.distributed.train, smaller row groups or partitions)"
            ) from None
