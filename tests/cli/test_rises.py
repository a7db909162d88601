"""Streams that change are told, with the row and the losses; independent rows are not."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import tunefree
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


@pytest.mark.parametrize("learner", [QUICK, pytest.param((), marks=pytest.mark.slow)], ids=["one learner", "pool"])
def test_a_reversal_is_told_with_its_row_and_the_losses(run, tmp_path, learner):
    data, model = write(tmp_path / "stream.csv", stream(change=1500)), tmp_path / "m"
    status, out, err = run("train", data, "-t", "y", "-o", model, *learner, "--json")
    assert status == 0, err
    line = " ".join(out.split())
    match = re.search(
        r"rose at about row ([\d,]+) \((\S+), row (\d+)\): ([\d.]+) on (\d+) rows from there, ([\d.]+) on", line
    )
    row, file, place, loss, rows, before = match.groups()
    assert file == str(data) and abs(int(place) - 1501) < 20 and row.replace(",", "") == place
    assert float(before) == pytest.approx(0.49, abs=0.03) and 1.0 < float(loss) < 2.0 and int(rows) < 100
    assert "a test of level 0.001" in line
    assert "warning: The loss rose at about row 1," in run("inspect", model)[1]
    shown = json.loads(run("inspect", model, "--json")[1])
    assert shown["drift_count"] == 1 and shown["drifts"][0]["row"] == int(place)
    learned = json.loads(out)
    assert learned["drifts"] == shown["drifts"] and learned["warnings"] == shown["warnings"]
    assert (learned["rows"], learned["model"]) == (3000, str(model)) and learned["lower_bounds"]
    assert run("report", model, "-o", tmp_path / "r.html")[0] == 0
    assert "The loss rose at about row 1," in (tmp_path / "r.html").read_text()


def test_nothing_depends_on_where_it_was_interrupted(run, tmp_path):
    table = {name: list(values) for name, values in stream(change=1500).items()}
    first = write(tmp_path / "1.csv", {name: values[:1490] for name, values in table.items()})
    second = write(tmp_path / "2.csv", {name: values[1490:] for name, values in table.items()})
    assert run("train", first, "-t", "y", "-o", tmp_path / "begun", *QUICK)[0] == 0
    status, out, err = run("train", second, "--from", tmp_path / "begun", "-o", tmp_path / "more")
    assert status == 0 and re.search(r"rose at about row 1,\d+ \(\S+[12]\.csv, row", " ".join(out.split())), err
    assert run("train", first, second, "-t", "y", "-o", tmp_path / "whole", *QUICK)[0] == 0
    more, whole = (model_files.load(tmp_path / name).rises.rises for name in ("more", "whole"))
    assert more == whole and len(whole) == 1


def dated(n=4000, change=2000):
    """Rows with times, and a category of which other values come a little after the change."""
    table, rng = stream(n, change=change), np.random.default_rng(0)
    times = np.datetime64("2024-01-01T00:00", "s") + np.arange(n) * np.timedelta64(3600, "s")
    later = np.where(np.arange(n) < change + 100, "x", rng.choice(list("xyz"), n))
    return table | {"when": times.astype(str), "c": later}


def test_the_time_and_the_columns_that_changed_most_are_told(run, tmp_path):
    data, model = write(tmp_path / "stream.csv", dated()), tmp_path / "m"
    status, out, err = run("train", data, "-t", "y", "-o", model, *QUICK)
    line = " ".join(out.split())
    assert status == 0 and re.search(r"row \d+, 2024-03-24T\d\d:00:00\): ", line), err
    assert re.search(
        r"changed most: how the target depends on 'a' \(distance 0\.\d+ ± 0\.\d+\), 'c' \(x: 100 % of", line
    )
    (rise,) = json.loads(run("inspect", model, "--json")[1])["drifts"]
    assert rise["time"].startswith("2024-03-24T") and rise["columns_compared"] == 4  # dates are not compared
    assert [(one["column"], one["of"]) for one in rise["changed"]] == [("a", "relation to the target"), ("c", "values")]
    assert rise["changed"][1]["bin"] == "x" and rise["changed"][1]["share_before"] == 1.0
    assert "Where the loss rose" in run("inspect", model)[1]
    assert tunefree.load(model).drifts_ == [{key: rise[key] for key in tunefree.load(model).drifts_[0]}]
