"""Files that hold weights only: they predict as the whole model does, and are refused where more is needed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cli.test_cli import run  # noqa: F401 - a fixture
from tests.fuzz import raw
from tunefree import Plan, open_source
from tunefree.core import storage
from tunefree.core.errors import ModelError
from tunefree.stream.batch import BadRows
from tunefree.workflows import model_files, prediction_model
from tunefree.workflows.prediction import predict
from tunefree.workflows.prediction_model import ForPrediction, MoreThanWeightsError
from tunefree.workflows.training import Trained, train

RNG = np.random.default_rng(0)


def words(tmp_path, n_classes):
    path = tmp_path / f"w{n_classes}.svm"
    rows = [(RNG.integers(0, 300, 8), i % n_classes) for i in range(2500)]
    path.write_text(
        "".join(f"{y} " + " ".join(f"{j}:1" for j in sorted({*(x + 10).tolist(), y + 1})) + "\n" for x, y in rows)
    )
    return open_source(str(path))


def margins(trained, source):
    return np.concatenate([found.predictions for found in predict(trained, source, BadRows())])


@pytest.mark.parametrize(
    ("learner", "n_classes"), [("scinol2", 2), pytest.param("pool", 2, marks=pytest.mark.slow), ("scinol2", 3)]
)
def test_classes_are_predicted_as_by_the_whole_model(tmp_path, learner, n_classes):
    source = words(tmp_path, n_classes)
    trained = train(source, Plan(learner=learner, task="classification"))
    trained.save(tmp_path / "whole")
    ForPrediction.of(trained).save(tmp_path / "short")
    found = model_files.load(tmp_path / "short")
    whole, short = (own.model.probabilities(margins(own, source)) for own in (trained, found))
    assert np.abs(whole - short).max() < (1e-6 if learner == "scinol2" else 1e-3)
    assert (tmp_path / "short").stat().st_size < (tmp_path / "whole").stat().st_size / 3
    for refused in (lambda: Trained.load(tmp_path / "short"), lambda: model_files.load(tmp_path / "short", whole=True)):
        with pytest.raises(ModelError, match="holds weights to predict with and nothing to learn on"):
            refused()


def test_many_weights_take_a_byte_each(tmp_path, monkeypatch):
    source = words(tmp_path, 3)
    trained = train(source, Plan(learner="scinol2", task="classification"))
    ForPrediction.of(trained).save(tmp_path / "short")
    monkeypatch.setattr(prediction_model, "MANY", 100)
    ForPrediction.of(trained).save(tmp_path / "shorter")
    arrays = storage.load(tmp_path / "shorter")[0]
    assert arrays["weights.0.weights"].dtype == np.int8
    short, shorter = (model_files.load(tmp_path / name) for name in ("short", "shorter"))
    exact, rounded = margins(short, source), margins(shorter, source)
    largest = np.abs(trained.model.ensemble.reads(trained.model.n_features)[0][0]).max()
    n_words = 9  # of a row, at most
    assert 0.0 < np.abs(exact - rounded).max() < n_words * largest / (2 * prediction_model.LEVELS)


def test_weights_stay_whole_where_eight_bits_would_leave_the_range_of_numbers():
    for unit, weight in ((1e307, 1e-3), (1e-307, 3e38)):
        weights = np.full((2, 1), weight, np.float32)
        kept, units = prediction_model.in_eight_bits(weights, np.full(2, unit))
        assert kept is not None and kept.dtype == np.float32 and units[0] == unit


def test_numbers_are_predicted_as_by_the_whole_model(tmp_path):
    x = RNG.normal(size=(600, 2))
    table = {"a": x[:, 0] * 1e6, "b": x[:, 1], "y": x[:, 0] * 1e6 + 1e7}
    trained = train(open_source(table), Plan(target="y", task="regression", learner="nag", view="steady"))
    ForPrediction.of(trained).save(tmp_path / "short")
    found = model_files.load(tmp_path / "short")
    np.testing.assert_allclose(margins(found, open_source(table)), margins(trained, open_source(table)), rtol=1e-6)


def test_files_that_lie_are_refused(tmp_path):
    source = words(tmp_path, 3)
    ForPrediction.of(train(source, Plan(learner="scinol2", task="classification"))).save(tmp_path / "short")
    arrays, header = storage.load(tmp_path / "short")
    for name, change in (
        ("weights.0.weights", lambda a: a[:, :2]),
        ("weights.0.units", lambda a: a[:-1]),
        ("weights.0.shares", lambda a: a * 0),
        ("weights.0.weights", lambda a: a * np.float32(np.nan)),
    ):
        raw.save(tmp_path / "lie", {**arrays, name: change(arrays[name])}, header)
        with pytest.raises(ModelError, match="lie: "):
            model_files.load(tmp_path / "lie")
    for key, value in (("stacks", []), ("classes", ["a"] * 4), ("temperature", "x"), ("range", [])):
        raw.save(tmp_path / "lie", arrays, {**header, "weights": {**header["weights"], key: value}})
        with pytest.raises(ModelError, match="lie: "):
            model_files.load(tmp_path / "lie")


def test_the_command_keeps_a_model_whole_that_is_more_than_weights(run, tmp_path):  # noqa: F811
    words(tmp_path, 2)
    data, model = tmp_path / "w2.svm", tmp_path / "m"
    short = ("train", data, "--task", "classification", "-o", model, "--for-prediction")
    assert run(*short, "--learner", "scinol2")[0] == 0
    status, out, err = run("evaluate", model, data)
    assert status == 0, err
    for command in (("inspect", model), ("train", data, "--from", model, "-o", tmp_path / "n")):
        status, _, err = run(*command)
        assert status == 2 and "nothing to learn on" in err
    status, _, err = run(*short, "--learner", "scinol2", "--loss", "hinge")
    assert status == 0 and "holds the whole model" in err
    assert Trained.load(model).progress.complete
    with pytest.raises(MoreThanWeightsError):
        ForPrediction.of(Trained.load(model))
