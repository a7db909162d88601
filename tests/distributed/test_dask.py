"""On Dask: the same bytes whatever the workers, from files and from collections."""

from __future__ import annotations

import numpy as np
import pytest

from tests.distributed.data import parquet_of, people, shards
from tunefree.core.errors import DataError, ModelError
from tunefree.distributed import phases, train
from tunefree.distributed.engines import Here
from tunefree.workflows.plan import Plan

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def bytes_of(trained, folder, name="some.model"):
    trained.save(folder / name)
    return (folder / name).read_bytes()


def test_files_are_learned_as_in_one_process(client, tmp_path):
    path = parquet_of(tmp_path, people(1500), 5)
    here = phases.learn(Here(), phases.Parts(shards(path), [[]] * 5), Plan(target="rich"), lambda line: None)
    told = []
    found = train(client, str(path), target="rich", shard_rows=1, tell=told.append)
    assert bytes_of(found, tmp_path) == bytes_of(here, tmp_path)
    assert told[0].startswith("read 1,500 rows in 5 shards")


def test_a_data_frame_is_learned_as_its_partitions(client, tmp_path):
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(people(1500).to_pandas(), npartitions=3)
    found = train(client, frame, target="rich", shard_rows=1)
    parts = frame.to_delayed()
    again = train(client, [parts[0], parts[1], parts[2]], target="rich", shard_rows=1)
    assert bytes_of(found, tmp_path) == bytes_of(again, tmp_path)
    assert found.progress.progressive[0].rows == 1350


def test_arrays_of_unknown_and_uneven_chunks_are_joined(client, tmp_path):
    arrays = pytest.importorskip("dask.array")
    random = np.random.default_rng(0)
    X = random.normal(size=(900, 3))
    y = (X[:, 0] + 0.3 * random.normal(size=900) > 0).astype(int)
    blocks = arrays.from_array(X, chunks=((500, 1, 0, 99, 300), (2, 1)))
    unknown = blocks[blocks[:, 0] < 9.0]  # of sizes that nobody knows
    targets = arrays.from_array(y, chunks=((500, 1, 0, 99, 300),))
    found = train(client, unknown, y=targets, shard_rows=400)
    known = train(client, arrays.from_array(X, chunks=(500, 3)), y=arrays.from_array(y, chunks=500), shard_rows=400)
    assert bytes_of(found, tmp_path) == bytes_of(known, tmp_path)
    assert found.progress.progressive[0].rows == 810


def test_what_cannot_be_spread_is_told(client, tmp_path):
    with pytest.raises(DataError, match="no such file"):
        train(client, str(tmp_path / "nothing.csv"), target="rich")
    with pytest.raises(ModelError, match="--on-bad-shard is error or skip"):
        train(client, "a.csv", target="rich", on_bad_shard="maybe")
    with pytest.raises(DataError, match="standard input"):
        train(client, "-", target="rich")
