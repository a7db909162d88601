"""Rows that are predicted although they differ from those that were learned: what a user is told, at each door."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import tunefree
from tunefree.core.errors import DataWarning

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


@pytest.fixture
def files(run, tmp_path):
    for name, table in (("train", cars()), ("clean", cars(1)), ("odd", odd())):
        arrow = pa.table({column: pa.array(values, from_pandas=True) for column, values in table.items()})
        csv.write_csv(arrow, tmp_path / f"{name}.csv")
    status, _, err = run(
        "train", tmp_path / "train.csv", "-t", "claim", "-o", tmp_path / "m", "--learner", "scinol2", "-q"
    )
    assert status == 0 and "note" not in err
    return tmp_path


NOTES = [
    "note: column 'age': missing in 5 % of the rows, in training in 0 % (a test of level 0.001 for all columns"
    " together) (30 rows, the first: {}, row 1)",
    "note: column 'fuel': a category that training never saw: 'DIESEL', like 'Diesel' (12 rows, the first: {}, row 1)",
]


def test_predict_tells_what_is_odd_in_a_line_each(run, files):
    status, _, err = run("predict", files / "m", files / "odd.csv", "-o", files / "p.csv")
    lines = err.splitlines()
    assert status == 0 and lines[:2] == [note.format(files / "odd.csv") for note in NOTES]
    assert lines[2].startswith("note: column 'power': outside what training saw")
    assert "such as 100000 (1 row, the first:" in lines[2]
    assert lines[3:] == [f"600 predictions in {files / 'p.csv'}"]
    status, out, err = run("predict", files / "m", files / "clean.csv", "-o", files / "p.csv")
    assert err == f"600 predictions in {files / 'p.csv'}\n"


def test_python_warns_once_a_call():
    X, y = ({name: own for name, own in table.items() if name != "claim"} for table in (cars(), odd())), cars()["claim"]
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
