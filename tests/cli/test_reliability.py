"""A rare class: its probabilities against its rows, and one line where it is never predicted."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

QUICK = ("--learner", "scinol2")


def claims(n=3000, seed=0, labels=("none", "claim")):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n).round(3)
    return {
        "a": a,
        "b": rng.normal(size=n).round(3),
        "y": np.array(labels)[(rng.random(n) < 1.0 / (1.0 + np.exp(3.5 - 0.8 * a))).astype(int)],
    }


def write(path, table):
    csv.write_csv(pa.table(table), path)
    return path


def test_a_rare_class_that_is_never_predicted(run, tmp_path):
    data, model = write(tmp_path / "claims.csv", claims()), tmp_path / "m"
    assert run("train", data, "-t", "y", "-o", model, *QUICK)[0] == 0
    out = run("evaluate", model, data)[1]
    share = np.mean(claims()["y"] == "claim")
    line = " ".join(out.split())
    assert f"Class 'claim' is never predicted: the error is its share of the rows, {100 * share:.2f} %" in line
    assert "--threshold P`, the least probability of 'none'" in line and "--class-weight" in line
    table = out[out.index("Class 'claim', ") :].splitlines()
    assert "by tenth of its probability" in table[0] and "actual / expected" in table[1] and "95 %" in table[1]
    tenths = [re.split(r" {2,}", row.strip()) for row in table[2:12]]
    probabilities = [float(row[0]) for row in tenths]
    assert probabilities == sorted(probabilities) and max(probabilities) < 0.5
    assert sum(int(row[1].replace(",", "")) for row in tenths) == 3000
    assert sum(float(row[3]) for row in tenths) == round(share * 3000)
    whole = json.loads(run("evaluate", model, data, "--json")[1])
    figures = whole["reliability"]
    assert [known["class"] for known in figures] == ["claim"] and not figures[0]["is_predicted"]
    assert figures[0]["share"] == pytest.approx(share)
    assert figures[0]["actual_over_expected"] == pytest.approx(share / figures[0]["mean_probability"])
    assert all(own["low"] <= own["share"] <= own["high"] for own in whole["tenths"])
    assert run("report", model, data, "-o", tmp_path / "r.html")[0] == 0
    page = (tmp_path / "r.html").read_text()
    assert "Class claim: actual against expected" in page and "is never predicted" in page
    assert "probability of claim" in page
