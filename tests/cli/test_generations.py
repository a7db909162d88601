"""The pool on the command line: options have effects or are refused, commands tell the truth."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from tests.workflows.test_training import people
from tunefree.model_files.trained import Trained

N = 300
PIECE = 100


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


REFUSED = [  # options that have no effect on the pool, and what the error says
    (("--learner", "nag", "--only-for-prediction"), "--only-for-prediction is for the pool"),
    (("--loss", "hinge"), "the pool learns probabilities"),
    (("--group", "rich"), "--target and --group name the same column, 'rich'"),
    (("--group", "job", "--shuffle"), "--group keeps the rows of a group together"),
    (("--group", "jib"), "there is no group column 'jib'; did you mean 'job'"),
    (("--group", "job", "--learner", "nag"), "--group is for the pool"),
    (("--memory-limit", "1K"), "of memory, more than the 1024 bytes of --memory-limit"),
]


@pytest.mark.parametrize(
    ("options", "problem"), REFUSED, ids=lambda part: " ".join(part) if isinstance(part, tuple) else ""
)
def test_options_without_an_effect_are_refused(run, data, tmp_path, options, problem):
    status, out, err = run("train", data, "-t", "rich", "-o", tmp_path / "m", *options)
    assert (status, out) == (2, "")
    assert err.count("tunefree: ") == 1 and problem in err.replace("\n", " ")
    assert not (tmp_path / "m").exists()


EFFECTIVE = [
    ("--holdout", "0.2"),
    ("--hash-bits", "6"),
    ("--class-weight", "balanced"),
    ("--class-weight", "yes=3"),
    ("--shuffle",),
    ("--ignore", "age"),
    ("--categorical", "age"),
    ("--weight", "age"),
    ("--group", "age"),
    ("--only-for-prediction",),
]


def test_other_options_have_an_effect(run, data, tmp_path):
    found = {}
    for options in ((), *EFFECTIVE):
        path = tmp_path / "m"
        status, _, err = run("train", data, "-t", "rich", "-o", path, "-q", *options)
        assert (status, err) == (0, ""), options
        assert run("predict", path, data, "-o", tmp_path / "p.csv")[0] == 0
        found[options] = (tmp_path / "p.csv").read_bytes(), path.stat().st_size
    assert len({content for content, _ in found.values()}) == len(found)
    assert found["--only-for-prediction",][1] < 0.8 * found[()][1]


def test_checkpoints_on_the_way_change_no_model(run, data, tmp_path):
    start = "train", data, "-t", "rich", "-q", "-o"
    assert run(*start, tmp_path / "whole")[0] == 0
    for options in (("--save-every", PIECE), ("--resume",)):
        status, _, err = run(*start, tmp_path / "m", *options)
        assert status == 0, err
        assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


def test_inspect_shows_the_members_that_predict(run, trained):
    for name in ("rich", "pay"):
        model = Trained.load(trained / f"{name}.model").model
        found = json.loads(run("inspect", trained / f"{name}.model", "--json")[1])
        awake = set(np.array(model.pool.members.names)[model.pool.members.places_awake].tolist())
        weights = {row["member"]: row["weight"] for row in found["members"]}
        assert set(weights) <= awake
        assert sum(weights.values()) == pytest.approx(1.0)
        assert found["features"] == [] and {term["column"] for term in found["terms"]} == {"age", "job"}
        status, out, err = run("inspect", trained / f"{name}.model")
        assert (status, err) == (0, "")
        assert "Weight: in the mean of the members that the mixture corrects, for rows to come." in " ".join(
            out.split()
        )
        assert "Features have no weights" in out and "classes so far" not in out
        assert all(member in out for member in weights)


def test_certificates_say_nothing_of_the_mixture_of_members(run, trained):
    for name in ("rich", "pay"):
        found = json.loads(run("certify", trained / f"{name}.model", "--json")[1])
        progressive = Trained.load(trained / f"{name}.model").progress.progressive[0]
        assert found["loss"] == pytest.approx(progressive.mean_loss())
        assert "pool" not in found and "kernels" not in found
        bounds = [row["bound"] for row in found["lower_bounds"]]
        assert bounds == sorted(bounds, reverse=True)
        out = run("certify", trained / f"{name}.model")[1]
        assert "mixing cost" not in out


def test_reports_show_the_members_that_predict_and_no_weights(run, trained, tmp_path):
    page = tmp_path / "r.html"
    status, _, err = run("report", trained / "pay.model", trained / "pay.new.csv", "-o", page)
    assert status == 0, err
    text, model = page.read_text(), Trained.load(trained / "pay.model").model
    assert all(member in text for member in model.predictor.shares())
    assert "Weight: in the mean of the members that the mixture corrects, for rows to come." in text
    assert "Features of the linear members" not in text and "mixing cost" not in text


def test_evaluate_agrees_with_predict(run, trained, tmp_path):
    model, new = trained / "rich.model", trained / "rich.new.csv"
    assert run("predict", model, new, "-o", tmp_path / "p.csv")[0] == 0
    wrong = np.mean(csv.read_csv(tmp_path / "p.csv")["prediction"].to_numpy() != csv.read_csv(new)["rich"].to_numpy())
    found = json.loads(run("evaluate", model, new, "--json")[1])
    assert found["error"] == pytest.approx(wrong) and wrong < 0.35


def test_a_model_goes_on_with_further_rows(run, trained, tmp_path):
    further = "train", trained / "rich.new.csv", "--from", trained / "rich.model", "-o", tmp_path / "m"
    status, _, err = run(*further)
    assert status == 0, err
    model = Trained.load(tmp_path / "m").model
    assert model.pool.rows == N + 200
    assert model.pool.members.growth.awake[0, "boosted"][0].rows == N + 200


def test_a_model_for_prediction_predicts_as_the_whole_and_learns_no_more(run, data, tmp_path):
    start = "train", data, "-t", "rich", "-q", "-o"
    assert run(*start, tmp_path / "whole")[0] == run(*start, tmp_path / "small", "--only-for-prediction")[0] == 0
    found = []
    for name in ("whole", "small"):
        assert run("predict", tmp_path / name, data, "-o", tmp_path / "p.csv")[0] == 0
        found.append(csv.read_csv(tmp_path / "p.csv")["probability[yes]"].to_numpy())
    np.testing.assert_allclose(found[1], found[0], atol=2e-3)
    status, _, err = run("train", data, "--from", tmp_path / "small", "-o", tmp_path / "more")
    assert status == 2 and "what learning needs was left out of this model" in err
    assert not (tmp_path / "more").exists()
