"""Contributions to the predictions of estimators, and their picture."""

import numpy as np
import pandas as pd
import pytest

from tunefree import CurveDisplay, TuneFreeClassifier
from tunefree.core.errors import ModelError


def data(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 3)), rng.integers(0, 3, n), np.exp(2 * rng.normal(size=n))])
    margin = np.sin(2 * X[:, 0]) * 3 + X[:, 1] * (X[:, 3] - 1)
    return X, margin, np.array(["bad", "fair", "good"])[np.digitize(margin, [-1.0, 1.0])]


@pytest.fixture(scope="module")
def classifier():
    X, _, y = data()
    return TuneFreeClassifier().fit(X, y)


def test_contributions_can_be_drawn_by_shap(classifier, plt):
    shap = pytest.importorskip("shap")
    X, _, y = data(50, seed=1)
    table, explained = classifier.explain(X), classifier.explain(X, as_shap=True)
    assert table.column_names == ["(class)", "(constant)", "x0", "x1", "x2", "x3", "x4"]
    assert table["(class)"].to_pylist() == classifier.classes_.tolist() * 50
    importances = classifier.feature_importances_
    assert importances.sum() == pytest.approx(1.0) and importances[[0, 1, 3]].min() > importances[[2, 4]].max()
    assert explained.shape == (50, 5, 3) and explained.output_names == ["bad", "fair", "good"]
    np.testing.assert_array_equal(explained.data, X)
    shap.plots.beeswarm(explained[:, :, 1], show=False)
    frame = pd.DataFrame({"size": X[:, 0], "town": np.array(["Bath", "Ely", "York"])[X[:, 3].astype(int)]})
    model = TuneFreeClassifier().fit(frame, y == "good")
    explained = model.explain(frame, as_shap=True)
    margins = model.decision_function(frame)
    np.testing.assert_allclose(explained.values.sum(axis=1) + explained.base_values, margins, rtol=1e-9, atol=1e-9)
    assert explained.data[0].tolist() == frame.iloc[0].tolist() and explained.feature_names == ["size", "town"]
    plt.figure()
    shap.plots.waterfall(explained[0], show=False)
    assert any("town" in label.get_text() for label in plt.gca().get_yticklabels())


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_a_class_and_columns_can_be_chosen(classifier, plt):
    display = CurveDisplay.from_estimator(classifier, features=["x4", 3], target="fair")
    assert [axes.get_title("left") for axes in display.axes_] == ["x4", "x3"]
    assert not display.figure_.legends and "of class 'fair'" in display.figure_.get_suptitle()
    assert display.axes_[0].get_xscale() == "log"
    assert list(display.axes_[1].get_xticks()) == [0.0, 1.0, 2.0]
    with pytest.raises(ModelError, match="no column 'x9'"):
        CurveDisplay.from_estimator(classifier, features=["x9"])
