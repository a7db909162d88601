"""Contributions to the predictions of estimators, and their picture."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression

from tunefree import CurveDisplay, KernelPiSTOLClassifier, OnlineClassifier, OnlineRegressor, TuneFreeClassifier
from tunefree.core.errors import ModelError
from tunefree.estimators import explanation


def data(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 3)), rng.integers(0, 3, n), np.exp(2 * rng.normal(size=n))])
    margin = np.sin(2 * X[:, 0]) * 3 + X[:, 1] * (X[:, 3] - 1)
    return X, margin, np.array(["bad", "fair", "good"])[np.digitize(margin, [-1.0, 1.0])]


@pytest.fixture(scope="module")
def classifier():
    X, _, y = data()
    return TuneFreeClassifier().fit(X, y)


def test_contributions_add_up(classifier):
    X, _, _ = data(50, seed=1)
    explained = classifier.explain(X)
    assert explained.column_names == ["(class)", "(constant)", "x0", "x1", "x2", "x3", "x4"]
    assert explained["(class)"].to_pylist() == classifier.classes_.tolist() * 50
    totals = explained.drop_columns("(class)").to_pandas().to_numpy().sum(axis=1).reshape(50, 3)
    margins = np.log(classifier.predict_proba(X))
    margins -= margins.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(totals, margins, rtol=0, atol=1e-9 * np.abs(margins).max())
    importances = classifier.feature_importances_
    assert importances.sum() == pytest.approx(1.0) and importances[[0, 1, 3]].min() > importances[[2, 4]].max()


def test_a_pool_has_no_weights(classifier):
    for name in ("coef_", "intercept_"):
        with pytest.raises(AttributeError, match="feature_importances_"):
            getattr(classifier, name)
    X, margin, _ = data()
    model = OnlineRegressor("newton").fit(X, margin)
    np.testing.assert_allclose(X @ model.coef_ + model.intercept_, model.predict(X), rtol=1e-9)


def test_classes_are_in_the_order_of_the_estimator():
    X, _, y = data()
    two = np.where(y == "bad", "bad", "good")
    first = np.argsort(two == "bad", kind="stable")  # the model meets the second class first
    model = OnlineClassifier("adagrad", view="steady").partial_fit(X[first[:9]], two[first[:9]])
    model.partial_fit(X, two)
    assert model._learned.model.classes == ["good", "bad"]
    found = model.explain(X).to_pandas()
    assert found.shape == (400, 6)
    np.testing.assert_allclose(found.sum(axis=1), model.decision_function(X), atol=1e-9)


def test_numbers_are_in_the_unit_of_the_target():
    X, margin, _ = data()
    model = OnlineRegressor("adagrad", view="centred").fit(X, 1e6 + 1e4 * margin)
    found = model.explain(X).to_pandas()
    np.testing.assert_allclose(found.sum(axis=1), model.predict(X), rtol=1e-12)


def test_sparse_rows_have_contributions():
    X, _, y = data()
    X = sparse.csr_array(X * (np.random.default_rng(0).random(X.shape) < 0.3))
    model = OnlineClassifier("adagrad").fit(X, y)
    totals = model.explain(X[:9]).drop_columns("(class)").to_pandas().to_numpy().sum(axis=1).reshape(9, -1)
    margins = model.decision_function(X[:9])
    np.testing.assert_allclose(totals, margins - margins.mean(axis=1, keepdims=True), atol=1e-9)


def test_what_cannot_be_explained_is_told(classifier, monkeypatch):
    X, _, y = data()
    with pytest.raises(ModelError, match="kernels alone"):
        KernelPiSTOLClassifier(passes=1).fit(X[:99], y[:99]).explain(X)
    monkeypatch.setattr(explanation, "MOST_NUMBERS", 1000)
    with pytest.raises(ValueError, match="explain fewer at a time"):
        classifier.explain(X)


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_the_strongest_columns_are_drawn(classifier, plt):
    display = CurveDisplay.from_estimator(classifier, max_curves=3)
    assert {axes.get_title("left") for axes in display.axes_} == {"x0", "x1", "x3"}
    assert display.axes_[0].get_ylabel() == "log-odds"
    assert all(sum(len(line.get_xdata()) > 2 for line in axes.lines) >= 3 for axes in display.axes_)  # each class
    (legend,) = display.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == ["bad", "fair", "good"]
    assert " ".join(display.figure_.get_supxlabel().split()).startswith("Lines and points: mean over 100 rows")


def test_a_class_and_columns_can_be_chosen(classifier, plt):
    display = CurveDisplay.from_estimator(classifier, features=["x4", 3], target="fair")
    assert [axes.get_title("left") for axes in display.axes_] == ["x4", "x3"]
    assert not display.figure_.legends and "of class 'fair'" in display.figure_.get_suptitle()
    assert display.axes_[0].get_xscale() == "log"
    assert list(display.axes_[1].get_xticks()) == [0.0, 1.0, 2.0]
    with pytest.raises(ModelError, match="no column 'x9'"):
        CurveDisplay.from_estimator(classifier, features=["x9"])


def test_a_picture_fills_the_place_of_axes(classifier, plt):
    figure, (left, right) = plt.subplots(1, 2)
    display = CurveDisplay.from_estimator(classifier, features=[0, 1], ax=right)
    assert display.figure_ is figure and not right.axison and left.axison
    assert len(figure.axes) == 4 and display.axes_[0].get_legend() is not None
    with pytest.raises(ValueError, match="made by subplots"):
        CurveDisplay.from_estimator(classifier, features=[0], ax=figure.add_axes((0, 0, 1, 1)))


def test_rows_are_needed_where_none_are_kept(plt):
    X, margin, _ = data()
    model = OnlineRegressor("adagrad").fit(X, margin)
    with pytest.raises(ModelError, match="keeps no rows"):
        CurveDisplay.from_estimator(model)
    display = CurveDisplay.from_estimator(model, X, max_curves=1)
    assert display.axes_[0].get_ylabel() == "prediction"
    with pytest.raises(ModelError, match="learns online"):
        CurveDisplay.from_estimator(LinearRegression().fit(X, margin))
