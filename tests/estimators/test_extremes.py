"""Fits of finite numbers, however large or small: no warning, finite predictions, and what is told of them prints."""

import warnings

import numpy as np

from tunefree import OnlineRegressor
from tunefree.model_files.plan import Plan
from tunefree.stream.batch import BadRows
from tunefree.stream.source import open_source
from tunefree.training.training import train
from tunefree.workflows.evaluation import evaluate

MOST = np.finfo(np.float64).max
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))


def test_a_kernel_and_a_median_of_the_largest_numbers():
    model = OnlineRegressor("kernel-pistol", loss="absolute", view="steady", average=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predictions = model.fit(X, np.where(X[:, 0] > -0.1, MOST, -MOST)).predict(X)
    assert np.isfinite(predictions).all() and np.isfinite(model.progressive_loss_)


def test_metrics_of_huge_targets():
    table = {"x": X[:, 0], "y": np.where(X[:, 0] > 0, MOST, -MOST)}
    trained = train(open_source(table), Plan(target="y", task="regression", learner="scinol2"))
    table["y"] = -table["y"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = evaluate(trained, open_source(table), BadRows()).measures
    assert np.isfinite([number for measure in found.values() for number in measure]).all()
    assert found["mean_absolute_error"].value > 1e307 and found["root_mean_squared_error"].value > 1e307
