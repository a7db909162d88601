"""Workers of a local cluster are killed with SIGKILL while a model is learned."""

import itertools
import multiprocessing
import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import contextmanager

import dask
from distributed.utils import get_mp_context

import distributed
from tunefree.distributed import train

MOST = 6  # workers killed while one model is learned
STAGES = ("read", "prepare", "start", "shard", "join")


@contextmanager
def processes(n_workers, **settings):
    """A client of a cluster of real processes, forked from one that has imported what they need."""
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context()  # which says what is to be imported before workers are forked
        multiprocessing.get_context("forkserver").set_forkserver_preload(["distributed", "tests.distributed.data"])
        usual = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "processes": True}
        with distributed.LocalCluster(**usual, **settings) as cluster, distributed.Client(cluster) as client:
            assert len(cluster.workers) == n_workers
            yield client


class Killer:
    """Kills worker processes that compute a task, after random pauses.

    Stages take turns, and the first worker that computes a task of the next one dies.
    """

    def __init__(self, cluster, pauses, seed):
        self.cluster, self.pauses, self.random = cluster, pauses, random.Random(seed)
        self.over, self.of_run = threading.Event(), 0
        self.stages = Counter()  # of the tasks that killed workers computed
        self.thread = threading.Thread(target=self._kill)

    @property
    def kills(self):
        return self.stages.total()

    def _kill(self):
        for stage in itertools.cycle(STAGES):
            if self.over.wait(self.random.uniform(*self.pauses)):
                return
            while not self.over.wait(0.001) and not (self.of_run < MOST and self._killed(f"tunefree-{stage}")):
                pass

    def _killed(self, prefix):
        """Whether a worker was computing a task of a stage, and is dead now."""
        workers = self.cluster.scheduler.workers  # which another thread changes
        for worker in filter(None, map(workers.get, list(workers))):
            nanny = self.cluster.workers.get(worker.name)
            stages = [task.key.split("-")[1] for task in worker.processing.copy() if task.key.startswith(prefix)]
            if stages and nanny is not None and nanny.pid:
                os.kill(nanny.pid, signal.SIGKILL)
                self.of_run += 1
                self.stages[stages[0].rstrip("0123456789")] += 1
                return True
        return False

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


def learned_while_killed(path, target, n_workers, pauses, seed, kills=1, **options):
    """Models learned by workers that are killed, until so many were; and the killer, who knows in which stages."""
    models = []
    with processes(n_workers) as client, Killer(client.cluster, pauses, seed) as killer:
        start = time.monotonic()
        while killer.kills < kills and time.monotonic() - start < 1500.0:
            killer.of_run = 0
            models.append(train(client, str(path), target=target, shard_rows=1, **options))
    return models, killer
