"""Workers that die, real processes: nothing is lost, and no byte changes."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.distributed.data import Here, parquet_of, people, shards
from tunefree.core.errors import DataError, ModelError
from tunefree.distributed import engines, train, training
from tunefree.estimators.model_file import estimator_of
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained

distributed = pytest.importorskip("distributed")

from tests.distributed.killing import STAGES, learned_while_killed, processes  # noqa: E402 - needs Dask


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    monkeypatch.setattr(training, "SAMPLE", 300)  # so that shards have rows beside it


def bytes_of(trained, folder):
    model = estimator_of(trained) if isinstance(trained, Trained) else trained
    model.save(folder / "some.model")
    return (folder / "some.model").read_bytes()


def alone(path, n_shards):
    """The model that one process learns."""
    return training.learn(Here(), training.Parts(shards(path), [[]] * n_shards), Plan(target="rich"), lambda line: None)


@pytest.mark.slow
def test_workers_killed_in_each_stage_change_no_byte(tmp_path):
    path = parquet_of(tmp_path, people(4000), 6)
    models, killer = learned_while_killed(path, "rich", 3, (0.0, 0.1), seed=1, kills=2 * len(STAGES))
    print(f"{killer.kills} workers were killed while {len(models)} models were learned: {dict(killer.stages)}")
    assert killer.kills >= 2 * len(STAGES) and set(STAGES) == set(killer.stages)
    assert {bytes_of(model, tmp_path) for model in models} == {bytes_of(alone(path, 6), tmp_path)}


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_bytes(tmp_path):
    path = parquet_of(tmp_path, people(600), 9)
    models = set()
    for n_workers in (1, 2, 4):
        with processes(n_workers) as client:
            models.add(bytes_of(train(client, str(path), target="rich", shard_rows=1), tmp_path))
    assert models == {bytes_of(alone(path, 9), tmp_path)}


@pytest.mark.slow
def test_a_worker_without_memory_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "MOST_DEATHS", 3)
    some = pa.table({f"x{number}": np.zeros(100_000) for number in range(20)} | {"y": np.arange(100_000) % 2})
    with parquet.ParquetWriter(tmp_path / "many.parquet", some.schema) as writer:
        for _ in range(40):
            writer.write_table(some)
    with (
        processes(1, memory_limit="600MB") as client,
        pytest.raises(ModelError, match="3 workers died .* want of memory.*shard_rows"),
    ):
        train(client, str(tmp_path / "many.parquet"), target="y", shard_rows=10**7)


def test_rows_that_all_weigh_nothing_are_an_error(tmp_path):
    table = people(200).append_column("hours", pa.array([0.0] * 200))
    parts = training.Parts(shards(parquet_of(tmp_path, table, 2)), [[]] * 2)
    with pytest.raises(DataError, match="column 'hours': all rows have a weight of 0"):
        training.learn(Here(), parts, Plan(target="rich", sample_weight="hours"), lambda line: None)
