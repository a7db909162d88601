"""river's own checks, and that rows one at a time are what rows in batches are."""

import copy
import math
from functools import partial
from itertools import islice

import numpy as np
import pandas as pd
import pytest

from tunefree.pool.targets import Labels

pytest.importorskip("river")

from river import checks

from tunefree.core.errors import DataError
from tunefree.core.rows import dense
from tunefree.pool.model import Model
from tunefree.river import ScInOLClassifier, ScInOLRegressor, TuneFreeClassifier, TuneFreeRegressor

LINEAR, POOLS = (ScInOLClassifier(), ScInOLRegressor()), (TuneFreeClassifier(), TuneFreeRegressor())
FEW = 60  # rows: a pool that predicts each before it learns it begins four generations in these


def of_checks(models, n_rows=None):
    """A test of each check of models, with all rows or the first few; rows of a check can be read once.

    Quick is a single learner: what pools learn by the interface is asked below.
    """
    pairs = [(model, check) for model in models for check in checks.yield_checks(model)]
    return [
        pytest.param(
            model,
            check,
            n_rows,
            id=f"{type(model).__name__}-{check.__name__}",
            marks=[] if isinstance(model, ScInOLRegressor) else [pytest.mark.slow],
        )
        for model, check in pairs
        if check.__name__ not in model._unit_test_skips()
    ]


@pytest.mark.parametrize(("model", "check", "n_rows"), [*of_checks(LINEAR), *of_checks(POOLS, FEW)])
def test_check_of_river(model, check, n_rows):
    assert n_rows or not model._unit_test_skips()
    if n_rows and isinstance(check, partial):
        check = partial(check.func, dataset=list(islice(check.keywords["dataset"], n_rows)))
    check(model.clone())


def rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1.0, 1e-3, 1e3]
    return X, X[:, 0] - 1000 * X[:, 1] + rng.normal(size=n)


def test_rows_one_at_a_time_are_the_rows_of_a_stream():
    X, y = rows()
    labels = np.array(["a", "b", "c"])[np.digitize(y, [0.0, 1.0])]
    whole = Model("classification", "scinol2", n_features=4)
    predictions, _ = whole.learn(dense(X), Labels.of(labels), np.ones(200))
    one, many = ScInOLClassifier(), ScInOLClassifier()
    for x, label in zip(X, labels, strict=True):
        one.predict_proba_one(dict(enumerate(x)))  # changes nothing
        one.learn_one(dict(enumerate(x)), label)
    many.learn_many(pd.DataFrame(X), pd.Series(labels))
    expected = whole.probabilities(whole.predict(dense(X)))
    for model in (one, many, copy.deepcopy(one)):
        found = model.predict_proba_many(pd.DataFrame(X))[whole.classes].to_numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def people(n=300):
    """Rows whose target depends on a category and on a number, which is often missing."""
    rng = np.random.default_rng(0)
    jobs, ages = rng.choice(["cook", "clerk"], n), rng.normal(size=n)
    rows = [
        {"job": str(job), "age": float(age), "noise": float(rng.normal())} for job, age in zip(jobs, ages, strict=True)
    ]
    for row, place in zip(rows, rng.integers(0, 4, n), strict=True):
        row["age"] = None if place == 0 else row["age"]
    return rows, [2.0 * (row["job"] == "cook") + (row["age"] or 0.0) for row in rows]


def told(model, x):
    return model.predict_proba_one(x) if isinstance(model, TuneFreeClassifier) else model.predict_one(x)


@pytest.mark.parametrize("cls", [TuneFreeClassifier, TuneFreeRegressor])
def test_the_pool_learns_categories_gaps_and_columns_that_come_and_go(cls):
    rows, y = people()
    y = [target > 1.0 for target in y] if cls is TuneFreeClassifier else y
    one, many = cls(), cls()
    for k, (x, target) in enumerate(zip(rows, y, strict=True)):
        x = {**x, "late": float(k), "team": "red"} if k > 150 else x
        if k % 7 == 0:
            told(one, {"noise": float(k)})  # rows before are learned: where they are cut into blocks changes nothing
        one.learn_one(x, target)
        many.learn_one(x, target)
    for x in (rows[0], {"job": "guard", "age": 1.0}, {"unknown": 3.0}, {}):
        assert told(one, x) == told(many, x)
    right = [one.predict_one({"job": job, "age": 0.0, "noise": 0.0}) for job in ("cook", "clerk")]
    assert right == [True, False] if cls is TuneFreeClassifier else right[0] - right[1] > 1.5
    with pytest.raises(DataError, match="the value of 'age' is infinite"):
        one.learn_one({"age": float("inf")}, y[0])


CLASSIFIERS = [TuneFreeClassifier, ScInOLClassifier]


def learn_signs(model, labels, n):
    for z in np.random.default_rng(0).normal(size=n).tolist():
        model.learn_one({"z": z}, labels[int(z > 0)])
    return model


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize("label", [None, math.nan, np.float64("nan"), pd.NA, pd.NaT, ("a", None), ["a"], {"a": 1}])
def test_a_label_that_cannot_be_one_is_refused_and_only_it(cls, label):
    model = learn_signs(cls(), "ab", 50)
    with pytest.raises(DataError, match=r"the label .* is (missing|of type)"):
        model.learn_one({"z": 1.0, "new": 2.0}, label)
    other = learn_signs(learn_signs(cls(), "ab", 50), "ab", 50)
    assert learn_signs(model, "ab", 50).predict_proba_one({"z": 0.1}) == other.predict_proba_one({"z": 0.1})


def test_rows_without_names_of_columns_are_refused():
    model = TuneFreeClassifier()
    with pytest.raises(DataError, match="a row of type list does not name its columns; pass a dict"):
        model.learn_one([1.0, 2.0], True)
    with pytest.raises(DataError, match="rows of type ndarray do not name their columns; pass a pandas.DataFrame"):
        model.learn_many(np.ones((2, 2)), [True, False])
