"""Training of generations: killed and resumed, gone on with, in bounded memory, and files that were made to mislead."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.interruptions import resumed
from tests.workflows.test_training import killed_and_resumed, model_bytes, people, written
from tunefree.core import storage
from tunefree.core.errors import ModelError
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.stream.tables import read_tables
from tunefree.stream.text import read_lines
from tunefree.training.training import learn_more, train
from tunefree.workflows.evaluation import evaluate

PLAN = Plan(target="rich", ignore=("pay",))
N = 600
OTHER_FORMATS = ("csv", "jsonl", "svm", "vw")


# The pool with each format; quickly with a table, since test_training.py resumes each format.
@pytest.mark.parametrize("suffix", ["parquet", *(pytest.param(s, marks=pytest.mark.slow) for s in OTHER_FORMATS)])
def test_a_resumed_model_is_the_same_to_the_byte(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr("tunefree.stream.tables.CHUNK_ROWS", 100)
    monkeypatch.setattr("tunefree.stream.tables.read_tables", partial(read_tables, block_size=2000))
    monkeypatch.setattr("tunefree.stream.source.read_lines", partial(read_lines, block_size=2000))
    stream = written(pa.table(people(N)), tmp_path / f"people.{suffix}")
    plan = PLAN if suffix not in ("vw", "svm") else Plan()
    whole = model_bytes(train(open_source(stream), plan), tmp_path / "whole")
    trained, saves = resumed(open_source(stream), plan, tmp_path / "kept", 150)
    assert len(saves) >= 2
    assert model_bytes(trained, tmp_path / "resumed") == whole


@pytest.mark.all_trees  # as the processes have
def test_killed_at_any_moment_and_resumed(tmp_path):
    data, output = tmp_path / "people.parquet", tmp_path / "model"
    parquet.write_table(pa.table(people(5000)), data, row_group_size=500)
    arguments = ["train", str(data), "--target", "rich", "--ignore", "pay", "--save-every", "1000"]
    whole = model_bytes(train(open_source(str(data)), PLAN), tmp_path / "whole")
    for _ in killed_and_resumed(arguments, output, 1):
        assert not output.exists() or output.read_bytes() == whole
    assert output.read_bytes() == whole


def test_a_model_goes_on_from_its_file_as_from_memory(tmp_path):
    table = people(N)
    first = {name: values[:400] for name, values in table.items()}
    rest = {name: values[400:] for name, values in table.items()}
    trained = train(open_source(first), PLAN)
    trained.save(tmp_path / "first")
    found = [learn_more(model, open_source(rest)) for model in (trained, Trained.load(tmp_path / "first"))]
    assert model_bytes(found[0], tmp_path / "a") == model_bytes(found[1], tmp_path / "b")
    assert evaluate(found[0], open_source(people(300, seed=1)), BadRows()).metrics.mean_error() < 0.3


@pytest.fixture(scope="module")
def parts():
    """The arrays and the header of a file whose pool has a copy and generations that are being grown."""
    source = open_source(people(2000) | {"w": [1.0] * 2000})
    trained = train(source, PLAN)
    arrays, header = trained.model.save_state()
    return trained, arrays, header


def with_change(parts, tmp_path, change):
    trained, arrays, header = parts
    trained.save(tmp_path / "sound")
    arrays, header = storage.load(tmp_path / "sound")
    arrays = {name: np.array(array) for name, array in arrays.items()}
    change(arrays, header["model"]["predictor"])
    storage.save(tmp_path / "other", arrays, header)
    return tmp_path / "other"


def put(name, place, value):
    def change(arrays, pool):
        arrays[f"model.predictor.{name}"][place] = value

    return change


def told(value, *path):
    def change(arrays, pool):
        for step in path[:-1]:
            pool = pool[step]
        pool[path[-1]] = value

    return change


GROWTH = "members", "growth"
LIES = {
    "a place of no member": told([99, 1, 2, 3], "members", "online_places"),
    "too few places": told([0], "members", "online_places"),
    "a takeover that is over": told(5, *GROWTH, "windows", 0, "birth"),
    "trials without end": told(10**9, *GROWTH, "windows", 0, "failures"),
    "a copy that is never taken": told(0, "copies", "next"),
    "rows that are not there": told(10**9, *GROWTH, "whole", "rows"),
    "columns that are not there": told([1], *GROWTH, "columns", "keys"),
    "a generation of no kind": told("magic", *GROWTH, "awake", 0, "kind"),
    "a generation of other classes": told(9, *GROWTH, "awake", 0, "n_classes"),
    "a column of another generation": put("members.growth.awake.0.keys", 0, 77),
    "a class that is none": put("members.growth.whole.targets", 3, 7.0),
    "a leaf that is not there": put("members.growth.awake.0.model.shifts", -1, 10**6),
    "a child before its parent": put("members.growth.awake.0.model.shifts", 0, -1),
    "a tree that begins behind the nodes": put("members.growth.awake.0.model.roots", -1, 10**6),
    "more leaves than there are": put("members.growth.awake.0.model.is_leaf", slice(None), 255),
    "a weight that is no number": put("contexts.0.mixture.base.means", 0, np.nan),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_files_that_lie_are_refused(parts, tmp_path, lie):
    with pytest.raises(ModelError, match="train again or restore it from a backup"):
        Trained.load(with_change(parts, tmp_path, lie))


def test_a_file_without_a_lie_is_read(parts, tmp_path):
    Trained.load(with_change(parts, tmp_path, lambda arrays, pool: None))
