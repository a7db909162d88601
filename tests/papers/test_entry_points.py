"""The papers come in by the doors of strangers: the product imports nothing of them, and finds them by their names."""

import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

POINTS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["entry-points"]


@pytest.mark.parametrize("group", POINTS)
def test_every_entry_point_is_there(group):
    for name, place in POINTS[group].items():
        (point,) = entry_points(group=group, name=name)
        assert point.value == place and point.load() is not None
        assert place.startswith("tunefree.papers.")
