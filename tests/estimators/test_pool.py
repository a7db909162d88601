"""The pool as scikit-learn estimators: in what order, of which rows, and that nothing else matters."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from tunefree import TuneFreeClassifier, TuneFreeRegressor

BOTH = (TuneFreeClassifier, TuneFreeRegressor)
of_both = pytest.mark.parametrize("cls", BOTH)
quick = settings(max_examples=8)


def table(n=120, d=5, n_classes=2, seed=0, noise=0.3):
    """Rows with zeros, features of very different scales, and labels that depend on them but for noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    y = (X @ rng.normal(size=(d, n_classes)) + noise * rng.normal(size=(n, n_classes))).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X * np.logspace(-3, 3, d), y


def said(estimator, X):
    """All that an estimator says of rows, to compare bit for bit."""
    return estimator.predict(X) if isinstance(estimator, TuneFreeRegressor) else estimator.decision_function(X)


def scores(estimator, X):
    return estimator.predict_proba(X) if isinstance(estimator, TuneFreeClassifier) else estimator.predict(X)


def assert_same(one, other, X):
    np.testing.assert_array_equal(said(one, X), said(other, X))
    pd.testing.assert_frame_equal(other.selection_.to_pandas(), one.selection_.to_pandas(), check_exact=True)


def product(seed=0, n=300):
    """Rows, classes and numbers that depend on a product of two columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    signal = X[:, 0] * X[:, 1]
    return X, np.where(signal > 0.0, "yes", "no"), 10.0 * signal + 5.0


def targets(cls, seed=0):
    return product(seed)[1 if cls is TuneFreeClassifier else 2]


@pytest.fixture(scope="module", params=BOTH)
def fitted(request):
    return request.param().fit(product()[0], targets(request.param))


@pytest.mark.all_trees  # whose share of the figure is large
@pytest.mark.parametrize("cls", BOTH)
def test_they_learn_what_no_linear_model_can(cls):
    fitted = cls().fit(product()[0], targets(cls))
    X = product(1)[0]
    assert fitted.score(X, targets(type(fitted), 1)) > 0.75
    assert cross_val_score(fitted, product()[0], targets(type(fitted)), cv=3).min() > 0.7
    assert (fitted.n_iter_, fitted.t_) == (1, 300)


@pytest.mark.parametrize("options", [{"n_jobs": 1}, {"verbose": True}], ids=str)
def test_these_parameters_change_no_model(fitted, options):
    X, other = product()[0], clone(fitted).set_params(**options)
    np.testing.assert_array_equal(scores(other.fit(X, targets(type(fitted))), X), scores(fitted, X))


@of_both
def test_two_fits_are_the_same_and_the_order_depends_on_random_state(cls):
    X, y = table(200)
    first = cls(random_state=3).fit(X, y)
    assert_same(first, cls(random_state=3).fit(X, y), X)
    assert_same(first, clone(first).fit(X, y), X)
    assert_same(first, first.fit(X, y), X)
    assert (said(first, X) != said(cls(random_state=4).fit(X, y), X)).any()


@of_both
@quick
@given(
    seed=st.integers(0, 2**16),
    n_classes=st.integers(2, 4),
    cuts=st.lists(st.integers(0, 80), max_size=5),
    in_sparse=st.booleans(),
    weighted=st.booleans(),
)
def test_partial_fit_in_any_batches_is_fit(cls, seed, n_classes, cuts, in_sparse, weighted):
    X, y = table(80, 3, n_classes, seed)
    X = sparse.csr_array(X) if in_sparse else X
    weight = np.random.default_rng(seed).choice([0.0, 0.5, 3.0], 80) if weighted else np.ones(80)
    weight[0] = 1.0
    known = {"classes": np.unique(y)} if cls is TuneFreeClassifier else {}
    whole, parts = cls(shuffle=False).fit(X, y, weight), cls()
    for start, stop in pairwise(sorted({0, 80, *cuts})):
        parts.partial_fit(X[start:stop], y[start:stop], sample_weight=weight[start:stop], **known)
    parts._learned.model.freeze()
    assert_same(whole, parts, X)
    assert whole.progressive_loss_ == pytest.approx(parts.progressive_loss_, rel=1e-12)
    assert whole.t_ == parts.t_ == (weight > 0).sum()


@quick
@given(seed=st.integers(0, 2**16), cut=st.integers(1, 79), labels=st.permutations(["b", "c", "a", "d"]))
def test_classes_that_appear_later_do_so_at_their_row(seed, cut, labels):
    X, y = table(80, 3, 4, seed)
    y = np.array(labels)[np.where(np.arange(80) < 30, y % 2, y)]
    once = TuneFreeClassifier().partial_fit(X, y)
    twice = TuneFreeClassifier().partial_fit(X[:cut], y[:cut]).partial_fit(X[cut:], y[cut:])
    assert once.classes_.tolist() == sorted(set(y.tolist()))
    assert_same(once, twice, X)
    probabilities = once.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(once.classes_[probabilities.argmax(axis=1)], once.predict(X))


@of_both
@pytest.mark.parametrize("in_sparse", [False, True])
def test_the_order_of_weighted_rows_does_not_matter(cls, in_sparse):
    X, y = table(60, 3, 3)
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 5, 60)
    weight[:3] += 1
    order = rng.permutation(60)
    rows = sparse.csr_array(X) if in_sparse else X
    assert_same(cls().fit(rows, y, weight), cls().fit(rows[order], y[order], weight[order]), X)
    kept = weight > 0
    assert_same(cls().fit(rows, y, kept), cls().fit(rows[kept], y[kept]), X)


@of_both
@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
def test_kinds_of_table_give_the_same_bits(cls):
    X, y = table()
    names = list("abcde")
    of_dense, of_sparse = cls().fit(X, y), cls().fit(sparse.csr_array(X), y)
    for kind in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        assert_same(of_dense, cls().fit(kind, y), X)
        np.testing.assert_array_equal(said(of_dense, kind), said(of_dense, X))
    for kind in (sparse.csr_matrix(X), sparse.csc_array(X)):
        assert_same(of_sparse, cls().fit(kind, y), X)
        np.testing.assert_array_equal(said(of_sparse, kind), said(of_sparse, X))


@of_both
@pytest.mark.parametrize("first_sparse", [False, True])
def test_rows_to_come_may_be_dense_or_sparse_whatever_the_first_were(cls, first_sparse):
    """Views see dense columns and sparse entries differently, but an estimator's in one way, that of its first rows."""
    X, y = table(120)
    kinds = (sparse.csr_array, np.asarray) if first_sparse else (np.asarray, sparse.csr_array)
    one, other = (cls().partial_fit(kinds[0](X[:60]), y[:60]) for _ in range(2))
    for kind in kinds:
        np.testing.assert_array_equal(said(one, kind(X)), said(other, X))
    one.partial_fit(kinds[0](X[60:]), y[60:])
    other.partial_fit(kinds[1](X[60:]), y[60:])
    assert_same(one, other, X)
    copied = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(said(copied, kinds[1](X)), said(one, X))


