"""Explanations add up to what the model predicts, on every door; their files carry the margin and the id."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

POOL, QUICK = (), ("--learner", "scinol2")
WORDS = ["red", "green", "blue", "good", "bad", "long", "short", "river", "house"]


def table(kind, n=400, seed=0):
    """Rows with numbers, categories, texts and missing values."""
    rng = np.random.default_rng(seed)
    words = np.array([" ".join(rng.choice(WORDS, 9)) for _ in range(n)])
    a, job = rng.normal(size=n).round(3), rng.choice(["cook", "clerk", "pilot"], n)
    score = a + 1.5 * (job == "pilot") + np.array([text.count("good") - text.count("bad") for text in words])
    noisy = score + rng.logistic(size=n)
    y = {
        "two": lambda: np.where(noisy > 0.5, "yes", "no"),
        "four": lambda: np.array(list("abcd"))[np.digitize(noisy, [-1.0, 0.5, 2.0])],
        "numbers": lambda: noisy,
    }[kind]()
    gaps = pa.array(np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)).round(3), from_pandas=True)
    return {"id": [f"r{k:03}" for k in range(n)], "a": a, "job": job, "note": words, "gaps": gaps, "y": y}


def strange(kind):
    """New rows with a category never seen, gaps, and a number far away."""
    rows = {name: list(values) for name, values in pa.table(table(kind, 50, 1)).to_pydict().items()}
    rows["job"][:3], rows["a"][3:5], rows["note"][6] = ["alien", None, "pilot"], [None, 1e6], ""
    return {name: values for name, values in rows.items() if name != "y"}


def added_up(path):
    """The columns of a file of explanations, and the sums of its contributions."""
    columns = csv.read_csv(path).to_pydict()
    first = list(columns).index("(constant)")
    return columns, np.sum([columns[name] for name in list(columns)[first:]], axis=0)


@pytest.mark.parametrize(("kind", "learner"), [("two", POOL), ("four", QUICK), ("numbers", POOL)])
def test_the_files_of_the_command_line(run, tmp_path, kind, learner):
    data, new, model = tmp_path / "data.csv", tmp_path / "new.csv", tmp_path / "m"
    csv.write_csv(pa.table(table(kind)), data)
    csv.write_csv(pa.table(strange(kind)), new)
    options = ("--ignore", "id", "--text", "note", *learner)
    assert run("train", data, "-t", "y", "-o", model, *options)[0] == 0
    status, _, err = run("explain", model, new, "--id", "id", "-o", tmp_path / "why.csv")
    assert status == 0, err
    columns, sums = added_up(tmp_path / "why.csv")
    assert columns["id"] == strange(kind)["id"] and next(iter(columns)) == "id"
    np.testing.assert_allclose(sums, columns["margin"], rtol=1e-9, atol=1e-9)
    assert run("predict", model, new, "--id", "id", "--contributions", "-o", tmp_path / "p.csv")[0] == 0
    predicted, others = added_up(tmp_path / "p.csv")
    assert columns["prediction"] == predicted["prediction"] and columns["margin"] == predicted["margin"]
    np.testing.assert_allclose(others, sums, rtol=1e-9, atol=1e-9)
    if kind == "numbers":
        np.testing.assert_allclose(sums, predicted["prediction"], rtol=1e-9, atol=1e-9)
        return
    logs = {
        name[12:-1]: np.log(np.maximum(values, 1e-300))
        for name, values in predicted.items()
        if name.startswith("probability[")
    }
    mean = np.mean(list(logs.values()), axis=0) if len(logs) > 2 else logs["no"]
    expected = np.array([logs[label][k] - mean[k] for k, label in enumerate(columns["class"])])
    near = np.min(list(logs.values()), axis=0) > -9.0  # 1 - p of a p near 1 has few digits
    assert near.sum() > 20
    np.testing.assert_allclose(sums[near], expected[near], rtol=1e-9, atol=1e-9)
    assert run("explain", model, new, "--id", "id", "--top", "1", "-o", tmp_path / "top.csv")[0] == 0
    np.testing.assert_allclose(added_up(tmp_path / "top.csv")[1], sums, rtol=1e-9, atol=1e-9)
