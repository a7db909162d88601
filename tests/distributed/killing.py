"""Workers of a local cluster are killed at random times while a model is learned."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import distributed
from tunefree.distributed import train

MOST = 4  # workers killed while one model is learned


class Killer:
    """Kills a random worker process of a cluster with SIGKILL, again and again, until it is told to stop."""

    def __init__(self, cluster, pauses, seed):
        self.cluster, self.pauses, self.random = cluster, pauses, random.Random(seed)
        self.kills, self.over = 0, threading.Event()
        self.phases = set()
        self.phase, self.of_run = "begin", 0
        self.thread = threading.Thread(target=self._kill)

    def told(self, line):
        self.phase = line.split(":")[0].split(" in ")[0]

    def _kill(self):
        while not self.over.wait(self.random.uniform(*self.pauses)):
            pids = [nanny.pid for nanny in self.cluster.workers.values() if nanny.pid]
            if pids and self.of_run < MOST:  # a machine that is slow to start workers would never end
                self.of_run += 1
                os.kill(self.random.choice(pids), signal.SIGKILL)
                self.kills += 1
                self.phases.add(self.phase)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def learned_while_killed(path, target, n_workers, pauses, seed, kills=1, **options):
    """Models learned by workers that are killed, until so many were; and the killer, who knows in which phases."""
    models = []
    settings = {"threads_per_worker": 1, "dashboard_address": None, "processes": True}
    with (
        distributed.LocalCluster(n_workers, **settings) as cluster,
        distributed.Client(cluster) as client,
        Killer(cluster, pauses, seed) as killer,
    ):
        start = time.monotonic()
        while killer.kills < kills and time.monotonic() - start < 1500.0:
            killer.of_run = 0
            models.append(train(client, str(path), target=target, shard_rows=1, tell=killer.told, **options))
    return models, killer
