"""Rows and labels in the containers that users have: what peers take is taken, the rest is one clear error."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import tunefree
from tunefree import KernelPiSTOLClassifier, ScInOLClassifier, ScInOLRegressor, TuneFreeClassifier, TuneFreeRegressor

rng = np.random.default_rng(0)
N = 200
FIRST, SECOND = rng.normal(size=N), np.where(rng.random(N) < 0.3, rng.normal(size=N), 0.0)
WORDS = np.array(list("xyz"))[rng.integers(0, 3, N)]
Y = (FIRST + 2 * SECOND > 0).astype(int)
X = np.c_[FIRST, SECOND]
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


@both
@pytest.mark.parametrize("of_type", [int, bool, np.int8])
def test_labels_of_type_object_are_what_they_hold(cls, of_type):
    labels = np.array([of_type(label) for label in Y], object)
    model = cls().fit(X, labels, classes=np.array([of_type(0), of_type(1)], object))
    assert (model.predict_proba(X) == cls().fit(X, Y).predict_proba(X)).all()
    assert model.score(X, labels) > 0.9
    assert {*map(type, model.predict(X[:9]).tolist())} <= {int, bool}


def test_what_is_masked_is_missing():
    mask = np.c_[FIRST > 1.0, SECOND > 1.0]
    masked, gaps = np.ma.masked_array(X, mask), np.where(mask, np.nan, X)
    model = TuneFreeClassifier().fit(masked, Y)
    assert (model.predict_proba(masked) == TuneFreeClassifier().fit(gaps, Y).predict_proba(gaps)).all()
    with pytest.raises(ValueError, match="NaN"):
        ScInOLClassifier().fit(masked, Y)
    for cls, y in ((ScInOLClassifier, Y), (ScInOLRegressor, FIRST)):
        row = int(np.argmax(mask[:, 0]))
        with pytest.raises(ValueError, match=rf"y\[{row}\] is missing"):
            cls().fit(X, np.ma.masked_array(y, mask[:, 0]))
        with pytest.raises(ValueError, match=rf"sample_weight\[{row}\] is nan"):
            cls().fit(X, y, np.ma.masked_array(np.ones(N), mask[:, 0]))
        assert cls().fit(np.ma.masked_array(X), y).predict(X).shape == (N,)


@both
def test_zeros_that_a_sparse_matrix_stores_are_zeros(cls):
    rows = sparse.csr_array(X)
    stored = sparse.csr_array((X.ravel(), np.tile([0, 1], N), np.arange(0, 2 * N + 1, 2)), shape=X.shape)
    assert stored.nnz > rows.nnz
    model = cls().fit(rows, Y)
    assert (cls().fit(stored, Y).predict_proba(rows) == model.predict_proba(rows)).all()
    assert (model.predict_proba(stored) == model.predict_proba(rows)).all()
    assert stored.nnz == 2 * N
