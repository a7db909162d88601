"""Early stopping on the command line: a model file with its path, to predict with, to look at and to stop anew."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.metrics import log_loss, mean_absolute_error

from tests.cli.test_cli import FILES, data, model  # noqa: F401 - fixtures
from tests.workflows.test_training import people
from tunefree import IterativeRegularizationClassifier, IterativeRegularizationRegressor
from tunefree.core import storage
from tunefree.core.errors import ModelError
from tunefree.model_files import trained as model_files
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained, load
from tunefree.papers.early_stopping import path_model, preparation
from tunefree.papers.early_stopping.training import descend
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.workflows.prediction import predict

LABELS = {"two": ["no", "yes"], "three": ["few", "more", "many"]}
KERNELS = {"weights": (), "rbf": ("--kernel", "rbf")}


def table(kind, n=300, seed=0):
    """Numbers with labels or a number to predict, and which of the labels each row has."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] + 5.0
    y = (X[:, 0] - 5.0) + 0.1 * (X[:, 1] - 5.0) + 0.3 * rng.normal(size=n)
    columns = {f"x{j}": X[:, j] for j in range(3)}
    if kind == "number":
        return columns | {"y": 100.0 * y}, X, 100.0 * y
    codes = np.digitize(y, [0.0] if kind == "two" else [-0.7, 0.7])
    # Labels stand in the file as they are sorted; that is how models know them.
    ordered = sorted(LABELS[kind])
    return (
        columns | {"y": [LABELS[kind][c] for c in codes]},
        X,
        np.array([ordered.index(LABELS[kind][c]) for c in codes]),
    )


@pytest.fixture
def early(run, data, tmp_path):  # noqa: F811
    """A model stopped early, of the people's table."""
    path = tmp_path / "early.model"
    if "early" not in FILES:
        status, out, err = run("train", data, "-t", "rich", "--learner", "early-stopping", "-o", path)
        assert status == 0, err
        assert "held-out log-loss" in out and "stopped at" in out
        FILES["early"] = path.read_bytes()
    path.write_bytes(FILES["early"])
    return path


@pytest.mark.parametrize(("kind", "form"), [("two", "rbf"), ("three", "weights"), ("number", "rbf")])
def test_predictions_are_those_of_the_estimator(run, tmp_path, kind, form):
    columns, X, y = table(kind)
    parquet.write_table(pa.table(columns), tmp_path / "d.parquet")
    made = ("train", tmp_path / "d.parquet", "-t", "y", "--learner", "early-stopping", *KERNELS[form])
    status, _, err = run(*made, "-o", tmp_path / "m", "--quiet")
    assert (status, err) == (0, "")
    classifies = kind != "number"
    estimator = (IterativeRegularizationClassifier if classifies else IterativeRegularizationRegressor)(
        kernel="rbf" if form == "rbf" else None
    ).fit(X, y)
    loaded = load(tmp_path / "m")
    assert loaded.model.path.tobytes() == estimator.path_.tobytes() and loaded.model.stop == estimator.n_iter_
    status, _, err = run("predict", tmp_path / "m", tmp_path / "d.parquet", "-o", tmp_path / "p.parquet")
    assert status == 0, err
    predicted = parquet.read_table(tmp_path / "p.parquet")
    status, out, err = run("evaluate", tmp_path / "m", tmp_path / "d.parquet", "--json")
    assert status == 0, err
    figures = json.loads(out)
    assert figures["rows"] == len(X)
    if classifies:
        ordered = np.array(sorted(LABELS[kind]))
        assert predicted["prediction"].to_pylist() == ordered[estimator.predict(X)].tolist()
        probabilities = np.column_stack([predicted[f"probability[{label}]"].to_numpy() for label in ordered])
        assert probabilities.tobytes() == estimator.predict_proba(X).tobytes()
        assert figures["error"] == pytest.approx(np.mean(estimator.predict(X) != y))
        assert figures["log_loss"] == pytest.approx(log_loss(y, estimator.predict_proba(X)))
        assert "loss" not in figures
    else:
        assert predicted["prediction"].to_numpy().tobytes() == estimator.predict(X).tobytes()
        assert figures["mean_absolute_error"] == pytest.approx(mean_absolute_error(y, estimator.predict(X)))
        assert figures["loss"] == pytest.approx(np.mean((estimator.predict(X) - y) ** 2))


LOSSES = ("hinge", "smoothed-hinge", "squared-hinge", "square")
QUICK = ("two", "square"), ("three", "hinge")
CASES = [
    pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow) for case in product(("two", "three"), LOSSES)
]


