"""A rare class: its probabilities against its rows, and one line where it is never predicted."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from tunefree.workflows.metrics import Scored
from tunefree.workflows.reliability import class_reliability

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
    assert f"class 'claim' is never predicted: the error is its share of the rows, {100 * share:.2f} %" in line
    assert "--threshold P`, the least probability of 'none'" in line and "--class-weight" in line
    table = out[out.index("Class 'claim'") :].splitlines()
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
    assert "Class claim: actual and expected" in page and "is never predicted" in page
    assert "tenth of the rows, by probability of claim" in page


def scored(codes, scores, weight=None, n_classes=2):
    codes = np.asarray(codes)
    weight = np.ones(len(codes)) if weight is None else np.asarray(weight, float)
    return Scored(weight, {}, codes, np.zeros(len(codes), int), np.asarray(scores, float), n_classes=n_classes)


def test_weights_stand_for_copies_and_odd_rows_are_borne():
    rng = np.random.default_rng(2)
    scores, weight = rng.random((300, 1)) * 0.3, rng.integers(0, 4, 300)
    codes = (rng.random(300) < scores[:, 0]).astype(int)
    [one] = class_reliability(scored(codes, scores, weight), ["no", "yes"])
    [other] = class_reliability(scored(np.repeat(codes, weight), np.repeat(scores, weight, 0)), ["no", "yes"])
    assert one.label == "yes" and one.share == pytest.approx(other.share) and one.ratio == pytest.approx(other.ratio)
    assert [own.share for own in one.tenths] == pytest.approx([own.share for own in other.tenths])
    [alone] = class_reliability(scored([0], [[0.2]]), ["no", "yes"])
    assert (alone.label, alone.share, len(alone.tenths)) == ("no", 1.0, 1)
    [unseen] = class_reliability(scored([2, 1, 2], [[0.2], [0.0], [0.9]]), ["no", "yes"])
    assert (unseen.label, unseen.rows, unseen.probability) == ("yes", 1, 0.0)
    assert class_reliability(scored([2, 2], [[0.2], [0.9]]), ["no", "yes"]) == []
    assert class_reliability(scored([1, 0], [[0.2], [0.9]], [0.0, 0.0]), ["no", "yes"]) == []
    many = class_reliability(scored([0, 1, 2, 2], np.full((4, 3), 1 / 3), n_classes=3), list("abc"))
    assert [known.label for known in many] == ["b", "a", "c"]
