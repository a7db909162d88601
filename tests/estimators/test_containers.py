"""Rows and labels in the containers that users have: what peers take is taken, the rest is one clear error."""

import numpy as np
import pandas as pd
import pytest

import tunefree
from tunefree import KernelPiSTOLClassifier, ScInOLClassifier, TuneFreeClassifier, TuneFreeRegressor

rng = np.random.default_rng(0)
N = 200
FIRST, SECOND = rng.normal(size=N), np.where(rng.random(N) < 0.3, rng.normal(size=N), 0.0)
WORDS = np.array(list("xyz"))[rng.integers(0, 3, N)]
Y = (FIRST + 2 * SECOND > 0).astype(int)
FRAME = pd.DataFrame({"a": FIRST, "b": SECOND})
MODELS = [TuneFreeClassifier, ScInOLClassifier]
both = pytest.mark.parametrize("cls", MODELS)


def sparse_column(values, fill_value):
    return pd.arrays.SparseArray(values, fill_value=fill_value)


@both
@pytest.mark.parametrize("beside", ["number", "category"])
@pytest.mark.parametrize("fill_value", [0.0, np.nan])
def test_sparse_columns_beside_others_are_what_they_hold(cls, beside, fill_value):
    other = {"a": FIRST} if beside == "number" else {"a": FIRST, "k": pd.Categorical(WORDS)}
    values = np.where(SECOND == 0.0, fill_value, SECOND)
    plain = pd.DataFrame({**other, "b": values})
    frame = pd.DataFrame({**other, "b": sparse_column(values, fill_value)})
    assert (cls().fit(frame, Y).predict_proba(frame) == cls().fit(plain, Y).predict_proba(plain)).all()


@both
def test_sparse_columns_alone_that_leave_out_gaps_are_a_table(cls):
    values = np.where(SECOND == 0.0, np.nan, SECOND)
    frame = pd.DataFrame({"b": sparse_column(values, np.nan)})
    expected = cls().fit(pd.DataFrame({"b": values}), Y).predict_proba(pd.DataFrame({"b": values}))
    assert (cls().fit(frame, Y).predict_proba(frame) == expected).all()
    dummies = pd.get_dummies(pd.DataFrame({"a": FIRST, "k": WORDS}), sparse=True)
    assert cls().fit(dummies, Y).score(dummies, Y) > 0.6


@both
@pytest.mark.parametrize("late", [WORDS, SECOND])
def test_columns_without_values_become_columns_with_the_first_one(cls, late):
    first, frame = FRAME.assign(k=[None] * N)[:50], FRAME.assign(k=late)
    model = cls().partial_fit(first, Y[:50])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert model.partial_fit(frame, Y).feature_names_in_.tolist() == ["a", "b", "k"]
    assert model.score(frame, Y) > 0.7
    assert cls().fit(first, Y[:50]).predict(frame).shape == (N,)


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
    loaded = tunefree.load(tmp_path / "model")
    assert (loaded.predict(frame) == model.predict(frame)).all()
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
