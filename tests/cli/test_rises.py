"""Streams that change are told, with the row and the losses; independent rows are not."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import tunefree
from tests.cli.test_cli import run  # noqa: F401 - a fixture
from tunefree.model_files import trained as model_files

QUICK = ("--learner", "scinol2")


def stream(n=3000, seed=0, change=None, noise=0.5):
    """Rows whose target follows one column, and the other way round from row ``change`` on."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)).round(4)
    score = X[:, 0] + noise * rng.logistic(size=n)
    is_yes = (score > 0.0) ^ (np.arange(n) >= (n if change is None else change))
    return {"a": X[:, 0], "b": X[:, 1], "y": np.where(is_yes, "yes", "no"), "z": np.where(is_yes, 1.0, -1.0) * score}


def write(path, table, *, dropped="z"):
    csv.write_csv(pa.table(table).drop_columns(dropped), path)
    return path


@pytest.mark.parametrize("learner", [QUICK, ()], ids=["one learner", "pool"])
def test_a_reversal_is_told_with_its_row_and_the_losses(run, tmp_path, learner):  # noqa: F811
    data, model = write(tmp_path / "stream.csv", stream(change=1500)), tmp_path / "m"
    status, _, err = run("train", data, "-t", "y", "-o", model, *learner)
    assert status == 0, err
    line = " ".join(err.split())
    found = re.search(
        r"rose at about row ([\d,]+) \((\S+), row (\d+)\): ([\d.]+) on (\d+) rows from there, ([\d.]+) on",
        line,
    )
    row, file, place, loss, rows, before = found.groups()
    assert file == str(data) and abs(int(place) - 1501) < 20 and row.replace(",", "") == place
    assert float(before) == pytest.approx(0.49, abs=0.03) and 1.0 < float(loss) < 2.0 and int(rows) < 100
    assert "a test of level 0.001" in line
    assert "warning: The loss rose at about row 1," in run("inspect", model)[1]
    rises = json.loads(run("inspect", model, "--json")[1])["rises"]
    assert (rises["level"], rises["count"]) == (0.001, 1) and rises["first"][0]["row"] == int(place)
    assert run("report", model, "-o", tmp_path / "r.html")[0] == 0
    assert "The loss rose at about row 1," in (tmp_path / "r.html").read_text()


def test_independent_rows_are_told_nothing_of(run, tmp_path):  # noqa: F811
    for seed in range(12):
        for noise in (0.0, 0.001, 0.5):
            data = write(tmp_path / "rows.csv", stream(1500, seed, noise=noise))
            status, out, err = run("train", data, "-t", "y", "-o", tmp_path / "m", *QUICK)
            assert status == 0 and "the loss rose" not in out + err, (seed, noise, err)
    assert json.loads(run("inspect", tmp_path / "m", "--json")[1])["rises"]["count"] == 0


def test_numbers_too(run, tmp_path):  # noqa: F811
    data = write(tmp_path / "numbers.csv", stream(2000, change=1200), dropped="y")
    err = run("train", data, "-t", "z", "-o", tmp_path / "m", *QUICK, "--holdout", "0.1")[2]
    row, place = re.search(r"loss rose at about row (1,\d+) \(\S+, row (\d+)\)", " ".join(err.split())).groups()
    assert row.replace(",", "") == place and abs(int(place) - 1201) < 30
    quiet = write(tmp_path / "quiet.csv", stream(2000, noise=0.0), dropped="y")
    assert "the loss rose" not in run("train", quiet, "-t", "z", "-o", tmp_path / "m", *QUICK)[2]


def test_python_warns_and_goes_on_where_another_training_ended():
    table, options = stream(change=1500), {"target": "y", "ignore": ["z"], "learner": "scinol2"}
    with pytest.warns(UserWarning, match="the loss rose at about row 1,"):
        tunefree.train(table, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tunefree.train(stream(), **options)


def test_nothing_depends_on_where_it_was_interrupted(run, tmp_path):  # noqa: F811
    table = {name: list(values) for name, values in stream(change=1500).items()}
    first = write(tmp_path / "1.csv", {name: values[:1490] for name, values in table.items()})
    second = write(tmp_path / "2.csv", {name: values[1490:] for name, values in table.items()})
    assert run("train", first, "-t", "y", "-o", tmp_path / "begun", *QUICK)[0] == 0
    status, _, err = run("train", second, "--from", tmp_path / "begun", "-o", tmp_path / "more")
    assert status == 0 and re.search(r"rose at about row 1,\d+ \(\S+[12]\.csv, row", " ".join(err.split())), err
    assert run("train", first, second, "-t", "y", "-o", tmp_path / "whole", *QUICK)[0] == 0
    more, whole = (model_files.load(tmp_path / name).rises.rises for name in ("more", "whole"))
    assert more == whole and len(whole) == 1


def test_rows_of_a_group_count_as_one(run, tmp_path):  # noqa: F811
    rng, n = np.random.default_rng(0), 4000
    table = stream(n, noise=0.0)
    table |= {"home": np.repeat(np.arange(n // 40), 40).astype(str)}
    odd = np.repeat(rng.random(n // 40) < 0.2, 40)  # all rows of some homes are the other way round
    table["y"] = np.where(odd, np.where(table["y"] == "yes", "no", "yes"), table["y"])
    data = write(tmp_path / "visits.csv", table)
    assert "the loss rose" in run("train", data, "-t", "y", "-o", tmp_path / "m", "--ignore", "home", *QUICK)[2]
    status, _, err = run("train", data, "-t", "y", "-o", tmp_path / "m", "--group", "home")
    assert status == 0 and "the loss rose" not in err, err
