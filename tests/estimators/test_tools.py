"""The tools of scikit-learn with data frames that have strings and missing values."""

import numpy as np
import pandas as pd
import pytest
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
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tunefree import TuneFreeClassifier, TuneFreeRegressor

RNG = np.random.default_rng(0)
N = 200
X = pd.DataFrame(
    {"size": RNG.normal(size=N), "noise": RNG.normal(size=N), "town": RNG.choice(["Bath", "Ely", None], N)}
)
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
    scores = cross_validate(
        MODEL, X, LABELS, cv=GroupKFold(2), groups=np.arange(N) // 4, scoring=["roc_auc", "neg_log_loss"]
    )
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


def test_several_targets_take_a_model_each():
    both = MultiOutputRegressor(TuneFreeRegressor()).fit(X, np.column_stack([NUMBERS, -NUMBERS]))
    assert both.score(X, np.column_stack([NUMBERS, -NUMBERS])) > 0.9
