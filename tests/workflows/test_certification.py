"""What one pass proves, and what its progressive loss counts."""

import numpy as np
import pytest

from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.pool.targets import RunningMean
from tunefree.report.members import CANDIDATES, choice_of_rows_to_come
from tunefree.stream.source import open_source
from tunefree.training.callbacks import Callback
from tunefree.training.training import train
from tunefree.workflows.certification import certified as proved_by


def numbers(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    margin = X @ [1.0, -2.0, 0.0] + 0.5
    label = np.where(rng.random(n) < 1 / (1 + np.exp(-margin)), "yes", "no")
    return {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "label": label}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    train(open_source(numbers()), Plan(target="label", learner="scinol2")).save(path)
    return path


def losses(table, weights, constant):
    margins = sum(weights[name] * table[name] for name in weights) + constant
    return np.logaddexp(0.0, -np.where(table["label"] == "yes", 1.0, -1.0) * margins)


def test_the_true_weights_are_not_below_the_bounds(saved, tmp_path):
    table = numbers()
    (tmp_path / "weights.csv").write_text("feature,weight\na,1\nb,-2\n(constant),0.5\n")
    found = proved_by(Trained.load(saved), tmp_path / "weights.csv")
    mean = losses(table, {"a": 1.0, "b": -2.0}, 0.5).mean()
    radius = max(abs(table["a"]).max(), 2 * abs(table["b"]).max(), 0.5)
    assert found["weights"]["loss_at_least"] <= mean
    assert found["weights"]["regret_at_most"] <= found["weights"]["theorem"] + 1e-9
    for bound_radius, bound in found["lower_bounds"].items():
        assert bound_radius < radius or bound <= mean
    assert found["loss"] - found["weights"]["regret_at_most"] > 0.5 * mean  # and it says something


def test_what_predicts_rows_to_come_is_told_with_the_losses_that_decided():
    pool = train(open_source(numbers()), Plan(target="label")).model.pool
    for losses, words in (([0.9, 0.95, 1.0], CANDIDATES[0]), ([0.99, 0.96, 1.0], CANDIDATES[1])):
        pool.contexts[0].frozen.losses, pool.contexts[0].frozen.squares = np.array(losses), np.full(2, 1e-6)
        assert choice_of_rows_to_come(pool).startswith(f"Rows to come are predicted by {words}. ")
    pool.contexts[0].frozen.losses, pool.contexts[0].frozen.squares = np.array([1.8, 3.0, 2.0]), np.array([0.04, 0.04])
    said = choice_of_rows_to_come(pool)  # better by one standard error only
    assert CANDIDATES[2] in said and f"{CANDIDATES[0]} 0.9 ± 0.1 and {CANDIDATES[1]} 1.5 ± 0.1 times the loss" in said


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
