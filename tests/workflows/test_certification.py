"""What one pass proves, and what its progressive loss counts."""

import re

import numpy as np
import pytest

from tunefree import TuneFreeRegressor
from tunefree.core.errors import DataError, ModelError
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.report.guarantees import certificates
from tunefree.report.rendering import record
from tunefree.stream.source import open_source
from tunefree.training.training import learn_more, train
from tunefree.workflows.certification import read_weights, theorem_of


def numbers(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    margin = X @ [1.0, -2.0, 0.0] + 0.5
    label = np.where(rng.random(n) < 1 / (1 + np.exp(-margin)), "yes", "no")
    return {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "label": label}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    train(open_source(numbers()), Plan(target="label", learner="scinol2")).save(path)
    return path


def losses(table, weights, constant):
    margins = sum(weights[name] * table[name] for name in weights) + constant
    return np.logaddexp(0.0, -np.where(table["label"] == "yes", 1.0, -1.0) * margins)


def test_the_true_weights_are_not_below_the_bounds(saved, tmp_path):
    table = numbers()
    (tmp_path / "weights.csv").write_text("feature,weight\na,1\nb,-2\n(constant),0.5\n")
    found = record(certificates(Trained.load(saved), tmp_path / "weights.csv"))
    mean = losses(table, {"a": 1.0, "b": -2.0}, 0.5).mean()
    radius = max(abs(table["a"]).max(), 2 * abs(table["b"]).max(), 0.5)
    assert found["weights"]["loss_at_least"] <= mean
    assert found["weights"]["regret_at_most"] <= found["weights"]["theorem"] + 1e-9
    for row in found["lower_bounds"]:
        assert row["radius"] < radius or row["bound"] <= mean
    assert found["loss"] - found["weights"]["regret_at_most"] > 0.5 * mean  # and it says something


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read as CSV"),
        (None, "there is no such file"),
        ("feature,weight\n007,1\n", "there is no feature '007'"),
        ("feature,weight\na,one\n", "cannot be read as CSV .*'one'"),
        ("name,weight\na,1\n", "the columns are name, weight; write feature, weight"),
        ("feature,weight,other\na,1,2\n", "write feature, weight"),
        ("feature,weight\n(constant),1\nage,1\n", "row 2, column 'feature': there is no feature 'age'; the features"),
        ("feature,weight\na,1\nb,1\na,2\n", "row 3: there are two weights of 'a'"),
        ("feature,weight\na,\n", "row 1: the weight of 'a' is not a finite number"),
    ],
)
def test_weights_that_cannot_be_read(saved, tmp_path, text, message):
    path = tmp_path / "weights.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_weights(Trained.load(saved), path)


def test_a_learner_has_a_theorem_or_a_reason_why_not(saved, tmp_path):
    trained, pay = Trained.load(saved), {"x": [1.0, 2.5, 4.0] * 9, "pay": [1.5, 2.5, 3.5] * 9}
    late = learn_more(Trained.load(saved), open_source(numbers(9) | {"label": ["maybe"] * 9}))
    (tmp_path / "weights.csv").write_text("feature,no,yes,maybe\nb,1,-2,0.5\n")
    weights = read_weights(late, tmp_path / "weights.csv")
    assert weights[late.encoder.names().index("b")].tolist() == [1.0, -2.0, 0.5] and np.abs(weights).sum() == 3.5
    assert theorem_of(trained, np.zeros((4, 1))).value < theorem_of(trained, np.ones((4, 1))).value < np.inf
    for model, n_outputs, reason in (
        (late, 3, "a class that came late"),
        (train(open_source(pay), Plan(target="pay")), 1, "one linear learner on the columns as they are"),
        (train(open_source(pay), Plan(target="pay", learner="nag")), 1, "no theorem .* bounds the regret of nag"),
        (train(open_source(pay), Plan(target="pay", learner="scinol2", passes=2)), 1, "rows were learned again"),
        (train(open_source(pay), Plan(target="pay", learner="scinol2")), 1, "no theorem covers this loss"),
    ):
        bound = theorem_of(model, np.zeros((model.model.n_features, n_outputs)))
        assert bound.value is None and re.search(reason, bound.reason), bound


def test_rows_that_weigh_nothing_prove_nothing():
    model = TuneFreeRegressor().partial_fit(np.ones((9, 2)), np.arange(9.0), sample_weight=np.zeros(9))
    with pytest.raises(ModelError, match="the model has seen no rows"):
        certificates(model.trained_)
    assert "the model has seen no rows; train it first" in model.report().html
