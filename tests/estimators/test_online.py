"""Every learner as an estimator, by its name."""

import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import StandardScaler

from tests import naive
from tunefree import OnlineClassifier, OnlineRegressor
from tunefree.core.errors import ModelError

SLOW_RATES = {"adam": {"eta": 0.05}}  # as published it would need more passes
EVERY = sorted(naive.ALL)


@pytest.mark.parametrize("learner", EVERY)
def test_every_learner_classifies(learner):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = OnlineClassifier(learner, settings=SLOW_RATES.get(learner), passes=10).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.9
    assert model.predict_proba(X[400:]).shape == (169, 2)


@pytest.mark.parametrize("learner", EVERY)
def test_every_learner_regresses(learner):
    X, y = load_diabetes(return_X_y=True)
    settings = {"adam": {"eta": 0.05}, "kotlowski": {}}.get(learner)
    model = OnlineRegressor(learner, settings=settings, passes=50).fit(20 * X[:300], y[:300])
    assert model.score(20 * X[300:], y[300:]) > 0.3


def test_choices_that_make_no_sense(for_classes_only):
    X, y = load_breast_cancer(return_X_y=True)
    for wrong, message in (
        (OnlineClassifier("pool"), r"use TuneFreeClassifier\(\)"),
        (OnlineRegressor("pool"), r"use TuneFreeRegressor\(\)"),
        (OnlineClassifier("sgd"), "unknown learner"),
        (OnlineClassifier(view="sideways"), "`view` must be 'raw', 'centred', 'steady' or 'level'"),
        (OnlineClassifier("adagrad", settings={"eta": -1.0}), r"`settings\['eta'\]` must be above 0"),
        (OnlineClassifier("adagrad", settings={"epsilon": 1.0}), "no setting"),
        (OnlineRegressor(for_classes_only), "classes only"),
        (OnlineClassifier("newton", average=True), "average"),
    ):
        with pytest.raises((ValueError, ModelError), match=message):
            clone(wrong).fit(X, y)
