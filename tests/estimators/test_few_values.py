"""Tables of few values: rows that are alike are no copies, and copies are not taken for such rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from tunefree import TuneFreeClassifier, TuneFreeRegressor


def cells(n, seed=0, values=5):
    """Rows of two categories, the numbers of their cells, and an effect of each cell."""
    rng = np.random.default_rng(seed)
    of_rows = rng.integers(0, values, (n, 2))
    effects = 1.5 * np.random.default_rng(100).normal(size=(values, values))
    frame = pd.DataFrame({"a": of_rows[:, 0], "b": of_rows[:, 1]}).astype(str)
    return frame, of_rows @ [values, 1], effects[tuple(of_rows.T)]


@pytest.mark.parametrize("shuffle", [True, False])
def test_classes_are_predicted_as_well_as_by_the_shares_of_each_cell(shuffle):
    X, cell, effect = cells(2000)
    y = np.random.default_rng(1).random(2000) < 1 / (1 + np.exp(-effect))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no row is said to be a copy
        model = TuneFreeClassifier(shuffle=shuffle).fit(X[:1000], y[:1000])
    ones, rows = (np.bincount(cell[:1000], of_rows, 25) for of_rows in (y[:1000] * 1.0, np.ones(1000)))
    shares = ((ones + 0.5) / (rows + 1.0))[cell[1000:]]
    assert log_loss(y[1000:], model.predict_proba(X[1000:])[:, 1]) < 1.02 * log_loss(y[1000:], shares)


@pytest.mark.parametrize("shuffle", [True, False])
def test_numbers_are_predicted_as_well_as_by_the_means_of_each_cell(shuffle):
    X, cell, effect = cells(2000)
    y = effect + np.random.default_rng(1).normal(size=2000)
    model = TuneFreeRegressor(shuffle=shuffle).fit(X[:1000], y[:1000])
    means = np.bincount(cell[:1000], y[:1000], 25) / np.bincount(cell[:1000], minlength=25)
    errors = [np.sqrt(np.mean((y[1000:] - own) ** 2)) for own in (model.predict(X[1000:]), means[cell[1000:]])]
    assert errors[0] < 1.02 * errors[1]
