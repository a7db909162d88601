"""The papers come in by the doors of strangers: the product imports nothing of them, and finds them by their names."""

import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

import tunefree

POINTS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["entry-points"]


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
