"""`tunefree inspect --file`: what a model file holds."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.cli.test_cli import data, model  # noqa: F401 - fixtures
from tunefree import IterativeRegularizationRegressor
from tunefree.core import storage


def test_all_arrays_are_listed_with_their_bytes(run, model):  # noqa: F811
    status, out, _ = run("inspect", model, "--file", "--json")
    listed, (arrays, header) = json.loads(out), storage.load(model)
    assert status == 0 and listed["header"] == json.loads(json.dumps(header))
    assert [(array["name"], array["shape"], array["type"]) for array in listed["arrays"]] == [
        (name, list(array.shape), str(array.dtype)) for name, array in sorted(arrays.items())
    ]
    total = sum(array["bytes"] for array in listed["arrays"])
    assert 0.5 * model.stat().st_size < total < model.stat().st_size
    status, out, _ = run("inspect", model, "--file")
    assert status == 0 and f"{len(arrays):,} arrays, {total:,} bytes" in out
    assert "encoder.keys" in out and "that of the plan" in out and "rich" in out


def test_files_of_estimators_name_their_class(run, tmp_path):
    X = np.arange(60.0)[:, None]
    IterativeRegularizationRegressor(max_iter=3).fit(X, X[:, 0]).save(tmp_path / "m")
    status, out, _ = run("inspect", tmp_path / "m", "--file")
    assert status == 0 and "IterativeRegularizationRegressor" in out and "model.coefficients" in out


@pytest.mark.parametrize("option", ["--plot", "--rows", "--weights"])
def test_what_is_of_the_model_is_refused(run, model, option, tmp_path):  # noqa: F811
    status, _, err = run("inspect", model, "--file", option, tmp_path / "x.csv")
    assert status == 2 and f"{option} has no effect on what --file lists; leave one of them out" in err


def test_a_file_that_is_no_model(run, data):  # noqa: F811
    status, _, err = run("inspect", data, "--file")
    assert status == 2 and "not a tunefree model" in err
