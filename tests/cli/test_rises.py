"""Streams that change, and rows that differ from those that were learned, are told; others are not."""

import json
import re
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import tunefree
from tunefree.core.errors import DataWarning

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
def test_a_reversal_is_told_with_its_row_and_the_losses(run, done, tmp_path, learner):
    data, model = write(tmp_path / "stream.csv", stream(change=1500)), tmp_path / "m"
    out, _ = done("train", data, "-t", "y", "-o", model, *learner, "--json")
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
    done("report", model, "-o", tmp_path / "r.html")
    assert "The loss rose at about row 1," in (tmp_path / "r.html").read_text()


N = 600


def cars(seed=0, n=N):
    random = np.random.default_rng(seed)
    fuel, power = np.array(["Diesel", "Petrol", "Gas"])[random.integers(0, 3, n)], random.normal(100.0, 20.0, n)
    claim = random.random(n) < 0.2 + 0.4 * (fuel == "Gas")
    return {"fuel": fuel, "power": power, "age": random.integers(0, 30, n).astype(float), "claim": claim}


def odd():
    """Rows with something odd of each kind."""
    table = cars(1)
    table["fuel"][:12] = "DIESEL"
    table["power"][3] = 100_000.0
    table["age"] = np.where(np.arange(N) < 30, np.nan, table["age"])
    return table


def test_python_warns_once_a_call():
    X, y = (
        ({name: values for name, values in table.items() if name != "claim"} for table in (cars(), odd())),
        cars()["claim"],
    )
    learned, later = X
    for model in (
        tunefree.train(cars(), target="claim", learner="scinol2"),
        tunefree.ScInOLClassifier().fit(learned, y),
    ):
        for predict in (model.predict, model.predict_proba, model.decision_function):
            with pytest.warns(DataWarning, match="'DIESEL', like 'Diesel'") as caught:
                predict(later)
            assert len(caught) == 1 and len(str(caught[0].message).splitlines()) == 3
        with warnings.catch_warnings():
            warnings.simplefilter("error", DataWarning)
            model.predict(learned)
            model.predict({name: values[:1] for name, values in learned.items()})
