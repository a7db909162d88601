"""Tables of few values: rows that are alike are no copies, and copies are not taken for such rows."""

from __future__ import annotations

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
    sums, rows = (np.bincount(cell[:1000], of_rows, 25) for of_rows in (y[:1000], np.ones(1000)))
    errors = [
        np.sqrt(np.mean((y[1000:] - of_rows) ** 2)) for of_rows in (model.predict(X[1000:]), (sums / rows)[cell[1000:]])
    ]
    assert errors[0] < 1.02 * errors[1]


def test_a_rare_class_that_was_copied_forty_times_is_as_its_weight():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + rng.normal(size=400) > 2.5).astype(int)
    copied, weight = np.where(y == 1, 40, 1), np.where(y == 1, 40.0, 1.0)
    copies = TuneFreeClassifier().fit(np.repeat(X, copied, axis=0), np.repeat(y, copied))
    weighted = TuneFreeClassifier().fit(X, y, sample_weight=weight)
    new = rng.normal(size=(2000, 3))
    truth = (new[:, 0] + rng.normal(size=2000) > 2.5).astype(int)
    losses = [
        np.average(-np.log(model.predict_proba(new)[np.arange(2000), truth]), weights=1.0 + 39.0 * truth)
        for model in (copies, weighted)
    ]
    assert losses[0] < 1.2 * losses[1]


def test_a_stream_of_few_values_does_not_depend_on_how_it_is_cut():
    X, _, effect = cells(600)
    y = (np.random.default_rng(1).random(600) < 1 / (1 + np.exp(-effect))).astype(int)
    predictions = []
    for size in (600, 37):
        model = TuneFreeClassifier()
        for start in range(0, 600, size):
            model.partial_fit(X[start : start + size], y[start : start + size], classes=[0, 1])
        predictions.append(model.predict_proba(X))
    np.testing.assert_array_equal(*predictions)


def test_columns_of_categories_alone_have_importances(tmp_path, run):
    X, _, effect = cells(600)
    y = np.random.default_rng(1).random(600) < 1 / (1 + np.exp(-effect))
    path = tmp_path / "cells.csv"
    X.assign(y=y).to_csv(path, index=False)
    assert run("train", path, "--target", "y", "-o", tmp_path / "m")[0] == 0
    for command in ("inspect", "explain"):
        status, out, _ = run(command, tmp_path / "m", *([path] if command == "explain" else []))
        assert status == 0 and "b" in out
    assert run("report", tmp_path / "m", "-o", tmp_path / "page.html")[0] == 0
