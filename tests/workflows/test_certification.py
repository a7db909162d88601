"""What one pass proves, and what its progressive loss counts."""

import numpy as np
import pytest

from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.pool.targets import RunningMean
from tunefree.report.guarantees import certificates
from tunefree.report.rendering import record
from tunefree.stream.source import open_source
from tunefree.training.training import train


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
    found = record(certificates(Trained.load(saved), tmp_path / "weights.csv"))
    mean = losses(table, {"a": 1.0, "b": -2.0}, 0.5).mean()
    radius = max(abs(table["a"]).max(), 2 * abs(table["b"]).max(), 0.5)
    assert found["weights"]["loss_at_least"] <= mean
    assert found["weights"]["regret_at_most"] <= found["weights"]["theorem"] + 1e-9
    for row in found["lower_bounds"]:
        assert row["radius"] < radius or row["bound"] <= mean
    assert found["loss"] - found["weights"]["regret_at_most"] > 0.5 * mean  # and it says something


def test_the_mean_does_not_depend_on_batches():
    rng = np.random.default_rng(0)
    targets, weight = rng.normal(size=200), rng.integers(0, 3, 200).astype(float)
    whole, cut = RunningMean(), RunningMean()
    means = whole.add(weight, targets)
    parts = np.split(np.arange(200), [3, 4, 90])
    np.testing.assert_array_equal(means, np.concatenate([cut.add(weight[part], targets[part]) for part in parts]))
    assert whole == cut
    assert np.isfinite(RunningMean().add(np.ones(5), np.full(5, 1e308))[1:]).all()
