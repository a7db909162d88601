"""On Dask: the same bytes whatever the workers, from files and from collections, and whoever of them dies."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.sparse import csr_array

from tests.distributed.data import learned, parquet_of, people
from tunefree.core.errors import DataError, ModelError
from tunefree.distributed import engines, train, training
from tunefree.estimators.model_file import estimator_of
from tunefree.model_files.trained import Trained

distributed = pytest.importorskip("distributed")

from tests.distributed.killing import STAGES, learned_while_killed, processes  # noqa: E402 - needs Dask


@pytest.fixture(scope="module")
def client():
    settings = {"threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(n_workers=2, **settings) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    monkeypatch.setattr(training, "SAMPLE", 300)  # so that shards have rows beside it


def bytes_of(trained, folder):
    model = estimator_of(trained) if isinstance(trained, Trained) else trained
    model.save(folder / "some.model")
    return (folder / "some.model").read_bytes()


def test_files_are_learned_as_in_one_process(client, tmp_path):
    path = parquet_of(tmp_path, people(800), 5)
    here = learned(path)
    lines = []
    model = train(client, str(path), target="rich", shard_rows=1, tell=lines.append)
    assert bytes_of(model, tmp_path) == bytes_of(here, tmp_path)
    assert lines[0].startswith("read 800 rows in 5 shards")
    assert len(lines) == 4


def test_arrays_of_unknown_and_uneven_chunks_are_joined(client, tmp_path):
    arrays = pytest.importorskip("dask.array")
    random = np.random.default_rng(0)
    X = random.normal(size=(900, 3))
    y = (X[:, 0] + 0.3 * random.normal(size=900) > 0).astype(int)
    blocks = arrays.from_array(X, chunks=((500, 1, 0, 99, 300), (2, 1)))
    unknown = blocks[blocks[:, 0] < 9.0]  # of sizes that nobody knows
    targets = arrays.from_array(y, chunks=((500, 1, 0, 99, 300),))
    model = train(client, unknown, y=targets, shard_rows=400)
    known = train(client, arrays.from_array(X, chunks=(500, 3)), y=arrays.from_array(y, chunks=500), shard_rows=400)
    assert bytes_of(model, tmp_path) == bytes_of(known, tmp_path)
    assert model.trained_.progress.progressive[0].rows == 900


def test_a_model_predicts_collections_lazily(client, tmp_path):
    frames, arrays = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask.array")
    table = people(800).to_pandas()
    frame = frames.from_pandas(table, npartitions=3)
    model = train(client, frame, "rich", shard_rows=1, class_weight={"yes": 2.0})
    assert model.trained_.plan.class_weight == ("yes=2.0",)
    delayed = train(client, [*frame.to_delayed()], "rich", shard_rows=1, class_weight={"yes": 2.0})
    assert bytes_of(delayed, tmp_path) == bytes_of(model, tmp_path)
    predicted = frame[["age", "job"]].map_partitions(model.predict)
    assert hasattr(predicted, "dask") and predicted.npartitions == 3
    assert (predicted.compute() == table["rich"]).mean() > 0.65
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 2))
    y = X @ [1.0, -2.0] + 0.1 * random.normal(size=600)
    blocks, targets = arrays.from_array(X, chunks=(200, 2)), arrays.from_array(y, chunks=200)
    model = train(client, blocks, y=targets, shard_rows=1, task="regression")
    part = blocks.map_blocks(model.predict, drop_axis=1, dtype=float)
    assert part.chunks == ((200, 200, 200),) and np.corrcoef(part.compute(), y)[0, 1] > 0.98


def test_what_cannot_be_learned_over_shards_is_refused(client):
    frames, arrays = pytest.importorskip("dask.dataframe"), pytest.importorskip("dask.array")
    X, y, frame = arrays.ones((6, 2), chunks=3), arrays.ones(6, chunks=3), frames.from_dict({"a": [1]}, npartitions=1)
    for data, targets, options, problem in (
        (frame, y, {}, "targets are given apart from a table"),
        (X, None, {}, "an array has no targets"),
        (y, y, {}, "an array of 1 dimensions is not a table"),
        (X, arrays.ones(6, chunks=2), {}, "2 blocks of rows and 3 of targets"),
        (X, arrays.ones(4, chunks=2), {}, "a block has 3 rows and 2 targets"),
        (X.map_blocks(csr_array), y, {}, "blocks of sparse matrices are not spread"),
        ({"a": [1, 2]}, None, {}, "the table: it is not spread; save it to a file"),
        ([people(2).to_pandas()], None, {}, "the table: it is not spread; save it to a file"),
        ("-", None, {}, "standard input is not spread; save it to a file"),
        (X, y, {"on_bad_shard": "leave"}, "`on_bad_shard` must be 'error' or 'skip', not 'leave'"),
        (X, y, {"target": "y"}, "targets are given by `y` and by `target`"),
        (X, y, {"shard_rows": 0}, "`shard_rows` must be a whole number of at least 1, not 0"),
        (X, y, {"loss": "poisson"}, "`loss` poisson is for one machine"),
    ):
        with pytest.raises((DataError, ModelError), match=problem):
            train(client, data, y=targets, **options)


@pytest.mark.parametrize("latest", ["common start", "shards"])
def test_a_client_that_was_killed_goes_on(client, tmp_path, latest):
    path, checkpoint = parquet_of(tmp_path, people(600), 3), tmp_path / "some.checkpoint"
    whole = bytes_of(train(client, str(path), target="rich", shard_rows=1), tmp_path)

    def kill(line):
        if line.startswith(latest):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(client, str(path), target="rich", shard_rows=1, checkpoint=checkpoint, tell=kill)
    resumed = train(client, str(path), target="rich", shard_rows=1, checkpoint=checkpoint, resume=True)
    assert bytes_of(resumed, tmp_path) == whole
    with pytest.raises(ModelError, match="no checkpoint of this training"):
        train(client, str(path), target="job", shard_rows=1, checkpoint=checkpoint, resume=True)


def test_the_command_line_learns_on_a_cluster_that_is_there(done, tmp_path, monkeypatch):
    monkeypatch.setitem(training.train.__kwdefaults__, "shard_rows", 1)
    path, model = parquet_of(tmp_path, people(600), 3), tmp_path / "some.model"
    settings = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(protocol="tcp://", **settings) as cluster:
        options = ["--workers", cluster.scheduler_address, "--resume"]
        out, err = done("train", path, "-t", "rich", "-o", model, *options)
    assert "progressive log-loss" in out
    assert "read 600 rows in 3 shards" in err and "1 workers" in err
    assert not (tmp_path / "some.model.checkpoint").exists()
    assert Trained.load(model).model.save_state()[1] == learned(path).model.save_state()[1]
    assert "each predicted before it was learned" in done("certify", model)[0]


@pytest.mark.slow
def test_workers_killed_in_each_stage_change_no_byte(tmp_path):
    path = parquet_of(tmp_path, people(4000), 6)
    models, killer = learned_while_killed(path, "rich", 3, (0.0, 0.1), seed=1, kills=2 * len(STAGES))
    print(f"{killer.kills} workers were killed while {len(models)} models were learned: {dict(killer.stages)}")
    assert killer.kills >= 2 * len(STAGES) and set(STAGES) == set(killer.stages)
    assert {bytes_of(model, tmp_path) for model in models} == {bytes_of(learned(path), tmp_path)}


@pytest.mark.slow
def test_a_worker_without_memory_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "MOST_DEATHS", 3)
    some = pa.table({f"x{number}": np.zeros(100_000) for number in range(20)} | {"y": np.arange(100_000) % 2})
    with parquet.ParquetWriter(tmp_path / "many.parquet", some.schema) as writer:
        for _ in range(40):
            writer.write_table(some)
    told = "3 workers died .* want of memory.*shard_rows"
    with processes(1, memory_limit="600MB") as client, pytest.raises(ModelError, match=told):
        train(client, str(tmp_path / "many.parquet"), target="y", shard_rows=10**7)
