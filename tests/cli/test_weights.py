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
