"""Streams that change, and rows that differ from those that were learned, are told; others are not."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from tunefree.model_files.plan import Plan
from tunefree.plotting.style import LIGHT_VERMILLION
from tunefree.stream.source import open_source
from tunefree.training.rises import changed_most, drifts_of
from tunefree.training.training import train

QUICK = ("--learner", "scinol2")


def stream():
    """3,000 rows whose target follows one column, and the other way round from row 1,501 on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2)).round(4)
    is_yes = (X[:, 0] + 0.5 * rng.logistic(size=3000) > 0.0) ^ (np.arange(3000) >= 1500)
    return {"a": X[:, 0], "b": X[:, 1], "y": np.where(is_yes, "yes", "no")}


@pytest.mark.parametrize("learner", [QUICK, pytest.param((), marks=pytest.mark.slow)], ids=["one learner", "pool"])
def test_a_reversal_is_told_with_its_row_and_the_losses(run, done, tmp_path, learner):
    data, model = tmp_path / "stream.csv", tmp_path / "m"
    csv.write_csv(pa.table(stream()), data)
    out, _ = done("train", data, "-t", "y", "-o", model, *learner, "--json")
    line = " ".join(out.split())
    told = r"rose at about row ([\d,]+) \((\S+), row (\d+)\): ([\d.]+) on (\d+) rows from there, ([\d.]+) on"
    row, file, place, loss, rows, before = re.search(told, line).groups()
    assert file == str(data) and abs(int(place) - 1501) < 20 and row.replace(",", "") == place
    assert float(before) == pytest.approx(0.49, abs=0.03) and 1.0 < float(loss) < 2.0 and int(rows) < 100
    assert "a test of level 0.001" in line
    assert "warning: The loss rose at about row 1," in run("inspect", model)[1]
    shown = json.loads(run("inspect", model, "--json")[1])
    assert shown["drift_count"] == 1 and shown["drifts"][0]["row"] == int(place)
    learned = json.loads(out)
    assert learned["drifts"] == shown["drifts"] and learned["warnings"] == shown["warnings"]
    assert (learned["rows"], learned["model"]) == (3000, str(model)) and learned["lower_bounds"]
    done("report", model, "-o", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "The loss rose at about row 1," in page and LIGHT_VERMILLION.lower() in page  # of the line at its row


def test_dates_of_later_rows_are_no_change():
    days = pa.array(np.datetime64("2024-01-01") + np.arange(3000) // 20)
    (rise,) = drifts_of(train(open_source(stream() | {"day": days}), Plan(target="y", learner=QUICK[1])))
    assert rise["time"] == str(days[rise["row"] - 1]) and rise["columns_compared"] == 3  # of a, b and the label
    assert [(change["column"], change["of"]) for change in rise["changed"]] == [("a", "relation to the target")]
    assert changed_most(rise | {"columns_compared": 0, "rows_compared": [11, 16]}).startswith("too few rows to compare")


def test_rows_of_weight_0_are_no_rise(done, tmp_path):
    data, counts = tmp_path / "stream.csv", []
    csv.write_csv(pa.table(stream() | {"w": np.where(np.arange(3000) < 1500, 1.0, 0.0)}), data)
    for option in ("--ignore", "--weight"):
        out, _ = done("train", data, "-t", "y", "-o", tmp_path / "m", *QUICK, "--json", option, "w")
        counts.append(json.loads(out)["drift_count"])
    assert counts == [1, 0]
