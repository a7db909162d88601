"""By what rows are weighted is told, wherever losses are; a file without the weights is judged and told of."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

QUICK = ("--learner", "scinol2")


@pytest.fixture
def weighted(tmp_path):
    rng, n = np.random.default_rng(0), 400
    a, w = rng.normal(size=n), np.where(rng.random(n) < 0.3, 5, 1)
    y = np.where((a + 0.5 * rng.logistic(size=n) > 0.0) ^ (w == 5), "yes", "no")
    csv.write_csv(pa.table({"a": a, "w": w, "y": y}), tmp_path / "w.csv")
    csv.write_csv(pa.table({"a": a, "y": y}), tmp_path / "bare.csv")
    return tmp_path


def test_evaluate_uses_the_weights_of_the_model_and_says_so(run, weighted):
    data, model = weighted / "w.csv", weighted / "m"
    status, out, err = run("train", data, "-t", "y", "--weight", "w", "-o", model, *QUICK)
    assert status == 0 and "weighted by           column 'w'" in out, out + err
    status, out, err = run("evaluate", model, data)
    assert status == 0 and "weighted by           column 'w'" in out and "note" not in err, out + err
    figures = json.loads(run("evaluate", model, data, "--json")[1])
    assert figures["weighted_by"] == "column 'w'" and figures["sum_of_weights"] > 800
    run("predict", model, data, "-o", weighted / "p.csv")
    table = csv.read_csv(data)
    wrong = csv.read_csv(weighted / "p.csv")["prediction"].to_numpy() != table["y"].to_numpy()
    assert figures["error"] == pytest.approx(np.average(wrong, weights=table["w"].to_numpy()))
    for command in ("inspect", "certify"):
        assert re.search("rows.* 400 *\nweighted by +column 'w'", run(command, model)[1])
    assert run("report", model, data, "-o", weighted / "r.html")[0] == 0
    assert (weighted / "r.html").read_text().count("weighted by") >= 2
    said = run("compare", data, "-t", "y", "--weight", "w", "--learner", "scinol2", "--learner", "nag")[1]
    assert re.search("rows +400 *\nweighted by +column 'w'", said)


def test_a_file_without_the_weights_is_judged_with_equal_ones(run, weighted):
    model = weighted / "m"
    run("train", weighted / "w.csv", "-t", "y", "--weight", "w", "-o", model, *QUICK)
    status, out, err = run("evaluate", model, weighted / "bare.csv")
    assert status == 0 and "weighted" not in out
    assert "note: column 'w': the column of weights is missing: rows count equally (400 rows, the first: " in err
    assert "weighted_by" not in json.loads(run("evaluate", model, weighted / "bare.csv", "--json")[1])
    assert run("predict", model, weighted / "bare.csv", "-o", weighted / "p.csv")[2].count("note") == 0
    status, _, err = run("evaluate", model, weighted / "bare.csv", "--progressive")
    assert status and "there is no weight column 'w'" in err


def test_importances_of_vowpal_wabbit(run, tmp_path):
    path = tmp_path / "rows.vw"
    path.write_text("".join(f"{1 if k % 2 else -1} {1 + k % 3} | x:{k % 2}\n" for k in range(60)))
    assert run("train", path, "-o", tmp_path / "m", *QUICK)[0] == 0
    assert "weighted by           the importance in its line" in run("evaluate", tmp_path / "m", path)[1]
