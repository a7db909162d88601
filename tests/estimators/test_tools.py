"""The tools of scikit-learn with data frames, and explanations of what is predicted."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_selection import RFECV, SelectFromModel
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    TimeSeriesSplit,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tunefree import CurveDisplay, TuneFreeClassifier, TuneFreeRegressor

RNG = np.random.default_rng(0)
N = 200
X = pd.DataFrame({"size": RNG.normal(size=N), "noise": RNG.normal(size=N)})
X["town"] = RNG.choice(["Bath", "Ely", None], N)
NUMBERS = 2.0 * X["size"].to_numpy() + 2.0 * (X["town"] == "Ely").to_numpy()
LABELS = pd.Series(np.where(NUMBERS + 0.2 * RNG.normal(size=N) > 1.0, "yes", "no"), name="rich")
MODEL = TuneFreeClassifier()


def scaled(output):
    columns = ColumnTransformer([("numbers", StandardScaler(), ["size"])], remainder="passthrough")
    return make_pipeline(columns.set_output(transform=output), MODEL)


@pytest.mark.parametrize(
    "tool",
    [
        clone(MODEL),
        scaled("pandas"),
        scaled("polars"),
        CalibratedClassifierCV(MODEL, cv=2),
        GridSearchCV(MODEL, {}, cv=2),
        StackingClassifier([("pool", MODEL)], cv=2),
        TunedThresholdClassifierCV(MODEL, cv=2),
        VotingClassifier([("pool", MODEL), ("other", TuneFreeClassifier(random_state=1))], voting="soft"),
    ],
    ids=lambda tool: type(tool).__name__,
)
def test_a_tool_takes_frames(tool):
    assert tool.fit(X, LABELS).score(X, LABELS) > 0.9
    assert tool.predict_proba(X[:3]).shape == (3, 2)


def test_cross_validation_takes_frames_groups_and_metrics():
    metrics = ["roc_auc", "neg_log_loss"]
    scores = cross_validate(MODEL, X, LABELS, cv=GroupKFold(2), groups=np.arange(N) // 4, scoring=metrics)
    assert scores["test_roc_auc"].min() > 0.9 and scores["test_neg_log_loss"].min() > -0.5
    assert cross_val_predict(MODEL, X, LABELS, cv=2, method="predict_proba").shape == (N, 2)
    in_order = cross_validate(TuneFreeRegressor(shuffle=False), X, NUMBERS, cv=TimeSeriesSplit(2))
    assert in_order["test_score"].min() > 0.9


def test_columns_are_selected_and_ranked():
    selected = SelectFromModel(MODEL, threshold=0.05).set_output(transform="pandas").fit(X, LABELS).transform(X)
    assert selected.columns.tolist() == ["size", "town"]
    assert RFECV(MODEL, cv=2).fit(X[["size", "noise"]], LABELS).support_[0]
    fitted = clone(MODEL).fit(X, LABELS)
    importances = permutation_importance(fitted, X, LABELS, n_repeats=2, scoring="neg_log_loss").importances_mean
    assert importances[1] < min(importances[0], importances[2])
    assert partial_dependence(fitted, X[:50], ["size"], grid_resolution=5)["average"].shape == (1, 5)


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
    later = TuneFreeClassifier().partial_fit(frame[["size"]], y == "good").partial_fit(frame, y == "good")
    first = later.explain(frame[["size"]], as_shap=True)
    assert first.feature_names == ["size", "town"] and np.isnan(first.data[:, 1].astype(float)).all()
    matrix = csr_array(X)
    explained_matrix = TuneFreeClassifier().fit(matrix, y == "good").explain(matrix, as_shap=True)
    np.testing.assert_array_equal(explained_matrix.data, X)
    plt.figure()
    shap.plots.waterfall(explained[0], show=False)
    assert any("town" in label.get_text() for label in plt.gca().get_yticklabels())


@pytest.fixture
def plt():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    yield plt
    plt.close("all")


def test_a_class_and_columns_can_be_chosen(classifier, plt):
    display = CurveDisplay.from_estimator(classifier, features=["x4", 3], target="fair")
    assert [axes.get_title("left") for axes in display.axes_] == ["x4", "x3"]
    assert not display.figure_.legends and "of class 'fair'" in display.figure_.get_suptitle()
    assert list(display.axes_[1].get_xticks()) == [0.0, 1.0, 2.0]