def gaps(n=100):
    """Numbers of which some are missing, the same in a table, and the columns' names."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] > 0.0) * 1
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, pd.DataFrame(X, columns=["x0", "x1", "x2"]), y


@of_both
@pytest.mark.parametrize("first", ["fit", pytest.param("partial_fit", marks=pytest.mark.slow)])
def test_arrays_with_gaps_are_tables_with_gaps(cls, first):
    X, frame, y = gaps()
    full, full_frame = np.nan_to_num(X), frame.fillna(0.0)
    of_array, of_table = (getattr(cls(), first)(rows, y) for rows in (X, frame))
    for rows in (X, full, X.tolist()):
        np.testing.assert_array_equal(
            scores(of_array, rows), scores(of_table, pd.DataFrame(rows, columns=frame.columns))
        )
    np.testing.assert_array_equal(scores(of_array, full_frame), scores(of_table, full))
    of_array, of_table = (getattr(cls(), first)(rows, y) for rows in (full, full_frame))
    for _ in range(2):  # gaps come first to predict, and then to learn
        np.testing.assert_allclose(scores(of_array, X), scores(of_table, frame), rtol=1e-9)
        np.testing.assert_allclose(scores(of_array, X), scores(of_table, X), rtol=1e-9)
        of_array.partial_fit(X, y), of_table.partial_fit(frame, y)
    assert of_array.fit(full, y)._encoder is None
