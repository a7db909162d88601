"""Missing values in arrays and tables: NaN, None and pandas.NA mean the same, at every door of Python."""

import warnings

import numpy as np
import pandas as pd
import pytest

import tunefree
from tunefree import river
from tunefree.core.errors import DataWarning

N = 120


def numbers():
    """An array with gaps, its classes and its numbers."""
    random = np.random.RandomState(0)
    X = random.randn(N, 3)
    y = X[:, 0] + X[:, 1]
    X[random.rand(N, 3) < 0.1] = np.nan
    return X, np.where(y > 0, "yes", "no"), y


def written(X, gap):
    """The array as objects, with ``gap`` where numbers are missing."""
    objects = X.astype(object)
    objects[np.isnan(X)] = gap
    return objects


FORMS = {
    "float32": lambda X: X.astype(np.float32),
    "None": lambda X: written(X, None),
    "pandas.NA": lambda X: written(X, pd.NA),
    "lists": lambda X: written(X, None).tolist(),
    "a table": lambda X: pd.DataFrame(X, columns=["x0", "x1", "x2"]),
}


def scores(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


@pytest.mark.parametrize("estimator", [tunefree.TuneFreeClassifier, tunefree.TuneFreeRegressor])
def test_gaps_mean_the_same_however_they_are_written(estimator):
    X, labels, y = numbers()
    X = X.astype(np.float32).astype(np.float64)
    target = labels if estimator is tunefree.TuneFreeClassifier else y
    for fit in (
        lambda model, form: model.fit(form(X), target),
        lambda model, form: model.partial_fit(form(X[:50]), target[:50]).partial_fit(form(X[50:]), target[50:]),
        lambda model, form: model.fit(form(np.nan_to_num(X[:50])), target[:50]).partial_fit(form(X[50:]), target[50:]),
    ):
        model = fit(estimator(), np.copy)
        for name, form in FORMS.items():
            other = fit(estimator(), form)
            for rows in (X, np.nan_to_num(X)):
                expected = scores(model, rows)
                np.testing.assert_array_equal(scores(other, form(rows)), expected, err_msg=name)
                np.testing.assert_array_equal(scores(model, form(rows)), expected, err_msg=name)


def test_a_gap_where_none_was_learned_is_told():
    X, labels, _ = numbers()
    whole = np.where(np.isnan(X), 0.5, X)
    whole[:, 2] = X[:, 2]  # in this column some were missing
    model = tunefree.TuneFreeClassifier().fit(whole, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(whole)
    rows = whole[:6].copy()
    rows[:2, 0] = np.nan
    rows[:3, 2] = np.nan
    with pytest.warns(
        DataWarning, match=r"missing in 'x0' .2 rows., and none was in the rows that were learned"
    ) as told:
        model.predict_proba(rows)
    assert len(told) == 1 and "x2" not in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(rows, labels[:6]).predict(rows)  # now there is one that was learned
    table = {"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}
    with pytest.warns(DataWarning, match="'age'"):
        tunefree.train(table, target="rich", learner="scinol2").predict({"age": [None, 60.0]})


def test_gaps_in_river():
    rows = [{"x": float(i % 5), "job": "cook" if i % 3 else None, "y": gap} for i, gap in enumerate([None, 1.0] * 20)]
    predictions = []
    for gap in (None, float("nan"), pd.NA, np.float64("nan")):
        model = river.ScInOLClassifier()
        for i, row in enumerate(rows):
            model.learn_one({name: gap if value is None else value for name, value in row.items()}, i % 2)
        predictions.append(model.predict_proba_one({"x": 1.0, "job": gap, "y": gap}))
    assert predictions[0] == predictions[1] == predictions[2] == predictions[3]
