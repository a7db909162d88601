"""One weight for each feature, in the units of the data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.feature_selection import SelectFromModel
from typer.testing import CliRunner

import tunefree
from tests.estimators.test_tables import people
from tunefree import KernelPiSTOLClassifier, OnlineClassifier, OnlineRegressor, ScInOLClassifier, TuneFreeRegressor
from tunefree.cli.app import app
from tunefree.core.errors import ModelError


def numbers(n=1500, seed=0):
    """Columns of very different scales, and a target that is linear in them."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(50, 10, n), 1e-3 * rng.normal(size=n), rng.normal(size=n)])
    return X, 3 * X[:, 0] - 2000 * X[:, 1] + 50_000 + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize(
    ("learner", "view"), [("newton", "steady"), ("nag", "centred"), ("nag", "steady"), ("nag", "level")]
)
def test_views_do_not_change_the_units(learner, view):
    X, y = numbers()
    model = OnlineRegressor(learner, view=view).fit(X, y)
    np.testing.assert_allclose(model.coef_[:2], [3, -2000], rtol=0.02)
    np.testing.assert_allclose(model.intercept_, 50_000, rtol=0.001)
    near = np.abs(X[:, 0] - 50) < 20  # where nothing is clipped
    np.testing.assert_allclose((X @ model.coef_ + model.intercept_)[near], model.predict(X)[near], rtol=1e-9)


def test_the_pool_has_weights_and_says_how_faithful_they_are():
    X, y = numbers()
    model = TuneFreeRegressor(epochs=2).fit(X, y)
    found = model.feature_weights()
    assert found.names == ["(constant)", "x0", "x1", "x2"] == ["(constant)", *model.get_feature_names_out()]
    np.testing.assert_allclose(model.coef_[:2], [3, -2000], rtol=0.1)
    assert 0.98 < found.fidelity.explained < 1.0
    assert found.fidelity.explained == pytest.approx(
        1 - np.var(model.predict(X) - X @ model.coef_) / np.var(model.predict(X)), abs=0.01
    )
    bent = TuneFreeRegressor(epochs=2).fit(X, (X[:, 0] - 50) ** 2)
    assert bent.feature_weights().fidelity.explained < 0.3
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_.argsort().tolist() == [2, 1, 0]
    scaled = TuneFreeRegressor(epochs=2).fit(X * [1, 1024, 1 / 64], y)
    np.testing.assert_allclose(scaled.feature_importances_, model.feature_importances_, atol=0.02)


def test_codes_and_missing_numbers_have_weights():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(50, 10, 1500), "job": rng.choice(["cook", "clerk", "guard"], 1500)})
    table.loc[::5, "a"] = np.nan
    y = table.a.fillna(60.0) + 30.0 * (table.job == "cook")
    model = TuneFreeRegressor(epochs=2).fit(table, y)
    names, weights, fidelity = model.feature_weights()
    by_name = dict(zip(names, weights[:, 0].tolist(), strict=True))
    assert by_name["a"] == pytest.approx(1.0, abs=0.1) and fidelity.explained > 0.95
    assert by_name["a[missing]"] == pytest.approx(60.0, abs=6.0)
    assert by_name["job=cook"] - by_name["job=guard"] == pytest.approx(30.0, abs=3.0)
    with pytest.raises(AttributeError, match="several features each; see feature_weights"):
        _ = model.coef_
    assert model.feature_importances_.shape == (2,) and model.feature_importances_[1] > 0.5
    chosen = SelectFromModel(model, prefit=True, max_features=1, threshold=-np.inf)
    assert chosen.get_support().tolist() == [False, True]


def test_tools_of_scikit_learn_select_by_weights():
    X, y = numbers()
    selected = SelectFromModel(OnlineRegressor("newton", view="steady"), importance_getter="feature_importances_")
    assert selected.fit(X, y).get_support().tolist() == [True, False, False]
    assert SelectFromModel(OnlineRegressor("newton", view="steady")).fit(X, y).get_support().tolist()[1]


def test_classes_are_in_the_order_of_the_estimator():
    X, y = numbers()
    labels = np.array(["b", "c", "a"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]
    model = OnlineClassifier("newton", view="steady").partial_fit(X[labels == "c"][:3], ["c"] * 3)
    model.partial_fit(X, labels)
    near = np.abs(X[:, 0] - 50) < 20
    margins = model.decision_function(X)
    by_hand = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(
        (by_hand - by_hand.mean(axis=1, keepdims=True))[near],
        (margins - margins.mean(axis=1, keepdims=True))[near],
        atol=1e-8,
    )


def test_sparse_entries_and_words():
    X, y = sparse.random_array((400, 10), density=0.3, rng=np.random.default_rng(0), format="csr"), None
    y = X @ np.arange(10.0)
    model = OnlineRegressor("newton", view="steady", epochs=20).fit(X, y)
    size = model._learned.model.ensemble.linear.views["steady"].size
    assert size > 0.0 and model.feature_weights().fidelity is None
    np.testing.assert_allclose(X @ model.coef_ + model.intercept_, model.predict(X), atol=1e-9)
    assert model.feature_importances_.argmax() > 5


def test_kernels_have_none():
    X, y = numbers(100)
    model = KernelPiSTOLClassifier(epochs=1).fit(X, y > y.mean())
    assert not hasattr(model, "coef_") and not hasattr(model, "feature_importances_")
    with pytest.raises(ModelError, match="kernels have no such weights"):
        model.feature_weights()


@pytest.mark.parametrize("how", [["--learner", "scinol2"], ["--method", "early-stopping"]])
@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_inspect_writes_weights_in_the_units_of_the_data(tmp_path, how, n_classes):
    X, y = numbers(400)
    target = (
        y
        if n_classes == 0
        else np.array(["u", "v", "w"])[:n_classes][np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))]
    )
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(job="x", y=target)
    model, out = tmp_path / "m", tmp_path / "w.csv"
    table.to_csv(tmp_path / "t.csv", index=False)
    for words in (
        ["train", tmp_path / "t.csv", "--target", "y", *how, "-o", model, "-q"],
        ["inspect", model, "--weights", out],
    ):
        done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
    assert "5 weights, in the units of the data" in done.output
    weights = pd.read_csv(out).set_index("feature")
    labels = ["u", "v", "w"] if n_classes == 3 else ["v"]
    assert list(weights) == (["weight"] if n_classes == 0 else [f"weight[{label}]" for label in labels])
    frame = pd.read_csv(tmp_path / "t.csv").drop(columns="y")
    features = np.column_stack([np.ones(400), frame[["a", "b", "c"]], np.ones(400)])
    by_hand = features @ weights.loc[["(constant)", "a", "b", "c", "job=x"]].to_numpy()
    loaded = tunefree.load(model)
    said = loaded.predict(frame) if n_classes == 0 else loaded.decision_function(frame)
    said = said.reshape(400, -1)
    centred = [found - found.mean(axis=1, keepdims=True) if n_classes == 3 else found for found in (by_hand, said)]
    np.testing.assert_allclose(*centred, rtol=1e-6, atol=1e-6 * np.abs(said).max())


def test_a_single_learner_on_a_table_has_weights_of_its_features():
    table, y = people()
    found = ScInOLClassifier(epochs=1).fit(table, y).feature_weights()
    assert found.weights.shape == (len(found.names), 1) and "job=cook" in found.names