@pytest.mark.parametrize(("kind", "loss"), CASES)
def test_losses_that_are_no_log_loss(run, tmp_path, loss, kind):
    columns, X, y = table(kind)
    parquet.write_table(pa.table(columns), tmp_path / "d.parquet")
    made = ("train", tmp_path / "d.parquet", "-t", "y", "--learner", "early-stopping", "--loss", loss)
    assert run(*made, "-o", tmp_path / "m")[0] == 0
    status, out, err = run("evaluate", tmp_path / "m", tmp_path / "d.parquet", "--json")
    assert status == 0, err
    estimator = IterativeRegularizationClassifier(loss=loss).fit(X, y)
    figures = json.loads(out)
    least = np.finfo(float).eps  # no probability is taken for less
    probabilities = np.maximum(estimator.predict_proba(X), least)
    assert figures["log_loss"] == pytest.approx(-np.log(probabilities[np.arange(len(y)), y]).mean(), rel=1e-9)
    assert figures["loss"] != pytest.approx(figures["log_loss"])
    assert figures["error"] == pytest.approx(np.mean(estimator.predict(X) != y))


def test_what_inspect_tells(run, early, tmp_path):
    status, out, _ = run("inspect", early, "--json", "--top", "2")
    told = json.loads(out)
    assert status == 0
    assert (told["task"], told["learner"], told["kernel"]) == ("classification", "early-stopping", None)
    assert told["classes"] == ["no", "yes"] and told["rows"] == 2000 and told["iterations"] == 500
    assert [feature["feature"] for feature in told["features"]] == ["age", "job=pilot"]
    loaded = load(early)
    stop, estimator = loaded.model.stop, loaded.model.estimator
    assert told["stop"] == stop and told["validation_loss"] == loaded.model.path.validation_loss[stop - 1]
    spread = estimator.fitted_path_.standards
    weights = estimator.coef_[0] * spread.unit * spread.spread
    assert told["features"][0]["weight_yes"] == pytest.approx(np.abs(weights).max())
    status, out, _ = run("inspect", early)
    assert status == 0 and "job=pilot" in out and f"iteration {stop} of 500" in out


def test_what_inspect_tells_of_a_kernel(run, data, tmp_path):  # noqa: F811
    made = ("train", data, "-t", "rich", "--learner", "early-stopping", "--kernel", "rbf", "-o", tmp_path / "m")
    assert run(*made)[0] == 0
    status, out, _ = run("inspect", tmp_path / "m")
    assert status == 0 and re.search("kernel +rbf *\ngamma", out) and "in the space of a kernel" in out
    told = json.loads(run("inspect", tmp_path / "m", "--json")[1])
    assert told["features"] == [] and told["gamma"] == load(tmp_path / "m").model.estimator.gamma_


def test_the_path_of_a_model_is_that_of_its_data(run, data, early, tmp_path):  # noqa: F811
    status, out, err = run("path", early, "--json", "--plot", tmp_path / "path.svg")
    assert status == 0, err
    of_model, of_data = json.loads(out), json.loads(run("path", data, "-t", "rich", "--json")[1])
    assert of_data.pop("seconds") > 0
    assert of_model == of_data
    assert "at the stop" in (tmp_path / "path.svg").read_text()
    status, out, _ = run("path", early)
    assert status == 0 and out.count("<- stop") == 1 and re.search("iterations +500", out)


def test_a_model_is_stopped_anew(run, data, early, tmp_path):  # noqa: F811
    before = early.read_bytes()
    status, out, err = run("path", early, "--at", 3, "--output", tmp_path / "three.model", "--json")
    assert (status, json.loads(out)["stop"]) == (0, 3), err
    assert early.read_bytes() == before
    one, three = load(early), load(tmp_path / "three.model")
    assert three.model.stop == 3 != one.model.stop and three.model.path.tobytes() == one.model.path.tobytes()
    assert three.model.estimator.coef_.tobytes() == one.model.estimator.at(3).coef_.tobytes()
    assert run("evaluate", tmp_path / "three.model", data)[1] != run("evaluate", early, data)[1]
    back = ("path", tmp_path / "three.model", "--at", one.model.stop, "-o", tmp_path / "again.model")
    assert run(*back)[0] == 0
    assert (tmp_path / "again.model").read_bytes() == before
    status, out, _ = run("path", early, "--at", 7)
    assert status == 0 and re.search(r"(?m)^ *7 .*<- stop", out)


