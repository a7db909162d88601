"""Training of generations: killed and resumed, gone on with, in bounded memory, and files that were made to mislead."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.workflows.test_training import killed_and_resumed, model_bytes, people
from tunefree.core import storage
from tunefree.core.errors import ModelError
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.stream.source import open_source
from tunefree.training.training import train

PLAN = Plan(target="rich", ignore=("pay",))


@pytest.mark.all_trees  # as the processes have
def test_killed_at_any_moment_and_resumed(tmp_path):
    data, output = tmp_path / "people.parquet", tmp_path / "model"
    parquet.write_table(pa.table(people(5000)), data, row_group_size=500)
    arguments = ["train", str(data), "--target", "rich", "--ignore", "pay", "--save-every", "1000"]
    whole = model_bytes(train(open_source(str(data)), PLAN), tmp_path / "whole")
    for _ in killed_and_resumed(arguments, output, 1):
        assert not output.exists() or output.read_bytes() == whole
    assert output.read_bytes() == whole


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A file whose pool has a copy and generations that are being grown."""
    path = tmp_path_factory.mktemp("parts") / "sound"
    train(open_source(people(2000) | {"w": [1.0] * 2000}), PLAN).save(path)
    return path


def loaded(sound, path, change):
    arrays, header = storage.load(sound)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    change(arrays, header["model"]["predictor"])
    storage.save(path, arrays, header)
    return Trained.load(path)


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
def test_files_that_lie_are_refused(sound, tmp_path, lie):
    with pytest.raises(ModelError, match="train again or restore it from a backup"):
        loaded(sound, tmp_path / "lie", lie)
    loaded(sound, tmp_path / "none", lambda arrays, pool: None)
