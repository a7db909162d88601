"""The pool on the command line: options have effects or are refused, commands tell the truth."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from tests.workflows.test_training import people
from tunefree.model_files.trained import Trained

N = 300


def written(path, start, stop, *without):
    csv.write_csv(pa.table(people()).slice(start, stop - start).drop_columns(list(without)), path)
    return path


@pytest.fixture
def data(tmp_path):
    return written(tmp_path / "people.csv", 0, N, "pay")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Files of a model of classes and of one of numbers, and new rows."""
    from tunefree.model_files.plan import Plan
    from tunefree.stream.source import open_source
    from tunefree.training.training import train

    folder = tmp_path_factory.mktemp("models")
    for name, target, other in (("rich", "rich", "pay"), ("pay", "pay", "rich")):
        source = open_source(str(written(folder / f"{name}.csv", 0, N, other)))
        train(source, Plan(target=target)).save(folder / f"{name}.model")
        written(folder / f"{name}.new.csv", N, N + 200, other)
    return folder


def test_inspect_shows_the_members_that_predict(run, trained):
    for name in ("rich", "pay"):
        model = Trained.load(trained / f"{name}.model").model
        found = json.loads(run("inspect", trained / f"{name}.model", "--json")[1])
        awake = set(np.array(model.pool.members.names)[model.pool.members.places_awake].tolist())
        weights = {row["member"]: row["weight"] for row in found["members"]}
        assert set(weights) <= awake
        assert sum(weights.values()) == pytest.approx(1.0)
        assert found["features"] == [] and {term["column"] for term in found["terms"]} == {"age", "job"}
        brief = run("inspect", trained / f"{name}.model")[1]
        assert brief.count("\n") <= 40 and f"{len(weights)} members with their weights" in brief and "--top 0" in brief
        status, out, err = run("inspect", trained / f"{name}.model", "--top", "0")
        assert (status, err) == (0, "")
        assert "Weight: in the mean of the members that the mixture corrects, for rows to come." in " ".join(
            out.split()
        )
        assert "Features have no weights" in out and "classes so far" not in out
        assert all(member in out for member in weights)


def test_a_model_for_prediction_predicts_as_the_whole_and_learns_no_more(run, data, tmp_path):
    start = "train", data, "-t", "rich", "-q", "-o"
    assert run(*start, tmp_path / "whole")[0] == run(*start, tmp_path / "small", "--only-for-prediction")[0] == 0
    found = []
    for name in ("whole", "small"):
        assert run("predict", tmp_path / name, data, "-o", tmp_path / "p.csv")[0] == 0
        found.append(csv.read_csv(tmp_path / "p.csv")["probability[yes]"].to_numpy())
    np.testing.assert_allclose(found[1], found[0], atol=2e-3)
    status, _, err = run("train", data, "--from", tmp_path / "small", "-o", tmp_path / "more")
    assert status == 2 and "this model only predicts" in err
    assert not (tmp_path / "more").exists()
