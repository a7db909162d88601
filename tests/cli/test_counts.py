"""Counts with exposures, and a rare class that is never predicted."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import tunefree


def test_rows_that_a_loss_cannot_learn_are_skipped_and_counted(run, done, tmp_path):
    rng = np.random.default_rng(0)
    table = {"age": rng.uniform(18, 80, 200).tolist(), "area": ["north", "south"] * 100}
    table |= {"years": rng.uniform(0.1, 1.0, 200).tolist(), "claims": rng.poisson(0.5, 200).tolist()}
    table["claims"][6], table["years"][8], table["years"][9] = -1, 0.0, None
    good = {name: [v for k, v in enumerate(values) if k not in (6, 8, 9)] for name, values in table.items()}
    csv.write_csv(pa.table(table), tmp_path / "bad.csv")
    csv.write_csv(pa.table(good), tmp_path / "good.csv")
    models = {name: str(tmp_path / f"{name}.model") for name in ("bad", "good")}
    for name, model in models.items():
        options = ("-t", "claims", "--loss", "poisson", "--exposure", "years", "--on-bad-row", "skip", "-o", model)
        output, _ = done("train", str(tmp_path / f"{name}.csv"), *options)
        assert ("rows skipped 3" in " ".join(output.split())) == (name == "bad"), output
    predicted = [tunefree.load(model).predict({"age": [30.0], "area": ["north"]}).tolist() for model in models.values()]
    assert predicted[0] == predicted[1]
    found = run("evaluate", models["good"], str(tmp_path / "bad.csv"), "--on-bad-row", "skip", "--json")[1]
    assert json.loads(found)["rows"] == 197


def test_a_rare_class_that_is_never_predicted(run, done, tmp_path):
    rng, data, model = np.random.default_rng(0), tmp_path / "claims.csv", tmp_path / "m"
    a = rng.normal(size=3000).round(3)
    is_claim = rng.random(3000) < 1.0 / (1.0 + np.exp(3.5 - 0.8 * a))
    csv.write_csv(pa.table({"a": a, "y": np.where(is_claim, "claim", "none")}), data)
    done("train", data, "-t", "y", "-o", model, "--learner", "scinol2")
    share, line = is_claim.mean(), " ".join(run("evaluate", model, data)[1].split())
    assert f"Class 'claim' is never predicted, and has {100 * share:.2f} % of the rows" in line
    assert "`predict --threshold P`, the least probability of 'none'" in line
    figures, tenths = map(json.loads(run("evaluate", model, data, "--json")[1]).get, ("reliability", "tenths"))
    assert [known["class"] for known in figures] == ["claim"] and not figures[0]["is_predicted"]
    assert figures[0]["actual_over_expected"] == pytest.approx(share / figures[0]["mean_probability"])
    assert sum(tenth["rows"] for tenth in tenths) == 3000
    assert sum(tenth["rows"] * tenth["share"] for tenth in tenths) == pytest.approx(share * 3000)
