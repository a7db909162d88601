"""Intervals and sets of estimators hold what they say, and do not depend on what must not matter."""

import pickle

import numpy as np
import pandas as pd
import pytest

import tunefree
from tunefree import TuneFreeClassifier, TuneFreeRegressor
from tunefree.intervals.conformal_record import FIRST

LEVELS = np.array([0.5, 0.8, 0.9, 0.95])
N, N_NEW = 1500, 3000
ERRORS = np.sqrt(LEVELS * (1.0 - LEVELS) * (1.8 / N + 1.0 / N_NEW))  # standard ones; scores count like 1 / 1.8 rows


def numbers(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Noise that is larger in some rows, of long tails."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, 4))
    return X, np.sin(3.0 * X[:, 0]) + (0.1 + np.abs(X[:, 1])) * rng.standard_t(4.0, size=n)


def classes(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.array(["a", "b", "c"])[(X[:, :3] * 1.5 + rng.gumbel(size=(n, 3)) + [0.0, 1.0, 0.0]).argmax(axis=1)]


@pytest.fixture(scope="module")
def regressor():
    return TuneFreeRegressor().fit(*numbers(N))


@pytest.fixture(scope="module")
def classifier():
    return TuneFreeClassifier().fit(*classes(N))


def covered(bounds: np.ndarray, y: np.ndarray) -> np.ndarray:
    return ((bounds[..., 0] <= y[:, None]) & (y[:, None] <= bounds[..., 1])).mean(axis=0)


def test_intervals_cover_as_asked_and_are_wider_where_noise_is(regressor):
    X, y = numbers(N_NEW, 1)
    bounds = regressor.predict_interval(X, LEVELS)
    assert bounds.shape == (N_NEW, 4, 2)
    assert (np.abs(covered(bounds, y) - LEVELS) < 3.0 * ERRORS).all()
    widths = bounds[:, 2, 1] - bounds[:, 2, 0]
    is_noisy = np.abs(X[:, 1]) > 0.5
    assert widths[is_noisy].mean() > 1.2 * widths[~is_noisy].mean()
    assert (np.diff(bounds[:, :, 1], axis=1) >= 0.0).all() and (np.diff(bounds[:, :, 0], axis=1) <= 0.0).all()
    np.testing.assert_array_equal(bounds[:, 1, ::-1], regressor.predict(X, quantiles=[0.9, 0.1]))
    assert regressor.predict(X[:5], quantiles=0.5).shape == regressor.predict(X[:5]).shape == (5,)


def test_sets_cover_as_asked(classifier):
    X, y = classes(N_NEW, 1)
    codes = np.searchsorted(classifier.classes_, y)
    sets = classifier.predict_set(X, LEVELS)
    assert sets.shape == (N_NEW, 4, 3) and sets.dtype == bool
    assert (np.abs(sets[np.arange(N_NEW), :, codes].mean(axis=0) - LEVELS) < 3.0 * ERRORS).all()
    assert (np.diff(sets.astype(int), axis=1) >= 0).all()
    labels = classifier.predict_set(X[:9], 0.9, as_labels=True)
    assert [list(of_row) for of_row in labels] == [list(classifier.classes_[row]) for row in sets[:9, 2]]
    both = classifier.predict_set(X[:9], [0.5, 0.9], as_labels=True)
    assert [list(wider) for _, wider in both] == [list(of_row) for of_row in labels]


def test_sets_cover_each_class_where_that_is_asked_for(classifier):
    X, y = classes(N_NEW, 1)
    sets = classifier.predict_set(X, 0.9, conditional="class")
    for code, label in enumerate(classifier.classes_):
        assert sets[y == label, code].mean() == pytest.approx(0.9, abs=0.05)


def test_one_row_of_a_group_counts_and_copies_count_once():
    X, y = numbers(300)
    groups = np.repeat(np.arange(60), 5)
    record = TuneFreeRegressor().fit(X, y, groups=groups).trained_.model.pool.contexts[0].conformal
    assert record.scores.rows <= 80  # runs are cut where generations are born
    model = TuneFreeRegressor().partial_fit(np.tile(X, (3, 1)), np.tile(y, 3))
    assert model.trained_.model.pool.contexts[0].conformal.scores.rows == 300 - FIRST


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_files_keep_intervals(kind, regressor, classifier, tmp_path):
    model, X = (regressor, numbers(50, 1)[0]) if kind == "numbers" else (classifier, classes(50, 1)[0])

    def regions(estimator):
        return estimator.predict_interval(X, LEVELS) if kind == "numbers" else estimator.predict_set(X, LEVELS)

    model.save(tmp_path / "whole.model")
    model.save(tmp_path / "small.model", only_for_prediction=True)
    whole, small = tunefree.load(tmp_path / "whole.model"), tunefree.load(tmp_path / "small.model")
    np.testing.assert_array_equal(regions(whole), regions(model))
    np.testing.assert_array_equal(regions(pickle.loads(pickle.dumps(model))), regions(model))
    np.testing.assert_allclose(regions(small).astype(float), regions(model).astype(float), atol=1e-3)
    X_more, y_more = numbers(200, 3) if kind == "numbers" else classes(200, 3)
    once = [regions(estimator.partial_fit(X_more, y_more)) for estimator in (whole, pickle.loads(pickle.dumps(model)))]
    np.testing.assert_array_equal(*once)


def test_intervals_go_on_without_trees_where_memory_is_limited():
    model = TuneFreeRegressor().partial_fit(*numbers(600))
    while model._learned.model.pool.put_to_sleep() != "all trees":
        assert np.ptp(np.diff(model.predict_interval(numbers(9)[0]))) > 0.1
    X, y = numbers(N_NEW, 1)
    bounds = model.partial_fit(*numbers(300, 2)).predict_interval(X, [0.9])
    np.testing.assert_allclose(np.ptp(np.diff(bounds)), 0.0, atol=1e-12)
    assert covered(bounds, y) == pytest.approx(0.9, abs=0.03)


def test_a_stream_is_covered_while_it_changes():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(6000, 3))
    spread = np.where(np.arange(6000) // 1500 % 2 == 0, 0.3, 2.0)
    y, model, is_covered = X[:, 0] + spread * rng.normal(size=6000), TuneFreeRegressor(), []
    for start in range(0, 6000, 60):
        rows = slice(start, start + 60)
        if start >= 420:
            low, high = model.predict_interval(X[rows], 0.9).T
            is_covered += ((low <= y[rows]) & (y[rows] <= high)).tolist()
        model.partial_fit(X[rows], y[rows])
    assert np.mean(is_covered) == pytest.approx(0.9, abs=0.02)
    part, at_least = model.trained_.model.pool.contexts[0].conformal.followed()[0.9]
    assert part == pytest.approx(0.9, abs=0.01) and at_least <= part


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_intervals_of_counts_and_amounts_are_of_their_exposures_and_not_below_0(loss):
    rng = np.random.default_rng(0)
    n = 2400
    X, exposure = rng.normal(size=(n, 3)), rng.uniform(0.2, 1.0, n)
    mean = 4.0 * np.exp(0.4 * X[:, 0]) * exposure
    y = {
        "poisson": lambda: rng.poisson(mean).astype(float),
        "gamma": lambda: rng.gamma(2.0, mean / 2.0),
        "tweedie": lambda: rng.gamma(np.maximum(rng.poisson(mean), 1e-9)),
    }[loss]()
    learned, new = slice(1600), slice(1600, None)
    model = TuneFreeRegressor(loss=loss).fit(X[learned], y[learned], exposure=exposure[learned])
    bounds = model.predict_interval(X[new], LEVELS, exposure=exposure[new])
    assert (bounds >= 0.0).all() and (bounds[..., 1] >= bounds[..., 0]).all()
    parts = covered(bounds, y[new])
    assert (parts > LEVELS - 3.5 * np.sqrt(LEVELS * (1.0 - LEVELS) * (1.8 / 1600 + 1.0 / 800))).all()
    above = (y[new, None] > bounds[..., 1]).mean(axis=0)
    np.testing.assert_allclose(above, (1.0 - LEVELS) / 2.0, atol=0.06)
    quantiles = model.predict(X[new], quantiles=[0.1, 0.9], exposure=exposure[new])
    np.testing.assert_array_equal(quantiles, model.predict_interval(X[new], 0.8, exposure=exposure[new]))
    np.testing.assert_array_equal(model.predict_interval(X[new], exposure=1.0), model.predict_interval(X[new]))


def series(seed, n):
    """Trend, season, and an error that depends on the one before, by the date and the last two values."""
    rng = np.random.default_rng(seed)
    error, days = np.zeros(n + 2), np.arange(n + 2)
    for day in range(1, n + 2):
        error[day] = 0.7 * error[day - 1] + rng.normal()
    y = 100.0 + 0.05 * days + 5.0 * np.sin(days / 58.0) + error
    dates = (np.datetime64("2021-01-01") + days)[2:]
    return pd.DataFrame({"date": dates, "last": y[1:-1], "before": y[:-2]}), y[2:]


@pytest.mark.filterwarnings("ignore:column 'date'")
def test_the_future_of_series_is_covered():
    """Copies drifted up where trend and season did; rows to come may lie on either side."""
    covered = []
    for seed in range(4):
        table, y = series(seed, 800)
        model = TuneFreeRegressor(shuffle=False).fit(table[:600], y[:600])
        low, high = model.predict_interval(table[600:], coverage=0.9).T
        covered.append(np.mean((low <= y[600:]) & (y[600:] <= high)))
    assert np.mean(covered) >= 0.85 and min(covered) >= 0.7  # .46 to .62 without drifts
