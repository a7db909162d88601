"""The progressive loss of numbers counts predictions, and not that nothing was known before the first row."""

import numpy as np
import pytest

from tunefree import Plan, open_source
from tunefree.pool.targets import RunningMean
from tunefree.training.callbacks import Callback
from tunefree.training.training import train

N = 1500


def years():
    rng = np.random.default_rng(0)
    return {"x": rng.normal(size=N), "year": 2000.0 + 20.0 * rng.normal(size=N)}


class Kept(Callback):
    """Keeps the predictions and losses of all rows."""

    def __init__(self):
        self.predictions, self.losses = np.empty(0), np.empty(0)

    def step(self, trained, step):
        self.predictions = np.append(self.predictions, step.predictions[:, 0])
        self.losses = np.append(self.losses, step.row_losses)


def test_years():
    table, kept = years(), Kept()
    plan = Plan(target="year", learner="scinol2")
    trained = train(open_source(table), plan, [kept])
    metrics = trained.progress.progressive[0]
    assert metrics.rows == N and metrics.weight == N - 1
    assert metrics.mean_loss() == pytest.approx(kept.losses[1:].mean()) and np.isnan(kept.losses[0])
    assert metrics.mean_loss() < 1.1 * np.var(table["year"])
    assert metrics.mean_error() < 1.1 * np.abs(table["year"] - np.mean(table["year"])).mean()
    assert trained.model.certificate().loss / trained.model.certificate().weight == pytest.approx(metrics.mean_loss())


def test_the_mean_does_not_depend_on_batches():
    rng = np.random.default_rng(0)
    targets, weight = rng.normal(size=200), rng.integers(0, 3, 200).astype(float)
    whole, cut = RunningMean(), RunningMean()
    means = whole.add(weight, targets)
    parts = np.split(np.arange(200), [3, 4, 90])
    np.testing.assert_array_equal(means, np.concatenate([cut.add(weight[part], targets[part]) for part in parts]))
    assert whole == cut
    assert np.isfinite(RunningMean().add(np.ones(5), np.full(5, 1e308))[1:]).all()