def test_a_path_of_data_may_be_written_too(run, data, early, tmp_path):  # noqa: F811
    written = ("path", data, "-t", "rich", "-o", tmp_path / "m")
    assert run(*written)[0] == 0
    assert (tmp_path / "m").read_bytes() == early.read_bytes()
    kernel = ("--kernel", "poly", "--iterations", 40, "--at", 9)
    assert run(*written, *kernel)[0] == 0
    found = load(tmp_path / "m")
    assert (found.model.estimator.kernel, found.model.stop, len(found.model.path)) == ("poly", 9, 40)


def test_little_memory_changes_no_bit(tmp_path):
    source = open_source(people(400))
    found = descend(source, Plan(target="rich", ignore=("pay",), learner="early-stopping", kernel="rbf"), 30)
    estimator = IterativeRegularizationClassifier(kernel="rbf", max_iter=30, gram_bytes=2**18)
    rows = preparation.matrix([batch.rows for batch, _ in predict(found, source, BadRows())], found.model.n_features)
    estimator.fit(rows, people(400)["rich"])._restore(found)
    found = estimator.trained_
    assert estimator.fitted_path_.descent.stride > 1
    found.save(tmp_path / "m")
    back = load(tmp_path / "m")
    for t in range(1, 31):
        one, two = (replace(trained, model=trained.model.at(t)) for trained in (found, back))
        two.save(tmp_path / "t")
        three = load(tmp_path / "t")
        pieces = [[p for _, p in predict(which, source, BadRows())] for which in (one, two, three)]
        assert pieces[0][0].tobytes() == pieces[1][0].tobytes() == pieces[2][0].tobytes()


@pytest.mark.parametrize("dense", [True, False])
def test_features_and_labels_that_were_never_seen(run, tmp_path, dense, monkeypatch):
    if not dense:
        monkeypatch.setattr(preparation, "DENSE_BYTES", 0)
    rng = np.random.default_rng(0)
    lines = [f"{k % 3} {k % 3 + 1}:1 {rng.integers(4, 9)}:{rng.random():.3f}" for k in range(120)]
    (tmp_path / "d.svm").write_text("\n".join(lines) + "\n")
    made = ("train", tmp_path / "d.svm", "--learner", "early-stopping", "--task", "classification")
    status, _, err = run(*made, "-o", tmp_path / "m")
    assert status == 0, err
    assert load(tmp_path / "m").model.estimator._is_dense == dense
    (tmp_path / "new.svm").write_text("0 1:1 4:0.5\n0 1:1 4:0.5 5000:7\n7 3:1\n")
    status, out, _ = run("predict", tmp_path / "m", tmp_path / "new.svm")
    first, second, third = out.splitlines()[1:]
    assert status == 0 and first == second != third
    figures = json.loads(run("evaluate", tmp_path / "m", tmp_path / "new.svm", "--json")[1])
    assert figures["rows_of_unseen_classes"] == 1 and np.isfinite(figures["log_loss"])
    assert figures["error"] == pytest.approx(1 / 3)


def test_rows_are_predicted_in_pieces(monkeypatch, tmp_path):
    source = open_source(people(400))
    found = descend(source, Plan(target="rich", ignore=("pay",)), 20)
    (whole,) = (p for _, p in predict(found, source, BadRows()))
    monkeypatch.setattr(path_model, "PIECE_BYTES", 8 * found.model.n_features * 7)
    (pieces,) = (p for _, p in predict(found, source, BadRows()))
    np.testing.assert_allclose(pieces, whole, rtol=1e-12)


def test_classes_that_come_late_and_weights(tmp_path):
    columns, X, y = table("three")
    order = np.argsort(np.array(columns["y"]) == "few", kind="stable")  # the first in the alphabet comes last
    rows = pa.table(columns | {"w": 1.0 + np.arange(len(X)) % 2}).take(order)
    source = open_source(rows.to_pydict())
    found = descend(source, Plan(target="y", weight="w"), 50)
    found.save(tmp_path / "m")
    back = model_files.load(tmp_path / "m")
    assert sorted(back.model.classes) == sorted(LABELS["three"]) and back.plan == found.plan
    estimator = IterativeRegularizationClassifier(max_iter=50)
    estimator.fit(X[order], y[order], sample_weight=rows["w"].to_numpy())
    (margins,) = (p for _, p in predict(back, source, BadRows()))
    assert margins.tobytes() == estimator.decision_function(X[order]).tobytes()


