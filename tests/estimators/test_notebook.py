"""What notebooks show of estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tunefree
from tests.workflows.test_training import people
from tunefree import OnlineClassifier


def test_an_estimator_shows_what_it_learned():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    estimator = OnlineClassifier("scinol2")
    assert "What was learned" not in estimator._repr_html_()
    estimator.fit(X, y)
    for shown in (estimator._repr_html_(), estimator._repr_mimebundle_()["text/html"]):
        assert "OnlineClassifier" in shown and "200" in shown
        assert f"{estimator.progressive_loss_:.6g}" in shown and "100.0 % of predictions" in shown
    assert "OnlineClassifier" in make_pipeline(StandardScaler(), estimator)._repr_html_()


def test_a_trained_model_shows_its_estimator_and_its_history():
    table = {name: values for name, values in people(600).items() if name != "pay"}
    estimator = tunefree.train(table, target="rich", learner="scinol2")
    assert "OnlineClassifier" in estimator._repr_html_() and "600" in estimator._repr_html_()
    frame = estimator.history().to_pandas()
    assert frame["rows"].iloc[-1] == 600 and list(frame) == ["rows", "loss", "error"]
    assert frame["loss"].iloc[-1] == pytest.approx(estimator.progressive_loss_)
    assert "Report of a model" in estimator.report().html
