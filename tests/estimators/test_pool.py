"""Rows in any batches, containers and order give the same bits; and what estimators learn of them."""

import pickle
from itertools import pairwise, product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from tunefree import PiSTOLClassifier, ScInOLClassifier, ScInOLRegressor, TuneFreeClassifier, TuneFreeRegressor
from tunefree.core.rows import dense
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels

LINEAR, POOLS = (ScInOLClassifier, ScInOLRegressor), (TuneFreeClassifier, TuneFreeRegressor)
STREAM = {"passes": 1, "shuffle": False}
of_all = pytest.mark.parametrize("cls", [*LINEAR, *POOLS])  # learners share all but formulas and targets
of_pools = pytest.mark.parametrize("cls", POOLS)
of_learners = pytest.mark.parametrize("cls", [ScInOLClassifier, PiSTOLClassifier])
quick, few = settings(max_examples=8), settings(max_examples=4)
seeds = st.integers(0, 2**16)


def table(n=120, d=5, n_classes=2, seed=0, noise=0.0):
    """Rows with zeros, features of very different scales, and labels that depend on them but for noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    y = (X @ rng.normal(size=(d, n_classes)) + noise * rng.normal(size=(n, n_classes))).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X * np.logspace(-3, 3, d), y


def said(model, X):
    """All that a model says of rows and of itself, to compare bit for bit."""
    said = [model.predict(X), *(model.selection_.to_pydict().values() if type(model) in POOLS else [])]
    said += [model.coef_, model.intercept_] if hasattr(model, "coef_") else []
    return [*said, model.decision_function(X), model.predict_proba(X)] if hasattr(model, "predict_proba") else said


def scores(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


def assert_same(one, other, X):
    for a, b in zip(said(one, X), said(other, X), strict=True):
        np.testing.assert_array_equal(a, b)


@of_all
@quick
@given(
    seed=seeds,
    n_classes=st.integers(2, 4),
    cuts=st.lists(st.integers(0, 80), max_size=5),
    kind=st.sampled_from(["dense", "sparse", "averaged", "calibrated"]),
    weighted=st.booleans(),
)
@example(seed=0, n_classes=3, cuts=[7, 30], kind="calibrated", weighted=True)
def test_partial_fit_in_any_batches_is_fit(cls, seed, n_classes, cuts, kind, weighted):
    X, y = table(80, 3, n_classes, seed, 0.3)
    X = sparse.csr_array(X) if kind == "sparse" else X
    weight = np.random.default_rng(seed).choice([0.0, 0.5, 3.0], 80) if weighted else np.ones(80)
    weight[0] = 1.0
    known = {"classes": np.unique(y)} if hasattr(cls, "predict_proba") else {}
    options = {"average": kind == "averaged"} if cls in LINEAR else {}
    options |= {"loss": "hinge"} if kind == "calibrated" and cls is ScInOLClassifier else {}
    whole = cls(**options, **(STREAM if cls in LINEAR else {"shuffle": False})).fit(X, y, weight)
    parts = cls(**options)
    for start, stop in pairwise(sorted({0, 80, *cuts})):
        parts.partial_fit(X[start:stop], y[start:stop], sample_weight=weight[start:stop], **known)
    parts._learned.model.freeze()
    assert_same(whole, parts, X)
    loss = parts.progressive_loss_
    assert whole.progressive_loss_ == (loss if cls in LINEAR else pytest.approx(loss, rel=1e-12))
    assert whole.t_ == parts.t_ == (weight > 0).sum()


@pytest.mark.parametrize("cls", [ScInOLClassifier, PiSTOLClassifier, TuneFreeClassifier])
@quick
@given(seed=seeds, cut=st.integers(1, 79), labels=st.permutations(["b", "c", "a", "d"]))
def test_classes_that_appear_later_do_so_at_their_row(cls, seed, cut, labels):
    X, y = table(80, 3, 4, seed, 0.3)
    y = np.array(labels)[np.where(np.arange(80) < 30, y % 2, y)]
    once = cls().partial_fit(X, y)
    twice = cls().partial_fit(X[:cut], y[:cut]).partial_fit(X[cut:], y[cut:])
    assert once.classes_.tolist() == sorted(set(y.tolist()))
    assert_same(once, twice, X)
    probabilities = once.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(once.classes_[probabilities.argmax(axis=1)], once.predict(X))


@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@pytest.mark.parametrize(("cls", "passes"), [*product(LINEAR, (1, 2)), *product(POOLS, (1,))])
def test_kinds_of_table_give_the_same_bits(cls, passes):
    X, y = table(n_classes=3)
    names, options = list("abcde"), {"passes": passes, "shuffle": passes > 1} if cls in LINEAR else {}
    of_dense, of_sparse = (cls(**options).fit(rows, y) for rows in (X, sparse.csr_array(X)))
    if cls in LINEAR:
        assert_same(of_dense, of_sparse, X)
    for kind in (sparse.csr_matrix(X), sparse.csc_array(X), sparse.coo_array(X), sparse.lil_array(X)):
        assert_same(of_sparse, cls(**options).fit(kind, y), X)
        np.testing.assert_array_equal(scores(of_sparse, kind), scores(of_sparse, X))
    for kind in (np.asfortranarray(X), pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        model = cls(**options).fit(kind, y)
        assert_same(of_dense, model, X)
        np.testing.assert_array_equal(scores(of_dense, kind), scores(of_dense, X))
    assert model.feature_names_in_.tolist() == names and model.n_features_in_ == 5


@of_all
@few
@given(seed=seeds, shuffle=st.booleans(), in_sparse=st.booleans())
def test_weight_zero_is_removal_and_weight_one_is_none(cls, seed, shuffle, in_sparse):
    X, y = table(40, 3, 3, seed, 0.3)
    kept = np.random.default_rng(seed).random(40) < 0.6
    kept[:3] = True
    options = {"shuffle": shuffle} | ({"passes": 2} if cls in LINEAR else {})
    rows = sparse.csr_array(X) if in_sparse else X
    assert_same(cls(**options).fit(rows, y), cls(**options).fit(rows, y, np.ones(40)), X)
    assert_same(cls(**options).fit(rows, y, kept), cls(**options).fit(rows[kept], y[kept]), X)


@of_all
@few
@given(seed=seeds, in_sparse=st.booleans())
def test_weights_are_copies_for_learners_and_rows_are_shuffled_from_any_order(cls, seed, in_sparse):
    X, y = table(40, 3, 3, seed, 0.3)
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 5, 40)
    weight[:3] += 1
    order = rng.permutation(np.repeat(np.arange(40), weight) if cls in LINEAR else 40)
    rows, weights = sparse.csr_array(X) if in_sparse else X, None if cls in LINEAR else weight[order]
    assert_same(cls().fit(rows, y, weight), cls().fit(rows[order], y[order], weights), X)


def test_copies_of_rows_and_the_order_of_categories():
    """A pool predicts copies as known rows; of the order of rows, it depends on the first appearances of categories."""
    X, y = table(120, 3, 2, 0, 0.3)
    job = np.array(list("abcdefgh"))[np.random.default_rng(0).integers(0, 8, 120)]
    columns = {"x": X[:, 0], "job": job}
    first = np.sort(np.unique(job, return_index=True)[1])
    order = np.concatenate([first, np.setdiff1d(np.arange(120), first)[::-1]])
    model = TuneFreeClassifier().fit(columns, y)
    assert_same(model, TuneFreeClassifier().fit({name: v[order] for name, v in columns.items()}, y[order]), columns)
    copies = TuneFreeClassifier().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    assert copies.progressive_loss_ < 0.9 * TuneFreeClassifier().fit(X, y, np.full(120, 2.0)).progressive_loss_


@pytest.mark.parametrize("cls", LINEAR)
def test_duplicate_entries_are_summed_and_nothing_is_changed(cls):
    data, indices, pointers = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1, 1, 0, 1]), np.array([0, 3, 4])
    X = sparse.csr_array((data, indices, pointers), shape=(2, 2))
    before = [part.copy() for part in (data, indices, pointers)]
    assert_same(cls().fit(X, [0, 1]), cls().fit([[4.0, 3.0], [0.0, 8.0]], [0, 1]), X)
    for part, old in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(part, old)


@of_learners
def test_the_second_class_is_the_positive_one_in_any_order_of_appearance(cls):
    X, y = table(200)
    names = np.array(["no", "yes"])[y]
    first = int(np.argmax(y == 1))
    order = np.r_[first, np.delete(np.arange(200), first)]  # "yes" is met first
    model = cls(**STREAM).partial_fit(X[order], names[order])
    assert model.classes_.tolist() == ["no", "yes"]
    assert np.mean((model.decision_function(X) > 0) == (y == 1)) > 0.8
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1] > 0.5, model.decision_function(X) > 0)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0], atol=1e-9)


def test_progressive_loss_is_of_rows_not_yet_learned():
    X, y = table(50)
    model = ScInOLClassifier(**STREAM).fit(X, y)
    losses = [np.log(2.0)]
    for i in range(1, 50):
        shown = ScInOLClassifier().partial_fit(X[:i], y[:i], classes=[0, 1]).partial_fit(X[i : i + 1], y[i : i + 1])
        losses.append(shown.progressive_loss_ * (i + 1) - sum(losses))
    np.testing.assert_allclose(model.progressive_loss_, np.mean(losses))
    weight = np.linspace(0.0, 3.0, 50)
    by_model = Model("classification", "scinol2", classes=[0, 1], n_features=6)
    _, row_losses = by_model.learn(dense(X[1:]), Labels.of(y[1:]), weight[1:])
    weighted = ScInOLClassifier(passes=2, shuffle=False).fit(X, y, weight)
    np.testing.assert_allclose(weighted.progressive_loss_, np.average(row_losses, weights=weight[1:]))


@of_learners
@pytest.mark.parametrize("loss", ["hinge", "smoothed-hinge", "squared-hinge", "exponential", "square"])
def test_every_loss_gives_probabilities(cls, loss):
    X, y = table(1000)
    model = cls(loss=loss).fit(X[:500], y[:500])
    assert model.score(X, y) > 0.8
    probabilities = model.predict_proba(X[500:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_log_proba(X[500:]), np.log(probabilities))
    _, counts = np.unique(y, return_counts=True)
    blind = -np.log(counts / len(y)) @ (counts / len(y))
    assert log_loss(y[500:], probabilities, labels=model.classes_) < 0.7 * blind


@pytest.mark.all_trees  # whose share of the figure is large
@of_pools
def test_they_learn_beyond_linear_models(cls):
    X = np.random.default_rng(0).normal(size=(600, 3))
    product = X[:, 0] * X[:, 1]
    y = np.where(product > 0.0, "yes", "no") if cls is TuneFreeClassifier else 10.0 * product + 5.0
    fitted = cls().fit(X[:300], y[:300])
    assert fitted.score(X[300:], y[300:]) > 0.75
    assert cross_val_score(fitted, X[:300], y[:300], cv=3).min() > 0.7
    assert (fitted.n_iter_, fitted.t_) == (1, 300)


@of_pools
def test_two_fits_are_the_same_and_the_order_depends_on_random_state(cls):
    X, y = table(200, noise=0.3)
    first = cls(random_state=3).fit(X, y)
    assert_same(first, cls(random_state=3).fit(X, y), X)
    assert_same(first, clone(first).fit(X, y), X)
    assert_same(first, first.fit(X, y), X)
    assert (scores(first, X) != scores(cls(random_state=4).fit(X, y), X)).any()


@of_pools
@pytest.mark.parametrize("first_sparse", [False, True])
def test_rows_to_come_may_be_dense_or_sparse_unlike_the_first(cls, first_sparse):
    """Views see dense columns and sparse entries differently, but an estimator's in one way, that of its first rows."""
    X, y = table(120, noise=0.3)
    kinds = (sparse.csr_array, np.asarray) if first_sparse else (np.asarray, sparse.csr_array)
    one, other = (cls().partial_fit(kinds[0](X[:60]), y[:60]) for _ in range(2))
    for kind in kinds:
        np.testing.assert_array_equal(scores(one, kind(X)), scores(other, X))
    one.partial_fit(kinds[0](X[60:]), y[60:])
    other.partial_fit(kinds[1](X[60:]), y[60:])
    assert_same(one, other, X)
    copied = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(scores(copied, kinds[1](X)), scores(one, X))
