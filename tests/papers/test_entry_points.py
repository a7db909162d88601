"""The papers come in by the doors of strangers: the product imports nothing of them, and finds them by their names."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

import tunefree

POINTS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["entry-points"]
IN_A_PROCESS = """
import importlib, sys
from pathlib import Path
import tunefree
folder = Path(tunefree.__file__).parent
for path in sorted(folder.rglob("*.py")):
    parts = path.relative_to(folder.parent).with_suffix("").parts
    if parts[1] != "papers" and not parts[-1].startswith("__"):
        try:
            importlib.import_module(".".join(parts))
        except ModuleNotFoundError as error:
            assert not error.name.startswith("tunefree"), error
import numpy as np
X = np.random.default_rng(0).normal(size=(100, 2))
tunefree.TuneFreeClassifier().fit(X, X[:, 0] > 0).predict(X)
tunefree.OnlineClassifier("nag").fit(X, X[:, 0] > 0).predict(X)
print([name for name in sys.modules if name.startswith("tunefree.papers")])
"""


def test_the_product_loads_nothing_of_the_papers():
    done = subprocess.run([sys.executable, "-c", IN_A_PROCESS], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("group", POINTS)
def test_every_entry_point_is_there(group):
    for name, place in POINTS[group].items():
        (point,) = entry_points(group=group, name=name)
        assert point.value == place and point.load() is not None
        assert place.startswith("tunefree.papers.")


def test_a_learner_of_the_papers_is_one_by_its_name(tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2))
    y = np.where((X**2).sum(axis=1) < 1.4, "inside", "outside")
    table = {"a": X[:, 0], "b": X[:, 1], "place": y}
    model = tunefree.train(table, target="place", learner="kernel-pistol")
    model.save(tmp_path / "m.model")
    again = tunefree.load(tmp_path / "m.model")
    assert type(again).__name__ == "OnlineClassifier" and again.learner == "kernel-pistol"
    assert again.predict_proba(table).tobytes() == model.predict_proba(table).tobytes()
    assert again.score(table, y) > 0.8


def test_names_that_no_package_has_are_told():
    with pytest.raises(tunefree.ModelError, match=r"unknown learner 'kernel-pistil'; .*kernel-pistol"):
        tunefree.Plan(learner="kernel-pistil")
    with pytest.raises(AttributeError, match="no attribute 'KernelPistol'"):
        tunefree.KernelPistol  # noqa: B018
