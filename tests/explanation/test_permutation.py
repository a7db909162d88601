"""Importance by permutation: computed by parts as by whole predictions, also of columns that come late."""

import numpy as np
import pandas as pd
import pytest

from tunefree import TuneFreeClassifier, TuneFreeRegressor
from tunefree.explanation.importance import LaterRows
from tunefree.generations import trees


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return pd.DataFrame(X, columns=list("abcd")), X[:, 0] + 2.0 * X[:, 3] + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_rises_are_those_of_predictions_of_permuted_rows(kind):
    X, y = rows(700)
    estimator = TuneFreeRegressor() if kind == "numbers" else TuneFreeClassifier()
    estimator.fit(X, y if kind == "numbers" else np.digitize(y, [-1.0, 1.0]))
    later = LaterRows.of(estimator.trained_.model.pool)
    members, mixture, nothing = later.pool.members, later.pool.context.mixture, np.zeros(len(later.targets))

    def losses(matrix):
        predictions = members.asleep(len(matrix))
        members._follow(later.generations, matrix, nothing, nothing, predictions)
        return members.losses(mixture.mean(predictions, True)[:, None], later.targets)[:, 0]

    expected, repeats = [], 8
    for place in range(4):
        draws, risen = np.random.default_rng(later.learned), 0.0
        for _ in range(repeats):
            matrix = later.matrix.copy()
            matrix[:, place] = matrix[draws.permutation(len(matrix)), place]
            risen += np.average(losses(matrix) - losses(later.matrix), weights=later.weights) / repeats
        expected.append(risen)
    found = [mean for mean, _ in later.rises([np.array([place]) for place in range(4)])]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_rows_are_coded_once_for_all_columns(monkeypatch):
    """Coding 700 columns anew for each of them took nine tenths of the time."""
    X, y = rows(600)
    later = LaterRows.of(TuneFreeRegressor().fit(X, y).trained_.model.pool)
    coded, codes_of = [], trees.codes_of
    monkeypatch.setattr(trees, "codes_of", lambda bins, columns: coded.append(0) or codes_of(bins, columns))
    assert len(list(later.rises([np.array([place]) for place in range(4)]))) == 4
    assert len(coded) == sum(kind != "linear" for _, kind, _, _ in later.generations)


def test_a_column_that_comes_late_has_an_importance():
    """The previous generations were grown before it came, the newest ones know it."""
    X, y = rows(1500)
    model = TuneFreeRegressor().partial_fit(X[["a", "b", "c"]][:900], y[:900])
    model.partial_fit(X[900:], y[900:])
    of_a, *others, of_d = model.feature_importances_
    assert of_d > 2.0 * of_a > 0.0 and max(others) < 0.05
