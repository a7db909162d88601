"""Tables of any columns, and model files: what commands make of them, estimators make of them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

import tunefree
from tunefree import IterativeRegularizationClassifier, OnlineRegressor, ScInOLClassifier, ScInOLRegressor
from tunefree.core.errors import DataError
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


@pytest.mark.parametrize("shuffle", [True, False])
def test_all_kinds_of_tables_are_the_same(shuffle):
    table, y = people()
    kinds = {"pandas": table, "polars": pl.from_pandas(table), "arrow": pl.from_pandas(table).to_arrow()}
    kinds["dict"] = {name: column.to_list() for name, column in kinds["polars"].to_dict().items()}
    models = {name: ScInOLClassifier(shuffle=shuffle, passes=2).fit(X, pl.Series(y)) for name, X in kinds.items()}
    expected = models["pandas"].decision_function(table)
    assert models["pandas"].score(table, y) > 0.9
    for name, model in models.items():
        np.testing.assert_array_equal(model.decision_function(kinds[name]), expected, name)
        assert model.feature_names_in_.tolist() == list(table)
    with pytest.raises(DataError, match="column 'job' missing"):
        model.predict(table.drop(columns="job"))
    with pytest.raises(DataError, match="fitted on a table, this is of type ndarray; pass a table with the"):
        model.predict(np.zeros((300, 7)))


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


def test_columns_have_their_declared_types():
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


def test_models_of_text_predict_its_lines(tmp_path):
    (tmp_path / "rows.vw").write_text("1 |f a b\n-1 |f c\n" * 20)
    model = tunefree.train(tmp_path / "rows.vw", learner="scinol2")
    lines = ["|f a b", "1 'tag |f c new:2\n"]
    assert model.predict(lines).tolist() == [1, -1] and model.predict_proba(np.array(lines)).shape == (2, 2)
    (tmp_path / "rows.svm").write_text("1 1:2 3:1\n-1 2:1\n" * 20)
    numbered = tunefree.train(tmp_path / "rows.svm", learner="scinol2")
    assert numbered.predict(["0 1:2 3:1", "0 2:1"]).tolist() == numbered.predict([[2, 0, 1], [0, 1, 0]]).tolist()
    wider = sparse.csr_array([[2.0, 0.0, 1.0, 7.0], [0.0, 1.0, 0.0, 0.0]])
    assert numbered.predict(wider).tolist() == [1, -1] and numbered.n_features_in_ == 3
    for more, rows in ((model, ["|f d e"] * 30), (numbered, sparse.csr_array([[0.0, 0.0, 0.0, 1.0]] * 30))):
        assert more.partial_fit(rows, [2] * 30).predict(rows).tolist() == [2] * 30
        more.save(tmp_path / "m")
        again = tunefree.load(tmp_path / "m")
        np.testing.assert_array_equal(again.predict_proba(rows), more.predict_proba(rows))
        assert again.n_features_in_ == more.n_features_in_ and again.classes_.tolist() == [-1, 1, 2]
    assert numbered.n_features_in_ == 4 and numbered.coef_.shape == (3, 4)
    with pytest.raises(DataError, match="the model reads lines of text; pass them as strings"):
        model.predict([[1.0]])
    with pytest.raises(DataError, match="X: a value is not finite; leave out features of unknown value"):
        numbered.predict([[np.nan, 0.0, 1.0]])
    for wrong in (["|f a", ""], ["|f a\n|f b"]):
        with pytest.raises(DataError, match="X, row [12]: each string must be one line of text"):
            model.predict(wrong)