@pytest.mark.parametrize(
    "options",
    [
        ("--passes", 2),
        ("--holdout", 0.1),
        ("--shuffle",),
        ("--group", "job"),
        ("--class-weight", "balanced"),
        ("--memory-limit", "1G"),
        ("--from", "earlier.model"),
        ("--report", "page.html"),
        ("--save-every", 10),
        ("--resume",),
        ("--verbose",),
    ],
)
def test_options_of_learning_row_by_row_are_refused(run, data, tmp_path, options):  # noqa: F811
    made = ("train", data, "-t", "rich", "--learner", "early-stopping", "-o", tmp_path / "m")
    status, _, err = run(*made, *options)
    assert status == 2 and f"{options[0]} is for learning row by row; leave it out" in err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--learner", "early-stopping:eta=1"), "--learner NAME:SETTING is for single learners"),
        (("--learner", "early-stopping:average"), "--learner NAME:average is for single learners"),
        (("--learner", "early-stopping", "--only-for-prediction"), "--only-for-prediction is for the pool"),
        (("--learner", "early-stopping", "--kernel", "fly"), "choose one of rbf, laplacian, poly, linear"),
        (("--learner", "early-stopping", "--loss", "absolute"), "unknown loss"),
        (("--learner", "early-stopping", "--loss", "exponential"), "pass eta as a number"),
    ],
)
def test_early_stopping_that_cannot_be(run, data, tmp_path, options, message):  # noqa: F811
    status, _, err = run("train", data, "-t", "rich", "-o", tmp_path / "m", *options)
    assert status == 2 and message in err
    assert not (tmp_path / "m").exists()


def test_one_class_is_named(run, tmp_path):
    (tmp_path / "d.csv").write_text("x,y\n1,sun\n2,sun\n")
    status, _, err = run("train", tmp_path / "d.csv", "-t", "y", "--learner", "early-stopping", "-o", tmp_path / "m")
    assert status == 2 and "one class only, 'sun'" in err


@pytest.mark.parametrize("t", [0, 501, -1])
def test_iterations_that_are_not_on_the_path(run, early, tmp_path, t):
    status, _, err = run("path", early, "--at", t, "-o", tmp_path / "m")
    assert status == 2 and f"no iteration {t} to stop at; choose one from 1 to 500" in err
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    "options",
    [("--target", "rich"), ("--kernel", "rbf"), ("--iterations", 20), ("--on-bad-row", "skip"), ("--hash-bits", 3)],
)
def test_a_model_takes_no_options_of_data(run, early, options):
    status, _, err = run("path", early, *options)
    assert status == 2 and f"{options[0]} is for data" in err


def test_models_of_another_kind(run, data, early, model, tmp_path):  # noqa: F811
    status, _, err = run("path", model)
    assert status == 2 and "has no path; train with --learner early-stopping of `tunefree train`" in err
    status, _, err = run("certify", early)
    assert status == 2 and "not certified, explained or gone on with; train by another --learner" in err
    (tmp_path / "n.checkpoint").write_bytes(early.read_bytes())
    status, _, err = run("train", data, "-t", "rich", "-o", tmp_path / "n", "--resume")
    assert status == 2 and "n.checkpoint" in err and "gone on with" in err
    with pytest.raises(ModelError, match="regularization path"):
        Trained.load(early)
    with pytest.raises(ModelError, match="row by row"):
        model_files.load(model, "path")


def test_a_kind_that_is_unknown(run, data, early, tmp_path):  # noqa: F811
    arrays, header = storage.load(early)
    storage.save(tmp_path / "new.model", arrays, header | {"kind": "forest"})
    for command in (("predict", tmp_path / "new.model", data), ("inspect", tmp_path / "new.model")):
        status, _, err = run(*command)
        assert status == 2 and "'forest'" in err and "upgrade tunefree" in err


def test_a_damaged_file(run, data, early):  # noqa: F811
    early.write_bytes(early.read_bytes()[:-1])
    for command in (("predict", early, data), ("evaluate", early, data), ("inspect", early), ("path", early)):
        status, _, err = run(*command)
        assert status == 2 and "damaged" in err, command


def test_which_files_are_models(early, model, data, tmp_path):  # noqa: F811
    assert storage.is_model(early) and storage.is_model(model)
    (tmp_path / "empty").write_bytes(b"")
    for other in (data, tmp_path, tmp_path / "none", tmp_path / "empty", "-"):
        assert not storage.is_model(other)
