"""Workers that die, real processes: nothing is lost, and no byte changes."""

from __future__ import annotations

import pytest

from tests.distributed.data import parquet_of, people, shards
from tunefree.core.errors import ModelError
from tunefree.distributed import phases, train
from tunefree.distributed.engines import Here
from tunefree.workflows.plan import Plan

distributed = pytest.importorskip("distributed")

from tests.distributed.killing import learned_while_killed  # noqa: E402 - needs Dask


def bytes_of(trained, folder):
    trained.save(folder / "some.model")
    return (folder / "some.model").read_bytes()


def alone(path, n_shards):
    """The model that one process learns."""
    return phases.learn(Here(), phases.Parts(shards(path), [[]] * n_shards), Plan(target="rich"), lambda line: None)


def test_workers_killed_change_no_byte(tmp_path):
    path = parquet_of(tmp_path, people(600), 3)
    models, killer = learned_while_killed(path, "rich", 2, (2.0, 3.0), seed=0)
    assert killer.kills >= 1
    assert {bytes_of(own, tmp_path) for own in models} == {bytes_of(alone(path, 3), tmp_path)}


@pytest.mark.slow
def test_fifty_workers_killed_in_every_phase_change_no_byte(tmp_path):
    path = parquet_of(tmp_path, people(4000), 6)
    models, killer = learned_while_killed(path, "rich", 3, (0.5, 6.0), seed=1, kills=50)
    assert killer.kills >= 50 and {"begin", "pool round"} <= killer.phases
    assert {bytes_of(own, tmp_path) for own in models} == {bytes_of(alone(path, 6), tmp_path)}


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_bytes(tmp_path):
    path = parquet_of(tmp_path, people(1000), 5)
    found = set()
    for n_workers in (1, 2, 7):
        settings = {"threads_per_worker": 1, "dashboard_address": None, "processes": True}
        with distributed.LocalCluster(n_workers, **settings) as cluster, distributed.Client(cluster) as client:
            found.add(bytes_of(train(client, str(path), target="rich", shard_rows=1), tmp_path))
    assert found == {bytes_of(alone(path, 5), tmp_path)}


@pytest.mark.slow
def test_a_worker_without_memory_is_told(tmp_path):
    path = parquet_of(tmp_path, people(200_000), 2)
    settings = {"threads_per_worker": 1, "dashboard_address": None, "processes": True, "memory_limit": "120MB"}
    with (
        distributed.LocalCluster(1, **settings) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(ModelError, match="want of memory.*--shard-rows"),
    ):
        train(client, str(path), target="rich")
