"""Contributions to the predictions of estimators, and their picture."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression

from tests.explanation.models import share_weighted
from tunefree import CurveDisplay, KernelPiSTOLClassifier, OnlineClassifier, OnlineRegressor, TuneFreeClassifier
from tunefree.core import rows
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
    return TuneFreeClassifier(epochs=2).fit(X, y)


def test_contributions_add_up(classifier):
    X, _, _ = data(50, seed=1)
    names, found = classifier.explain(X)
    assert names[:6] == ["(constant)", "x0", "x1", "x2", "x3", "x4"] and found.shape == (50, len(names), 3)
    expected = share_weighted(classifier._learned.model, rows.dense(X))
    np.testing.assert_allclose(found.sum(axis=1), expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    assert np.mean(classifier.classes_[found.sum(axis=1).argmax(axis=1)] == classifier.predict(X)) > 0.9


def test_classes_are_in_the_order_of_the_estimator():
    X, _, y = data()
    two = np.where(y == "bad", "bad", "good")
    first = np.argsort(two == "bad", kind="stable")  # the model meets the second class first
    model = OnlineClassifier("adagrad", view="steady").partial_fit(X[first[:9]], two[first[:9]])
    model.partial_fit(X, two)
    assert model._learned.model.classes == ["good", "bad"]
    names, found = model.explain(X)
    assert found.shape == (400, 6)
    np.testing.assert_allclose(found.sum(axis=1), model.decision_function(X), atol=1e-9)


def test_numbers_are_in_the_unit_of_the_target():
    X, margin, _ = data()
    model = OnlineRegressor("adagrad", view="centred").fit(X, 1e6 + 1e4 * margin)
    _, found = model.explain(X)
    np.testing.assert_allclose(found.sum(axis=1), model.predict(X), rtol=1e-12)


def test_sparse_rows_have_contributions():
    X, _, y = data()
    X = sparse.csr_array(X * (np.random.default_rng(0).random(X.shape) < 0.3))
    model = OnlineClassifier("adagrad").fit(X, y)
    names, found = model.explain(X[:9])
    margins = model.decision_function(X[:9])
    np.testing.assert_allclose(found.sum(axis=1), margins - margins.mean(axis=1, keepdims=True), atol=1e-9)


def test_what_cannot_be_explained_is_told(classifier, monkeypatch):
    X, _, y = data()
    with pytest.raises(ModelError, match="train without kernels"):
        KernelPiSTOLClassifier(epochs=1).fit(X[:99], y[:99]).explain(X)
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
    display = CurveDisplay.from_estimator(classifier, max_curves=3, max_pairs=1)
    curves = display.axes_[:3]
    assert len(display.axes_) == 4 and {"x0", "x1"} <= {axes.get_title("left") for axes in curves}
    assert curves[0].get_ylabel() == "contribution to the log-odds"
    assert all(sum(len(line.get_xdata()) > 2 for line in axes.lines) >= 3 for axes in curves)  # one for each class
    (legend,) = display.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == ["bad", "fair", "good"]
    note = " ".join(display.figure_.get_supxlabel().split())
    assert note.startswith("Share-weighted margins of ") and "of the variance of the model's own log-odds" in note
    assert "x1" in (display.axes_[3].get_xlabel() + display.axes_[3].get_ylabel())
    assert all(axes.get_title("right").startswith("sd ") for axes in curves)


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
    with pytest.raises(ModelError, match="keeps no sample of rows"):
        CurveDisplay.from_estimator(model)
    display = CurveDisplay.from_estimator(model, X, max_curves=1)
    assert display.axes_[0].get_ylabel() == "contribution to the prediction"
    assert "all terms 100 %" in display.picture.note
    with pytest.raises(ModelError, match="learns online"):
        CurveDisplay.from_estimator(LinearRegression().fit(X, margin))
