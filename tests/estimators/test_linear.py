"""The linear estimators beyond scikit-learn's own checks."""

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import log_loss

from tunefree import PiSTOLClassifier, ScInOLClassifier, ScInOLRegressor
from tunefree.core.rows import dense
from tunefree.pool.model import Model
from tunefree.pool.targets import Labels

CLASSIFIERS = (ScInOLClassifier, PiSTOLClassifier)
STREAM = {"passes": 1, "shuffle": False}
of_both = pytest.mark.parametrize(
    "cls", [ScInOLClassifier, ScInOLRegressor]
)  # which share all but formulas and targets
classifiers = pytest.mark.parametrize("cls", CLASSIFIERS)


def table(n=120, d=5, n_classes=2, seed=0):
    """Rows with zeros, features of very different scales, and labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    y = (X @ rng.normal(size=(d, n_classes))).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X * np.logspace(-3, 3, d), y


def bits(model, X):
    """All that a model says, to compare bit for bit."""
    said = [model.predict(X), model.coef_, model.intercept_]
    return [*said, model.decision_function(X)] if hasattr(model, "decision_function") else said


def assert_same(one, other, X):
    for a, b in zip(bits(one, X), bits(other, X), strict=True):
        np.testing.assert_array_equal(a, b)


@of_both
@given(
    seed=st.integers(0, 2**16),
    n_classes=st.integers(2, 4),
    cuts=st.lists(st.integers(0, 40), max_size=5),
    kind=st.sampled_from(["dense", "sparse", "averaged"]),
    weighted=st.booleans(),
)
def test_partial_fit_in_any_batches_is_fit(cls, seed, n_classes, cuts, kind, weighted):
    X, y = table(40, 3, n_classes, seed)
    X, average = sparse.csr_array(X) if kind == "sparse" else X, kind == "averaged"
    weight = np.random.default_rng(seed).choice([0.0, 0.5, 3.0], 40) if weighted else np.ones(40)
    weight[0] = 1.0
    whole = cls(average=average, **STREAM).fit(X, y, weight)
    parts = cls(average=average)
    known = {"classes": np.unique(y)} if cls in CLASSIFIERS else {}
    edges = sorted({0, 40, *cuts})
    for start, stop in pairwise(edges):
        parts.partial_fit(X[start:stop], y[start:stop], sample_weight=weight[start:stop], **known)
    assert_same(whole, parts, X)
    assert whole.progressive_loss_ == parts.progressive_loss_
    assert whole.t_ == parts.t_ == (weight > 0).sum()


@classifiers
@given(seed=st.integers(0, 2**16), cut=st.integers(1, 39), labels=st.permutations(["b", "c", "a", "d"]))
def test_classes_that_appear_later_do_so_at_their_row(cls, seed, cut, labels):
    X, y = table(40, 3, 4, seed)
    y = np.array(labels)[y]
    once = cls().partial_fit(X, y)
    twice = cls().partial_fit(X[:cut], y[:cut]).partial_fit(X[cut:], y[cut:])
    assert once.classes_.tolist() == ["a", "b", "c", "d"]
    assert_same(once, twice, X)
    np.testing.assert_allclose(once.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(once.classes_[once.predict_proba(X).argmax(axis=1)], once.predict(X))


@of_both
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("options", [STREAM, {"passes": 2, "random_state": 3}])
def test_kinds_of_table_give_the_same_bits(cls, options):
    X, y = table(n_classes=3)
    names = list("abcde")
    reference = cls(**options).fit(X, y)
    kinds = [
        np.asfortranarray(X), sparse.csr_matrix(X), sparse.csc_array(X), sparse.coo_array(X), sparse.lil_array(X),
        pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names),
    ]  # fmt: skip
    for kind in kinds:
        model = cls(**options).fit(kind, y)
        assert_same(reference, model, X)
        np.testing.assert_array_equal(reference.predict(X), model.predict(kind))
    assert model.feature_names_in_.tolist() == names
    assert model.n_features_in_ == 5


@of_both
def test_duplicate_entries_are_summed_and_nothing_is_changed(cls):
    data, indices, pointers = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1, 1, 0, 1]), np.array([0, 3, 4])
    X = sparse.csr_array((data, indices, pointers), shape=(2, 2))
    before = [part.copy() for part in (data, indices, pointers)]
    assert_same(cls().fit(X, [0, 1]), cls().fit([[4.0, 3.0], [0.0, 8.0]], [0, 1]), X)
    for part, old in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(part, old)


@of_both
@given(seed=st.integers(0, 2**16), shuffle=st.booleans())
def test_weight_zero_is_removal_and_weight_one_is_none(cls, seed, shuffle):
    X, y = table(40, 3, 3, seed)
    kept = np.random.default_rng(seed).random(40) < 0.6
    kept[:3] = True
    options = {"passes": 2, "shuffle": shuffle}
    assert_same(cls(**options).fit(X, y), cls(**options).fit(X, y, np.ones(40)), X)
    assert_same(cls(**options).fit(X, y, kept), cls(**options).fit(X[kept], y[kept]), X)


@of_both
@given(seed=st.integers(0, 2**16), in_sparse=st.booleans())
def test_shuffled_weights_are_copies_in_any_order(cls, seed, in_sparse):
    X, y = table(30, 3, 3, seed)
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 5, 30)
    weight[:3] += 1
    copies = rng.permutation(np.repeat(np.arange(30), weight))
    rows = sparse.csr_array(X) if in_sparse else X
    assert_same(cls().fit(rows, y, weight), cls().fit(X[copies], y[copies]), X)


@classifiers
def test_the_second_class_is_the_positive_one_in_whatever_order_classes_came(cls):
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
        so_far = ScInOLClassifier().partial_fit(X[:i], y[:i], classes=[0, 1])
        shown = so_far.partial_fit(X[i : i + 1], y[i : i + 1])
        losses.append(shown.progressive_loss_ * (i + 1) - sum(losses))
    np.testing.assert_allclose(model.progressive_loss_, np.mean(losses))
    weight = np.linspace(0.0, 3.0, 50)
    by_model = Model("classification", "scinol2", classes=[0, 1], n_features=6)
    _, row_losses = by_model.learn(dense(X[1:]), Labels.of(y[1:]), weight[1:])
    weighted = ScInOLClassifier(passes=2, shuffle=False).fit(X, y, weight)
    np.testing.assert_allclose(weighted.progressive_loss_, np.average(row_losses, weights=weight[1:]))


@classifiers
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
