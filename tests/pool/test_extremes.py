"""Few rows, odd rows, many columns and classes, targets of any size: the model learns what there is, all is finite."""

import numpy as np
import pytest

from tests.pool.rows import N_FEATURES, bytes_of, restored
from tunefree import OnlineRegressor, ScInOLRegressor, TuneFreeRegressor
from tunefree.core.rows import dense, part, sparse
from tunefree.generations import inheritance
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels
from tunefree.pool.weights_record import estimated_loss

LOSSES = ("square", "absolute", "quantile:0.9", "absolute-power:1.5", "epsilon-insensitive:0.1", "huber:1")


def fitted(X, y, task="classification", **options):
    if task == "classification" and isinstance(y[0], str):
        options.setdefault("classes", sorted(set(y)))
    model = Model(task, n_features=options.pop("n_features", N_FEATURES), **options)
    y = Labels.of(y) if task == "classification" else np.asarray(y, np.float64)
    losses = model.learn(X, y, np.ones(len(losses_of(y))))[1]
    model.freeze()
    assert np.isfinite(losses[~np.isnan(losses)]).all()
    assert np.isfinite(model.predict(X)).all()
    assert bytes_of(restored(model)) == bytes_of(model)
    return model, losses


def losses_of(y):
    return y.codes if isinstance(y, Labels) else y


@pytest.mark.parametrize("n", [1, 2, 3, 15, 16, 17])
@pytest.mark.parametrize(
    ("task", "loss"), [("classification", None), ("regression", "square"), ("regression", "poisson")]
)
def test_few_rows(task, loss, n):
    X = np.arange(2.0 * n).reshape(n, 2)
    y = [("a", "b")[i % 2] for i in range(n)] if task == "classification" else X[:, 0]
    model, _ = fitted(dense(X), y, task, loss=loss)
    assert estimated_loss(model.pool) is None or n > 10


def test_no_row_at_all():
    model = Model("classification", n_features=3, classes=["a", "b"])
    model.learn(dense(np.empty((0, 2))), Labels.of([]), np.empty(0))
    model.freeze()
    np.testing.assert_array_equal(model.predict(dense(np.ones((2, 2)))), np.zeros((2, 1)))


@pytest.mark.parametrize("n", [3, 40])
def test_one_class_only_is_predicted_ever_more_certainly_and_can_be_joined_by_another(n):
    model, losses = fitted(dense(np.ones((n, 2))), ["a"] * n)
    assert model.classes == ["a"]
    model.learn(dense(np.zeros((2, 2))), Labels.of(["b", "a"]), np.ones(2))
    assert model.classes == ["a", "b"]
    assert np.isfinite(model.predict(dense(np.zeros((1, 2))))).all()
    assert losses[-1] <= losses[0]


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_columns_that_say_nothing_do_no_harm(task):
    rng = np.random.default_rng(0)
    x, X = rng.normal(size=(120, 1)), rng.normal(size=(200, 1))
    y = [("a", "b")[int(v > 0)] for v in x[:, 0]] if task == "classification" else 5.0 * x[:, 0] + 7.0
    truth = (X[:, 0] > 0.0) * 2.0 - 1.0 if task == "classification" else 5.0 * X[:, 0] + 7.0

    def loss(predicted):
        return np.logaddexp(0.0, -truth * predicted).mean() if task == "classification" else np.std(truth - predicted)

    alone = loss(fitted(dense(x), y, task)[0].predict(dense(X))[:, 0])
    for value in (3.0, np.nan, 1e300):
        model, _ = fitted(dense(np.concatenate([x, np.full((120, 2), value)], axis=1)), y, task)
        with_nothing = model.predict(dense(np.concatenate([X, np.full((200, 2), value)], axis=1)))
        assert loss(with_nothing[:, 0]) < max(1.5 * alone, 0.2), value


@pytest.mark.parametrize("scale", [1e300, 1e-300])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_numbers_of_any_size_are_learned(task, scale):
    x = np.random.default_rng(0).normal(size=(200, 2))
    y = [("a", "b")[int(v > 0)] for v in x[:, 0]] if task == "classification" else x[:, 0]
    model, _ = fitted(dense(scale * x), y, task)
    predicted = model.predict(dense(scale * x))[:, 0]
    if task == "classification":
        assert np.mean((predicted > 0) == (x[:, 0] > 0)) > 0.95
    else:
        assert np.std(predicted - x[:, 0]) < 0.4 * np.std(x[:, 0])


@pytest.mark.parametrize(("loss", "scale"), [("square", 1e-100), *((loss, 1e100) for loss in LOSSES)])
def test_targets_of_any_size_are_learned(loss, scale):
    x = np.random.default_rng(0).normal(size=(200, 2))
    model, _ = fitted(dense(x), scale * (x[:, 0] + 3.0), "regression", loss=loss)
    predicted = model.predict(dense(x))[:, 0] / scale
    assert np.mean(np.abs(predicted - x[:, 0] - 3.0)) < 0.7 * np.std(x[:, 0])


def many_sparse_columns(n, width=2000, seed=0):
    rng = np.random.default_rng(seed)
    features = np.sort(np.stack([1 + rng.choice(width, 8, replace=False) for _ in range(n)]), axis=1)
    y = (np.isin(features, np.arange(1, width, 3)).sum(axis=1) > 2).astype(int)
    return sparse(np.arange(0, 8 * n + 1, 8), features.ravel(), np.ones(8 * n)), y


def test_rows_that_become_wide_lose_their_trees_wherever_they_are_cut():
    narrow, few = many_sparse_columns(60, 20)
    wide, many = many_sparse_columns(60)
    found = []
    for size in (1, 13, 60):
        model = Model("classification", n_features=2001, classes=[0, 1])
        for X, y in ((narrow, few), (wide, many)):
            for start in range(0, 60, size):
                stop = min(start + size, 60)
                model.learn(part(X, start, stop), Labels.of(y[start:stop].tolist()), np.ones(stop - start))
        model.freeze()
        found.append(bytes_of(model))
    assert len(set(found)) == 1


def test_rows_that_are_wide_at_the_end_lose_their_trees():
    model = Model("regression", loss="poisson", n_features=20_001)
    for n, width in ((16, 40), (4, 20_000)):
        X, y = many_sparse_columns(n, width)
        model.learn(X, y.astype(float), np.ones(n))
    assert model.pool.members.growth is not None and model.pool.balance.parts
    model.freeze()
    assert model.pool.members.growth is None and not model.pool.balance.parts
    assert np.isfinite(model.predict(X)).all()


def test_known_rows_without_events_are_predicted_like_new_ones():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.ones(6), rng.normal(size=194)])
    model = Model("regression", loss="poisson", n_features=2)
    model.learn(dense(x[:, None]), np.where(np.arange(200) < 6, 0.0, rng.poisson(3.0, 200)), np.ones(200))
    model.freeze()
    known, new = model.predict(dense([[1.0], [1.0 + 1e-9]]))[:, 0]
    assert len(model.pool.contexts) == 2 and known == pytest.approx(new, abs=1e-3)


def test_thirty_classes_that_come_one_after_the_other():
    rng = np.random.default_rng(0)
    y = np.minimum(rng.integers(0, 30, 900), np.arange(900) // 10)
    X = dense(np.column_stack([y + 0.2 * rng.normal(size=900), rng.normal(size=900)]))
    model, losses = fitted(X, y.tolist(), n_features=3)
    assert sorted(model.classes) == list(range(30))
    assert losses[-100:].mean() < 0.6 * np.log(30.0)
    assert np.mean(np.array(model.classes)[model.predict(X).argmax(axis=1)] == y) > 0.8


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
