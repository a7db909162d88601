"""What is added to all targets is added to all predictions, and outliers do not decide where the loss does not ask."""

import numpy as np
import pytest

from tunefree import OnlineRegressor, ScInOLRegressor, TuneFreeRegressor
from tunefree.generations import inheritance

SIZE, LATER = 40, 100  # rows of a block; rows after which errors count


def rows(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows, and targets of spread 3."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, 2.5 * X[:, 0] + 2.0 * np.sin(2.0 * X[:, 1]) + X[:, 2] * (X[:, 3] > 0.0) + 0.3 * rng.normal(size=n)


def progressive(model, X, y):
    """Predictions of blocks of rows, each made before the block was learned."""
    predictions = np.zeros(len(y))
    for start in range(0, len(y), SIZE):
        block = slice(start, start + SIZE)
        if start:
            predictions[block] = model.predict(X[block])
        model.partial_fit(X[block], y[block])
    return predictions[LATER:]


MODELS = {
    "pool": lambda loss: TuneFreeRegressor(loss=loss, n_jobs=1),
    "scinol2": lambda loss: ScInOLRegressor(loss=loss),
    "newton": lambda loss: OnlineRegressor("newton", loss=loss, n_jobs=1),
}


@pytest.mark.parametrize("loss", ["square", pytest.param("absolute", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", MODELS)
def test_a_number_added_to_all_targets_is_added_to_predictions(name, loss):
    X, y = rows(360, 0)
    error = np.abs(progressive(MODELS[name](loss), X, y) - y[LATER:]).mean()
    for shift in (3e3, 1e7, -1e9):
        predictions = progressive(MODELS[name](loss), X, y + shift) - shift
        assert np.abs(predictions - y[LATER:]).mean() == pytest.approx(error, rel=0.03)


def test_the_first_group_judges_no_member():
    X, y = rows(200, 2)
    groups = np.arange(200) // 20
    near, far = (TuneFreeRegressor(shuffle=False, n_jobs=1).fit(X, y + shift, groups=groups) for shift in (0.0, 1e6))
    assert far.predict(X) - 1e6 == pytest.approx(near.predict(X), abs=0.1)


@pytest.mark.all_trees
@pytest.mark.parametrize("loss", ["absolute", pytest.param("huber:1", marks=pytest.mark.slow)])
def test_outliers_of_any_size_hardly_change_predictions_of_a_robust_loss(loss, monkeypatch):
    monkeypatch.setattr(inheritance, "BUDGET", 0.0)  # rows without outliers would afford smaller steps
    errors = []
    for seed in (5, 6):
        X, y = rows(900, seed)
        rng = np.random.default_rng(seed)
        outliers = rng.choice(600, 12, replace=False)
        sizes = rng.choice([-1.0, 1.0], 12) * rng.exponential(size=12)
        for size in (0.0, 1e2, 1e6):
            learned = y[:600].copy()
            learned[outliers] += size * sizes
            model = TuneFreeRegressor(loss=loss, n_jobs=1).fit(X[:600], learned)
            errors.append(np.abs(model.predict(X[600:]) - y[600:]).mean())
    none, *some = np.reshape(errors, (2, 3)).mean(axis=0)
    assert max(some) < 1.1 * none
