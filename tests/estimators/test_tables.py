"""Tables of any columns in Python: what `tunefree train` makes of them, estimators make of them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from tunefree import (
    IterativeRegularizationClassifier,
    OnlineRegressor,
    ScInOLClassifier,
    ScInOLRegressor,
)
from tunefree.estimators.tables import feature_names


def people(n=300, seed=0):
    """A table with a column of each kind, some values missing, and labels that depend on most columns."""
    rng = np.random.default_rng(seed)
    words = rng.choice(["good", "bad"], n)
    table = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "children": rng.integers(0, 5, n),
            "job": rng.choice(["clerk", "cook", "guard"], n),
            "class": pd.Categorical(rng.choice(["u", "v"], n)),
            "married": rng.random(n) < 0.5,
            "born": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
            "about": [f"the {word} brown fox jumped over the lazy dog number {i}" for i, word in enumerate(words)],
        }
    )
    table.loc[::7, "age"], table.loc[::5, "job"] = np.nan, None
    score = (table.age.fillna(0) > 40).astype(int) + (table.job == "cook") + table.married + (words == "good")
    return table, np.where(score > 1, "rich", "poor")


def arrow(table):
    return pa.Table.from_pandas(table, preserve_index=False)


@pytest.mark.parametrize("shuffle", [True, False])
def test_all_kinds_of_tables_are_the_same(shuffle):
    table, y = people()
    kinds = {"pandas": table, "polars": pl.from_pandas(table), "arrow": arrow(table)}
    kinds["dict"] = {name: column.to_list() for name, column in kinds["polars"].to_dict().items()}
    models = {name: ScInOLClassifier(shuffle=shuffle, passes=2).fit(X, pl.Series(y)) for name, X in kinds.items()}
    expected = models["pandas"].decision_function(table)
    assert models["pandas"].score(table, y) > 0.9
    for name, model in models.items():
        np.testing.assert_array_equal(model.decision_function(kinds[name]), expected, name)
        assert model.feature_names_in_.tolist() == list(table)


def test_numbers_are_learned_as_an_array_of_them():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    for model in (ScInOLClassifier(), IterativeRegularizationClassifier(max_iter=5)):
        expected = clone(model).fit(X, y).predict_proba(X)
        model.fit(table, y)
        np.testing.assert_array_equal(model.predict_proba(table[["c", "a", "b"]]), expected)
        with pytest.warns(UserWarning, match="valid feature names"):
            np.testing.assert_array_equal(model.predict_proba(X), expected)
        assert np.isfinite(model.predict_proba(table.assign(a=np.nan))).all()
        assert not hasattr(clone(model).fit(pd.DataFrame(X), y), "feature_names_in_")
        np.testing.assert_array_equal(model.fit(X, y).predict_proba(X), expected)


def test_columns_are_what_they_are_said_to_be():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=300), rng.integers(0, 7, 300)])
    y = np.array([3, 0, 5, 1, 9, 2, 4])[X[:, 1].astype(int)]
    plain = ScInOLRegressor().fit(X, y).score(X, y)
    for said in ([1], [-1], [False, True], np.array([False, True])):
        model = ScInOLRegressor(categorical=said).fit(X, y)
        assert model.score(X, y) > 0.95 > plain
        assert feature_names(model)[:2] == ["x0", f"x1={int(X[0, 1])}"]
    assert OnlineRegressor(categorical=["x1"]).fit(X, y).score(X, y) > 0.95
    table = pd.DataFrame({"age": X[:, 0], "code": X[:, 1]})
    model = ScInOLRegressor(categorical=["code"]).fit(table, y)
    assert model.predict(table[["code", "age"]]).tolist() == model.predict(table).tolist()
    table, labels = people()
    for texts, words_of in ((None, {"about"}), ([], {"about"}), (["job"], {"about", "job"})):
        encoder = ScInOLClassifier(text=texts, passes=1).fit(table, labels)._encoder
        assert {column.name for column in encoder.columns if column.kind == "text"} == words_of
