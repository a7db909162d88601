"""Files of pools with generations that were made to mislead."""

import numpy as np
import pytest

from tests.fuzz.test_fuzz import header
from tests.workflows.test_training import people
from tunefree.core import storage
from tunefree.core.errors import ModelError
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.stream.source import open_source
from tunefree.training.training import train


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A file whose pool has a copy and generations that are being grown."""
    path = tmp_path_factory.mktemp("parts") / "sound"
    train(open_source(people(2000) | {"w": [1.0] * 2000}), Plan(target="rich", ignore=("pay",))).save(path)
    return path


def put(name, place, value):
    def change(arrays, header):
        arrays[f"model.predictor.{name}"][place] = value

    return change


POOL = "model", "predictor"
GROWTH = *POOL, "members", "growth"
LIES = {
    "a place of no member": header([99, 1, 2, 3], *POOL, "members", "online_places"),
    "too few places": header([0], *POOL, "members", "online_places"),
    "a takeover that is over": header(5, *GROWTH, "windows", 0, "birth"),
    "trials without end": header(10**9, *GROWTH, "windows", 0, "failures"),
    "a copy that is never taken": header(0, *POOL, "copies", "next"),
    "rows that are not there": header(10**9, *GROWTH, "whole", "rows"),
    "columns that are not there": header([1], *GROWTH, "columns", "keys"),
    "a generation of no kind": header("magic", *GROWTH, "awake", 0, "kind"),
    "a generation of other classes": header(9, *GROWTH, "awake", 0, "n_classes"),
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
    arrays, header = storage.load(sound)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    storage.save(tmp_path / "true", arrays, header)
    assert Trained.load(tmp_path / "true").progress.complete
    lie(arrays, header)
    storage.save(tmp_path / "lie", arrays, header)
    with pytest.raises(ModelError, match="train again or restore it from a backup"):
        Trained.load(tmp_path / "lie")
