"""Probabilities of margins that are no log-odds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunefree.core.rows import dense
from tunefree.pool import calibration
from tunefree.pool.calibration import Calibration
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels


def softmax(log_odds):
    odds = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def drawn(n, K, seed=0):
    """Margins of which an unknown multiple, plus an unknown constant, are the log-odds of the classes."""
    rng = np.random.default_rng(seed)
    margins, slopes, constants = rng.normal(size=(n, K)), rng.uniform(1.0, 4.0, K), rng.normal(size=K)
    probabilities = softmax(slopes * margins + constants)
    codes = (probabilities.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return margins, np.minimum(codes, K - 1), probabilities


def entropy(truth, said):
    return -(truth * np.log(said)).sum(axis=1).mean()


@pytest.mark.parametrize("scale", [1e-290, 1.0, 1e140])
@pytest.mark.parametrize("K", [2, 3, 10])
def test_the_true_probabilities_are_found(K, scale):
    margins, codes, truth = drawn(20_000, K)
    learned = Calibration.create(K)
    calibration.learn(learned, scale * margins, codes, np.ones(len(codes)))
    said = softmax(calibration.log_odds(learned, scale * margins))
    assert entropy(truth, said) < entropy(truth, truth) + 0.02
    assert entropy(truth, said) < entropy(truth, softmax(margins)) - 0.03


@given(st.integers(1, 4), st.integers(0, 2**32 - 1), st.integers(0, 39))
def test_learning_returns_the_predictions_before_each_row(K, seed, i):
    """Not what its class, or later rows, would tell; and of rows that are not learned what :func:`log_odds` does."""
    margins, codes, _ = drawn(40, max(K, 2), seed)
    margins = margins[:, 1:] if K < 2 else margins
    weight = np.random.default_rng(seed).choice([0.0, 1.0, 2.0], 40)
    told = calibration.learn(Calibration.create(K), margins, codes, weight)
    assert told.shape == (40, max(K, 2))
    others = np.where(np.arange(40) < i, codes, (codes + 1) % max(K, 2))
    again = calibration.learn(Calibration.create(K), margins, others, weight)
    np.testing.assert_array_equal(told[: i + 1], again[: i + 1])
    weight[i:] = 0.0
    learned = Calibration.create(K)
    told = calibration.learn(learned, margins, codes, weight)
    np.testing.assert_allclose(told[i:], calibration.log_odds(learned, margins[i:]), rtol=1e-9, atol=1e-12)


numbers = st.floats(-1e150, 1e150) | st.sampled_from([0.0, 5e-324, -1e-300, 1e150, -1e150])


@given(st.lists(st.tuples(numbers, numbers, numbers, st.integers(0, 2)), min_size=1, max_size=20))
def test_finite_for_any_margins(rows):
    margins, codes = np.array([row[:3] for row in rows]), np.array([row[3] for row in rows])
    learned = Calibration.create(3)
    calibration.learn(learned, margins, codes, np.ones(len(rows)))
    probabilities = softmax(calibration.log_odds(learned, margins))
    assert np.isfinite(probabilities).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)


def test_a_class_that_is_not_known_yet_has_probability_0():
    margins, codes, _ = drawn(100, 3)
    learned = Calibration.create(3)
    calibration.learn(learned, margins, codes, np.ones(100))
    margins[:50, 2] = -np.inf
    probabilities = softmax(calibration.log_odds(learned, margins))
    assert (probabilities[:50, 2] == 0.0).all()
    assert (probabilities[50:, 2] > 0.0).all()


def test_rows_that_come_again_calibrate_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    y = np.where(X[:, 0] - X[:, 1] + rng.logistic(size=400) > 0.0, "b", "a")
    X = dense(X)
    models = [Model("classification", "scinol2", "hinge", n_features=5) for _ in range(2)]
    for model in models:
        model.learn(X, Labels.of(y), np.ones(400))
    models[0].learn(X, Labels.of(y), np.ones(400), again=True)
    margins = np.linspace(-2, 2, 9)[:, None]
    np.testing.assert_array_equal(models[0].probabilities(margins), models[1].probabilities(margins))
    models[1].learn(X, Labels.of(y), np.ones(400))
    assert not np.array_equal(models[0].probabilities(margins), models[1].probabilities(margins))


@pytest.mark.parametrize("rows", [1, 50])
def test_a_late_class_begins_as_improbable_as_it_was_in_the_rows_so_far(rows):
    known, margins = Calibration.create(2), np.zeros((1, 3))
    calibration.learn(known, np.ones((40, 2)), np.arange(40) % 2, np.ones(40))
    late = calibration.log_odds(calibration.add_classes(known, 3, rows), margins)
    new = calibration.log_odds(calibration.add_classes(known, 3, 0), margins)
    np.testing.assert_allclose(late - new, [[0.0, 0.0, -np.log(rows)]])
