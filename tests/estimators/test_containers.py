"""Rows and labels in the containers that users have, gaps in them, and classes that are named."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import tunefree
from tests.estimators.test_pool import scores
from tests.workflows.test_classes import rows
from tunefree import KernelPiSTOLClassifier, ScInOLClassifier, TuneFreeClassifier, TuneFreeRegressor
from tunefree.core.errors import DataWarning
from tunefree.estimators.model_file import labels_of

rng = np.random.default_rng(0)
N = 200
FIRST, SECOND = rng.normal(size=N), np.where(rng.random(N) < 0.3, rng.normal(size=N), 0.0)
WORDS = np.array(list("xyz"))[rng.integers(0, 3, N)]
Y = (FIRST + 2 * SECOND > 0).astype(int)
FRAME = pd.DataFrame({"a": FIRST, "b": SECOND})
MODELS = [TuneFreeClassifier, ScInOLClassifier]
both = pytest.mark.parametrize("cls", MODELS)


@both
@pytest.mark.parametrize("beside", ["number", "category"])
@pytest.mark.parametrize("fill_value", [0.0, np.nan])
def test_sparse_columns_beside_others_keep_their_values(cls, beside, fill_value):
    other = {"a": FIRST} if beside == "number" else {"a": FIRST, "k": pd.Categorical(WORDS)}
    values = np.where(SECOND == 0.0, fill_value, SECOND)
    plain = pd.DataFrame({**other, "b": values})
    frame = pd.DataFrame({**other, "b": pd.arrays.SparseArray(values, fill_value=fill_value)})
    assert (cls().fit(frame, Y).predict_proba(frame) == cls().fit(plain, Y).predict_proba(plain)).all()


@both
def test_a_model_of_one_class_predicts_it_however_far_rows_are(cls):
    X = np.column_stack([FIRST, SECOND]) + 3.0
    model = cls().partial_fit(X, np.repeat("a", N))
    assert set(model.predict(np.concatenate([1e6 * X, -1e6 * X]))) == {"a"}


@both
def test_zeros_that_are_stored_are_as_others(cls):
    X = np.column_stack([FIRST, SECOND])
    stored = sparse.csr_array((X.ravel(), np.tile([0, 1], N), np.arange(0, 2 * N + 1, 2)), shape=X.shape)
    few = sparse.csr_array(X)
    assert few.nnz < stored.nnz
    assert (cls().fit(stored, Y).predict_proba(stored) == cls().fit(few, Y).predict_proba(few)).all()


@both
def test_sparse_columns_alone_that_leave_out_gaps_are_a_table(cls):
    values = np.where(SECOND == 0.0, np.nan, SECOND)
    frame = pd.DataFrame({"b": pd.arrays.SparseArray(values, fill_value=np.nan)})
    expected = cls().fit(pd.DataFrame({"b": values}), Y).predict_proba(pd.DataFrame({"b": values}))
    assert (cls().fit(frame, Y).predict_proba(frame) == expected).all()
    dummies = pd.get_dummies(pd.DataFrame({"a": FIRST, "k": WORDS}), sparse=True)
    assert cls().fit(dummies, Y).score(dummies, Y) > 0.6


@pytest.mark.parametrize("cls", [*MODELS, KernelPiSTOLClassifier, TuneFreeRegressor])
@pytest.mark.parametrize("begin", ["partial_fit", "fit"])
def test_columns_that_come_later_are_learned(cls, begin, tmp_path):
    y = (SECOND + (WORDS == "x") > 0.5).astype(int)
    first, frame = FRAME[["a"]], FRAME.assign(k=WORDS)
    model = getattr(cls(), begin)(first[:40], y[:40])
    for start in range(40, N, 20):
        model.partial_fit(frame[start : start + 20], y[start : start + 20])
    if cls is KernelPiSTOLClassifier and begin == "fit":  # of an array, whose points have no further columns
        assert model.feature_names_in_.tolist() == ["a"]
        return
    assert model.feature_names_in_.tolist() == ["a", "b", "k"]
    assert model.score(frame, y) > (0.8 if hasattr(model, "classes_") else 0.2)
    model.save(tmp_path / "model")
    assert (tunefree.load(tmp_path / "model").predict(frame) == model.predict(frame)).all()
    model.partial_fit(first[:20], y[:20]).predict(first)  # without them again


@pytest.mark.parametrize("dtype", ["boolean", "bool[pyarrow]", "Int64", "int64[pyarrow]", "category", "string"])
def test_labels_of_types_of_pandas_keep_their_type(dtype):
    values = np.arange(40) > 20
    labels = (
        values if dtype.startswith("bool") else values.astype(int) if "nt64" in dtype else np.where(values, "b", "a")
    )
    model = TuneFreeClassifier().fit(np.arange(40.0)[:, None], pd.Series(labels, dtype=dtype))
    assert model.classes_.tolist() == np.unique(labels).tolist()
    assert type(model.classes_.tolist()[0]) is type(labels.tolist()[0])
    assert labels_of([1, 2.5], None).dtype == float and labels_of([1, "b"], None).dtype == object


def numbers(n=120):
    """An array with gaps, its classes and its numbers."""
    random = np.random.RandomState(0)
    X = random.randn(n, 3)
    y = X[:, 0] + X[:, 1]
    X[random.rand(n, 3) < 0.1] = np.nan
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
            for some in (X, np.nan_to_num(X)):
                expected = scores(model, some)
                np.testing.assert_array_equal(scores(other, form(some)), expected, err_msg=name)
                np.testing.assert_array_equal(scores(model, form(some)), expected, err_msg=name)


def test_a_gap_where_none_was_learned_is_told():
    X, labels, _ = numbers()
    whole = np.where(np.isnan(X), 0.5, X)
    whole[:, 2] = X[:, 2]  # in this column some were missing
    model = tunefree.TuneFreeClassifier().fit(whole, labels)
    with warnings.catch_warnings(action="error"):
        model.predict(whole)
    many = whole[np.arange(33_000) % len(whole)]  # more than are encoded at a time
    many[[0, -1], 0] = np.nan
    many[:3, 2] = np.nan
    missing = r"missing in 'x0' .2 rows., and none was in the rows that were learned"
    with pytest.warns(DataWarning, match=missing) as told:
        model.predict_proba(many)
    assert len(told) == 1 and "x2" not in str(told[0].message)
    with warnings.catch_warnings(action="error"):
        model.partial_fit(many[-6:], labels[:6]).predict(many)  # now there is one that was learned
    table = {"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}
    with pytest.warns(DataWarning, match="'age'"):
        tunefree.train(table, target="rich", learner="scinol2").predict({"age": [None, 60.0]})


def noisy(odd=(700,)):
    table = rows(odd=odd)
    return table["x"][:, None], table["label"]


def test_a_warning_names_the_rows_of_a_rare_class_unless_classes_are_given():
    X, y = noisy(odd=(3, 700))
    with pytest.warns(DataWarning, match=r"class 'goo' has 2 of 1,200 rows: row 4 and row 701; if it is") as warned:
        ScInOLClassifier().fit(X, y).fit(X, y, classes=["goo", "no", "yes"]).fit(X[:1000], y[:1000])
    assert len(warned) == 1


@pytest.mark.parametrize("make", [ScInOLClassifier, TuneFreeClassifier])
def test_another_label_is_an_error_of_partial_fit(make):
    X, y = noisy()
    model = make().partial_fit(X[:600], y[:600], classes=["no", "yes"])
    for copy in (model, pickle.loads(pickle.dumps(model))):
        for part in (slice(690, 710), slice(700, 701)):
            with pytest.raises(ValueError, match="'goo' is not among the classes"):
                copy.partial_fit(X[part], y[part])
    model.partial_fit(X[690:710], y[690:710], sample_weight=(y[690:710] != "goo").astype(float))
    assert model.classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="^y, row 11: 'goo' is not among"):
        model.partial_fit(X[690:710], y[690:710], sample_weight=np.arange(20.0))  # the first row is not learned
    model.partial_fit(X[700:701], y[700:701], classes=["goo"])
    assert model.classes_.tolist() == ["goo", "no", "yes"]
    model.partial_fit(X[:5], y[:5])  # those of before are still classes
