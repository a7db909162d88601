"""Tables of any columns in Python: what `tunefree train` makes of them, estimators make of them."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tunefree
from tunefree import (
    IterativeRegularizationClassifier,
    OnlineRegressor,
    Plan,
    ScInOLClassifier,
    ScInOLRegressor,
    TuneFreeClassifier,
    open_source,
)
from tunefree.core.errors import DataError, DataWarning
from tunefree.estimators import validation
from tunefree.estimators.tables import feature_names, keys_of
from tunefree.stream.batch import Refused
from tunefree.training.training import train

STREAM = {"passes": 1, "shuffle": False}


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


@pytest.fixture(scope="module")
def adult():
    whole = parquet.read_table(f"{tunefree.__path__[0]}/data/adult.parquet").slice(0, 1500).drop(["split"])
    return whole.drop(["income"]), whole["income"]


def test_the_first_data_set_of_the_readme_is_learned(adult):
    X, y = adult
    model = TuneFreeClassifier().fit(X, y)
    assert model.n_features_in_ == 14 and model.feature_names_in_[1] == "workclass"
    assert model.score(X, y) > 0.85
    strange = X.slice(0, 2).to_pandas().assign(workclass=["of a new kind", None])
    assert np.isfinite(model.predict_proba(strange)).all()
    contributions = model.explain(X.slice(0, 3))
    assert {"(constant)", "age", "workclass", "native-country"} <= set(contributions.column_names)
    assert contributions.num_rows == 3


def test_a_stream_is_learned_as_by_the_command_line():
    table, y = people()
    trained = train(open_source(table.assign(label=y)), Plan(target="label", learner="scinol2"))
    model = ScInOLClassifier(**STREAM).fit(table, y)
    batch = trained.encoder.encode(next(open_source(table).chunks()), False, Refused(), False)
    ours = model.decision_function(table)
    np.testing.assert_array_equal(trained.model.predict(batch.rows)[:, 0], ours)
    parts = ScInOLClassifier()
    for start in range(0, 300, 70):
        parts.partial_fit(table.iloc[start : start + 70], y[start : start + 70], classes=["poor", "rich"])
    np.testing.assert_array_equal(parts.decision_function(table), ours)


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


def test_columns_are_found_by_name_in_any_order():
    table, y = people()
    model = ScInOLRegressor(**STREAM).fit(table, y == "rich")
    expected = model.predict(table)
    np.testing.assert_array_equal(model.predict(table[table.columns[::-1]].assign(other=1)), expected)
    with pytest.raises(DataError, match="column 'job' missing"):
        model.predict(table.drop(columns="job"))
    with pytest.raises(DataError, match="fitted on a table, this is of type ndarray; pass a table with the columns"):
        model.predict(table.to_numpy())


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


def test_numbers_that_are_first_missing_later():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(100, 2)), columns=["a", "b"])
    holes = table.assign(a=np.where(np.arange(100) % 2, np.nan, 1.0))
    for model in (ScInOLClassifier(), TuneFreeClassifier()):
        model.partial_fit(table, rng.integers(0, 2, 100))
        array = table.to_numpy()
        with pytest.warns(UserWarning, match="valid feature names"):
            np.testing.assert_array_equal(model.predict_proba(array), model.predict_proba(table))
        for _ in range(20):
            model.partial_fit(holes, holes.a.isna())
        assert model.score(holes, holes.a.isna()) == 1.0


def test_rows_of_a_table_in_any_order_are_the_same_rows():
    table, y = people()
    table = table.drop(columns="born")  # days are counted from the first row's
    order = np.random.default_rng(1).permutation(len(y))
    one = ScInOLClassifier(passes=2).fit(table, y).decision_function(table)
    np.testing.assert_allclose(
        ScInOLClassifier(passes=2).fit(table.iloc[order], y[order]).decision_function(table), one, rtol=1e-9
    )
    model = ScInOLClassifier()
    rows, targets = validation.labelled(model, table, y == "rich", True)
    digests = validation.digests(rows, keys_of(model)) + validation.of_targets(targets)
    assert len(np.unique(digests)) == len(y)


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


def test_what_cannot_be_used_is_refused_with_the_remedy():
    table, y = people(40)
    for model, X, message in (
        (ScInOLClassifier(categorical=["jobs"]), table, "no column 'jobs'; give names or numbers from 0"),
        (ScInOLClassifier(categorical=[True]), table, "mask of 1 columns; there are 7"),
        (ScInOLClassifier(categorical=["job"], text=["job"]), table, "'job' is among"),
        (ScInOLClassifier(text=["age"]), table, "column 'age': a text must be a string"),
        (ScInOLClassifier(categorical=[0]), sparse.csr_array(np.eye(40)), "not for sparse"),
        (ScInOLClassifier(), table.assign(some=[[[1]]] * 40), "column 'some': columns of type list.* cannot be used"),
        (ScInOLClassifier(), table.assign(age=np.inf), "row 1, column 'age': the number is infinite.*correct the row$"),
        (ScInOLClassifier(), table[:0], "no rows|minimum of 1"),
        (ScInOLClassifier(), table[:39], "inconsistent numbers of samples"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)


def test_tools_of_scikit_learn_take_tables():
    table, y = people()
    numbers = ColumnTransformer(
        [("scaled", StandardScaler(), ["age", "children"])], remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    pipeline = make_pipeline(numbers, ScInOLClassifier())
    search = GridSearchCV(pipeline, {"scinolclassifier__passes": [1, 3]}, cv=2).fit(table, y)
    assert search.best_score_ > 0.7
    assert search.best_estimator_[-1].feature_names_in_[:2].tolist() == ["age", "children"]
    assert (cross_val_predict(ScInOLClassifier(), pl.from_pandas(table), y, cv=3) == y).mean() > 0.7


def test_models_of_tables_are_pickled_and_fitted_again():
    table, y = people()
    model = ScInOLClassifier(passes=1, warm_start=True).fit(table, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    more, labels = people(100, seed=5)
    more["job"] = "smith"
    again.fit(more, labels)
    assert "job=smith" in feature_names(again)
    again.set_params(warm_start=False).fit(more[["age"]], labels)
    assert again.n_features_in_ == 1


# -- what is odd about columns


def ages(rows=60, **more):
    return pd.DataFrame({"age": np.arange(rows) % 50 + 18.0, "job": ["cook", "clerk"] * (rows // 2), **more})


def test_columns_that_come_later_are_left_out_with_a_warning_where_rows_are_points_of_an_array():
    first, labels = ages()[["age"]], np.arange(60) % 2
    model, same = (tunefree.KernelPiSTOLClassifier().fit(first, labels) for _ in range(2))
    with pytest.warns(DataWarning, match=r"column 'pay': came after the first rows, left out \(60 rows, the first: X"):
        model.partial_fit(first.assign(pay=1.0), labels)
    same.partial_fit(first, labels)
    np.testing.assert_array_equal(model.predict_proba(first), same.predict_proba(first))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataWarning)
        model.partial_fit(first, labels)
        ScInOLClassifier().fit(ages(pay=1.0), labels)


def test_the_index_of_a_pandas_frame_in_an_arrow_table_is_no_feature():
    frame = ages()
    table = pa.Table.from_pandas(frame.set_index(frame.index.to_numpy()[::-1] ** 2))
    assert table.schema.names[-1] == "__index_level_0__"
    with pytest.warns(DataWarning, match="column '__index_level_0__': the index of a pandas frame, left out"):
        model = ScInOLClassifier().fit(table, np.arange(60) % 2)
    assert model.n_features_in_ == 2 and list(model.feature_names_in_) == ["age", "job"]
    np.testing.assert_array_equal(model.predict(table), model.predict(frame))
