"""river's own checks, and that rows one at a time are what rows in batches are."""

import copy
import math
from functools import partial
from itertools import islice

import numpy as np
import pandas as pd
import pytest

import tunefree
from tunefree.pool.targets import Labels

pytest.importorskip("river")

from river import checks

from tunefree.core.errors import DataError, ModelError
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
    X = np.column_stack([X, np.random.default_rng(1).normal(size=(200, 70))])  # more than there is room for at first
    labels = np.array(["a", "b", "c"])[np.digitize(y, [0.0, 1.0])]
    whole = Model("classification", "scinol2", n_features=74)
    predictions, _ = whole.learn(dense(X), Labels.of(labels), np.ones(200))
    one, many = ScInOLClassifier(), ScInOLClassifier()
    for x, label in zip(X, labels, strict=True):
        one.predict_proba_one(dict(enumerate(x)))  # changes nothing
        one.learn_one({**dict(enumerate(x)), "missing": None}, label)
    many.learn_many(pd.DataFrame(X), pd.Series(labels))
    expected = whole.probabilities(whole.predict(dense(X)))
    for model in (one, many, copy.deepcopy(one)):
        found = model.predict_proba_many(pd.DataFrame(X))[whole.classes].to_numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def people(n=300):
    """Rows whose target depends on a category and on a number, which is often missing."""
    rng = np.random.default_rng(0)
    jobs, ages = rng.choice(["cook", "clerk"], n), rng.normal(size=n)
    both = zip(jobs.tolist(), ages.tolist(), strict=True)
    rows = [{"job": job, "age": age, "noise": float(rng.normal())} for job, age in both]
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


def learn_signs(model, labels, n):
    for z in np.random.default_rng(0).normal(size=n).tolist():
        model.learn_one({"z": z}, labels[int(z > 0)])
    return model


@pytest.mark.parametrize("cls", [TuneFreeClassifier, ScInOLClassifier])
@pytest.mark.parametrize("label", [None, math.nan, np.float64("nan"), pd.NA, pd.NaT, ("a", None), ["a"], {"a": 1}])
def test_a_label_that_cannot_be_one_is_refused_and_only_it(cls, label):
    model = learn_signs(cls(), "ab", 50)
    with pytest.raises(DataError, match=r"the label .* is (missing|of type)"):
        model.learn_one({"z": 1.0, "new": 2.0}, label)
    other = learn_signs(learn_signs(cls(), "ab", 50), "ab", 50)
    assert learn_signs(model, "ab", 50).predict_proba_one({"z": 0.1}) == other.predict_proba_one({"z": 0.1})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.learn_one([1.0, 2.0], 1.0), "a row of type list does not name its columns; pass a dict"),
        (
            lambda model: model.learn_many(np.ones((2, 2)), [0.0, 1.0]),
            "rows of type ndarray .* pass a pandas",
        ),
        (lambda model: model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), [1.0]), "there are 2 rows, and 1 targets"),
        (lambda model: model.learn_one({"a": object()}, 1.0), "the value of 'a' is of type object; pass a number"),
        (lambda model: model.learn_one({"a": 10**400}, 1.0), "the value of 'a' is infinite"),
        (lambda model: model.learn_one({"a": math.inf}, 1.0), "the value of 'a' is infinite"),
        (lambda model: model.predict_interval_one({"a": 1.0}), "coverage 0.9 takes evidence, and no row was learned"),
        (lambda model: model.predict_interval_one({"a": 1.0}, [0.5, 0.9]), "coverage must be one number"),
    ],
)
def test_wrong_rows_and_coverages_are_refused(call, message):
    model = TuneFreeRegressor()
    with pytest.raises((DataError, ModelError), match=message):
        call(model)
    assert model.predict_one({"a": 1.0}) == 0.0


def test_intervals_and_sets_of_a_row_equal_those_from_estimators():
    X, y = rows(300)
    frame, labels = pd.DataFrame(X, columns=list("abc")), np.array(["x", "y", "z"])[np.digitize(y, [-1.0, 0.5])]
    numbers, classes = TuneFreeRegressor(), TuneFreeClassifier()
    for model, targets in ((numbers, y), (classes, labels)):
        model.learn_many(frame, targets)
        model.learn_many(frame[:0], [])
        assert len(model.predict_many(frame[:0])) == 0
    regressor = tunefree.TuneFreeRegressor().partial_fit(frame, y)
    assert numbers.predict_many(frame).tolist() == regressor.predict(frame).tolist()
    intervals = regressor.predict_interval(frame, 0.8)
    sets = tunefree.TuneFreeClassifier().partial_fit(frame, labels).predict_set(frame, 0.6, as_labels=True)
    assert list(classes.predict_proba_one({})) != ["x", "y", "z"]  # which are in the order in which they came
    for k, x in enumerate(frame[:100].to_dict(orient="records")):
        assert numbers.predict_interval_one(x, 0.8) == tuple(intervals[k])
        assert classes.predict_set_one(x, 0.6) == set(sets[k])
    assert {len(labels_of_row) for labels_of_row in sets} == {0, 1, 2}
