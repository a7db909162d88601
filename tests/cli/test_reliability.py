"""A rare class: its probabilities against its rows, and one line where it is never predicted."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

QUICK = ("--learner", "scinol2")


def test_a_rare_class_that_is_never_predicted(run, tmp_path):
    rng, data, model = np.random.default_rng(0), tmp_path / "claims.csv", tmp_path / "m"
    a, b = rng.normal(size=(2, 3000)).round(3)
    is_claim = rng.random(3000) < 1.0 / (1.0 + np.exp(3.5 - 0.8 * a))
    csv.write_csv(pa.table({"a": a, "b": b, "y": np.where(is_claim, "claim", "none")}), data)
    assert run("train", data, "-t", "y", "-o", model, *QUICK)[0] == 0
    out = run("evaluate", model, data)[1]
    share = is_claim.mean()
    line = " ".join(out.split())
    assert f"Class 'claim' is never predicted: the error is its share of the rows, {100 * share:.2f} %" in line
    assert "--threshold P`, the least probability of 'none'" in line and "--class-weight" in line
    assert "Class 'claim', " in out and "by tenth of its probability" in out
    whole = json.loads(run("evaluate", model, data, "--json")[1])
    figures = whole["reliability"]
    assert [known["class"] for known in figures] == ["claim"] and not figures[0]["is_predicted"]
    assert figures[0]["share"] == pytest.approx(share)
    assert figures[0]["actual_over_expected"] == pytest.approx(share / figures[0]["mean_probability"])
    tenths = whole["tenths"]
    assert all(own["low"] <= own["share"] <= own["high"] for own in tenths)
    means = [own["probability"] for own in tenths]
    assert means == sorted(means) and max(means) < 0.5 and sum(own["rows"] for own in tenths) == 3000
    assert sum(own["share"] * own["rows"] for own in tenths) == pytest.approx(share * 3000)
    assert run("report", model, data, "-o", tmp_path / "r.html")[0] == 0
    page = (tmp_path / "r.html").read_text()
    assert "Class claim: actual against expected" in page and "is never predicted" in page
    assert "probability of claim" in page
