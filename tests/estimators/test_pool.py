"""The pool as scikit-learn estimators: how many passes, in what order, of which rows, and that nothing else matters."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tunefree import OnlineClassifier, TuneFreeClassifier, TuneFreeRegressor
from tunefree.core.errors import ModelError
from tunefree.core.rows import dense
from tunefree.estimators import pooled, validation
from tunefree.model import pruning
from tunefree.model.pool import MEMBERS

BOTH = (TuneFreeClassifier, TuneFreeRegressor)
STREAM = {"epochs": 1, "shuffle": False}
holdout_stride = pytest.mark.parametrize("cls", BOTH)
quick = settings(max_examples=15, deadline=None)


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


def assert_same(one, other, X):
    np.testing.assert_array_equal(said(one, X), said(other, X))
    assert one.members_ == other.members_
    assert one.passes_ == other.passes_ if hasattr(one, "passes_") and hasattr(other, "passes_") else True


@holdout_stride
def test_two_fits_are_the_same_and_the_order_depends_on_random_state(cls):
    X, y = table(200)
    first = cls(random_state=3).fit(X, y)
    assert_same(first, cls(random_state=3).fit(X, y), X)
    assert_same(first, clone(first).fit(X, y), X)
    assert_same(first, first.fit(X, y), X)
    assert (said(first, X) != said(cls(random_state=4).fit(X, y), X)).any()


@holdout_stride
def test_passes_and_members(cls):
    X, y = table(300)
    found = cls().fit(X, y)
    names = [member["member"] for member in found.members_]
    assert len(found.passes_) == len(set(names)) == len(names) == len(MEMBERS) + 2
    assert [name for name in names if name.startswith("batch")] == ["batch steady", "batch pairs"]
    assert [member["passes"] for member in found.members_] == found.passes_
    assert sum(member["share"] for member in found.members_) == pytest.approx(1.0)
    passes = [number for name, number in zip(names, found.passes_, strict=True) if not name.startswith("batch")]
    assert all(1 <= number <= pooled.MOST_PASSES for number in passes)
    assert found.n_iter_ == max(passes)
    assert found.t_ == 300 * found.n_iter_
    assert found.coef_.shape[-1] == 5 and found.intercept_.shape == (1,)


@holdout_stride
@pytest.mark.parametrize("shuffle", [True, False])
def test_a_number_of_epochs_is_obeyed(cls, shuffle):
    X, y = table(200)
    thrice = cls(epochs=3, shuffle=shuffle).fit(X, y)
    assert (thrice.n_iter_, thrice.t_) == (3, 600)
    assert thrice.passes_ == [3] * len(MEMBERS)
    for bad in (0, 2.0, True, "all", None):
        with pytest.raises(ValueError, match="epochs"):
            cls(epochs=bad).fit(X, y)


@holdout_stride
def test_too_few_rows_to_hold_any_out_are_learned_ten_times(cls):
    X, y = table(80)
    weight = (np.arange(80) < pooled.FEWEST - 1).astype(float)
    assert cls().fit(X, y, weight).passes_ == [pooled.FEW_PASSES] * len(MEMBERS)
    weight[pooled.FEWEST - 1] = 1.0
    assert len(set(cls().fit(X, y, weight).passes_)) > 1


@holdout_stride
def test_many_rows_make_few_passes(cls, monkeypatch):
    X, y = table(300)
    assert cls().fit(X, y).n_iter_ > 3
    monkeypatch.setattr(pooled, "MOST_ROUNDS", 300)
    assert cls().fit(X, y).n_iter_ <= pooled.LEAST_PASSES


def test_passes_pay_where_labels_follow_a_rule():
    X, y = table(700, d=30, noise=0.0)
    test, truth = X[200:], y[200:]
    once, auto = (TuneFreeClassifier(epochs=epochs).fit(X[:200], y[:200]) for epochs in (1, "auto"))
    assert auto.n_iter_ > 4
    assert log_loss(truth, auto.predict_proba(test)) < 0.9 * log_loss(truth, once.predict_proba(test))


def test_passes_do_not_pay_where_labels_are_noise():
    X, y = np.random.default_rng(0).normal(size=(600, 100)), np.random.default_rng(1).integers(0, 2, 600)
    auto, often = (TuneFreeClassifier(epochs=epochs).fit(X[:300], y[:300]) for epochs in ("auto", 20))
    losses = [log_loss(y[300:], each.predict_proba(X[300:])) for each in (auto, often)]
    assert losses[0] < losses[1]
    assert losses[0] < 1.2 * np.log(2)
    shares = [member["share"] for member in auto.members_]
    assert np.average(auto.passes_, weights=shares) < 5


@holdout_stride
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
    whole, parts = cls(**STREAM).fit(X, y, weight), cls()
    known = {"classes": np.unique(y)} if cls is TuneFreeClassifier else {}
    for start, stop in pairwise(sorted({0, 80, *cuts})):
        parts.partial_fit(X[start:stop], y[start:stop], sample_weight=weight[start:stop], **known)
    assert_same(whole, parts, X)
    assert whole.progressive_loss_ == parts.progressive_loss_
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


def test_a_class_that_appears_late_is_learned():
    X, y = table(2000, n_classes=3, noise=0.1)
    order = np.argsort(np.where(y == 2, np.arange(2000) + 1000, np.arange(2000)), kind="stable")
    late = TuneFreeClassifier().partial_fit(X[order], y[order])
    assert np.mean(late.predict(X[y == 2]) == 2) > 0.7
    assert np.mean(late.predict(X) == y) > 0.8


@holdout_stride
def test_warm_start_goes_on_with_one_pass(cls):
    X, y = table(200)
    warm = cls(warm_start=True).fit(X, y)
    rounds, before = warm.t_, said(warm, X)
    warm.fit(X, y)
    assert warm.n_iter_ == 1
    assert warm.t_ == rounds + 200
    assert warm.passes_ == [1] * (len(MEMBERS) + 2)
    assert (said(warm, X) != before).any()
    halves = cls(warm_start=True, **STREAM).fit(X[:100], y[:100]).fit(X[100:], y[100:])
    assert_same(halves, cls(**STREAM).fit(X, y), X)
    assert_same(cls(warm_start=True).fit(X, y), cls().fit(X, y), X)


@holdout_stride
@pytest.mark.parametrize("in_sparse", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_weights_are_copies_in_any_order(cls, seed, in_sparse):
    X, y = table(60, 3, 3, seed)
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 5, 60)
    weight[:3] += 1
    copies = rng.permutation(np.repeat(np.arange(60), weight))
    rows = sparse.csr_array(X) if in_sparse else X
    assert_same(cls().fit(rows, y, weight), cls().fit(rows[copies], y[copies]), X)
    kept = weight > 0
    assert_same(cls().fit(rows, y, kept), cls().fit(rows[kept], y[kept]), X)


@holdout_stride
@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
def test_kinds_of_table_give_the_same_bits(cls):
    X, y = table()
    names = list("abcde")
    of_dense, of_sparse = cls().fit(X, y), cls().fit(sparse.csr_array(X), y)
    for kind in (np.asfortranarray(X), pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        assert_same(of_dense, cls().fit(kind, y), X)
        np.testing.assert_array_equal(said(of_dense, kind), said(of_dense, X))
    for kind in (sparse.csr_matrix(X), sparse.csc_array(X), sparse.coo_array(X), sparse.lil_array(X)):
        assert_same(of_sparse, cls().fit(kind, y), X)
        np.testing.assert_array_equal(said(of_sparse, kind), said(of_sparse, X))


@holdout_stride
@pytest.mark.parametrize("first_sparse", [False, True])
def test_rows_to_come_may_be_dense_or_sparse_whatever_the_first_were(cls, first_sparse):
    """Views see dense columns and sparse entries differently, but an estimator's in one way, that of its first rows."""
    X, y = table(200)
    kinds = (sparse.csr_array, np.asarray) if first_sparse else (np.asarray, sparse.csr_array)
    one, other = (cls().partial_fit(kinds[0](X[:100]), y[:100]) for _ in range(2))
    for kind in kinds:
        np.testing.assert_array_equal(said(one, kind(X)), said(one, X))
    one.partial_fit(kinds[0](X[100:]), y[100:])
    other.partial_fit(kinds[1](X[100:]), y[100:])
    assert_same(one, other, X)
    copied = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(said(copied, kinds[1](X)), said(one, X))


@pytest.mark.parametrize("view", ["centred", "steady"])
def test_so_do_learners_with_a_view_of_their_own(view):
    X, y = table(200)
    fitted = OnlineClassifier("scinol2", view=view).fit(X, y)
    np.testing.assert_array_equal(fitted.predict_proba(sparse.csr_array(X)), fitted.predict_proba(X))
    words = OnlineClassifier("scinol2", view=view).fit(sparse.csr_array(X), y)
    np.testing.assert_array_equal(words.predict_proba(sparse.csr_array(X)), words.predict_proba(X))


def test_rows_with_other_dense_columns_than_a_view_has_seen_are_refused():
    fitted = TuneFreeClassifier().fit(*table())
    with pytest.raises(ModelError, match="3 dense columns"):
        fitted._learned.model.predict(dense(np.ones((4, 3))))


def test_dense_and_sparse_rows_are_learned_equally_well():
    X, y = table(1000)
    for kind in (np.asarray, sparse.csr_array):
        assert TuneFreeClassifier().fit(kind(X[:500]), y[:500]).score(kind(X[500:]), y[500:]) > 0.8


@holdout_stride
@pytest.mark.parametrize("kind", ["pickle", "deepcopy", "joblib"])
def test_copies_predict_and_learn_alike(cls, kind, tmp_path):
    X, y = table()
    fitted = cls().fit(X[:60], y[:60])
    if kind == "pickle":
        copied = pickle.loads(pickle.dumps(fitted))
    elif kind == "deepcopy":
        copied = copy.deepcopy(fitted)
    else:
        copied = joblib.load(joblib.dump(fitted, tmp_path / "model")[0])
    assert_same(fitted, copied, X)
    assert_same(fitted.partial_fit(X[60:], y[60:]), copied.partial_fit(X[60:], y[60:]), X)


@holdout_stride
@pytest.mark.parametrize("shuffle", [True, False])
def test_rows_are_learned_in_blocks_without_a_trace(cls, shuffle, monkeypatch):
    X, y = table(150)
    fitted = cls(shuffle=shuffle).fit(X, y)
    monkeypatch.setattr(validation, "BLOCK", 16)
    assert_same(fitted, cls(shuffle=shuffle).fit(X, y), X)


@holdout_stride
def test_members_may_leave_while_rows_are_learned(cls, monkeypatch):
    X, y = table(400)
    everybody = cls().fit(X, y)
    monkeypatch.setattr(pruning, "FIRST_PRUNING", 128)
    fewer = cls().fit(X, y)
    assert 2 <= len(fewer.members_) < len(MEMBERS)
    assert len(fewer.passes_) == len(fewer.members_)
    assert sum(member["share"] for member in fewer.members_) == pytest.approx(1.0)
    names = [member["member"] for member in everybody.members_]
    assert [names.index(member["member"]) for member in fewer.members_] == sorted(
        names.index(member["member"]) for member in fewer.members_
    )
    assert_same(fewer, cls().fit(X, y), X)
    copied = pickle.loads(pickle.dumps(fewer))
    assert_same(fewer.partial_fit(X, y), copied.partial_fit(X, y), X)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1.0, 1e9, 1e300])
@pytest.mark.parametrize("offset", [0.0, 10.0, -10.0])
def test_regression_targets_of_any_scale_and_offset(scale, offset):
    X, _ = table(500)
    y = X @ [300.0, 30.0, 1.0, 0.1, 0.01] + offset
    fitted = TuneFreeRegressor().fit(X[:400], scale * y[:400])
    predictions = fitted.predict(X[400:])
    assert np.isfinite(predictions).all()
    assert np.isfinite([member["share"] for member in fitted.members_]).all()
    assert np.abs(predictions / scale - y[400:]).mean() < 0.5 * np.abs(y - y.mean()).mean()


def test_multiplying_targets_by_a_power_of_two_multiplies_predictions():
    X, _ = table(200)
    y = X @ [300.0, 30.0, 1.0, 0.1, 0.01] + 3.0
    one, other = TuneFreeRegressor(**STREAM).fit(X, y), TuneFreeRegressor(**STREAM).fit(X, np.ldexp(y, 60))
    np.testing.assert_allclose(np.ldexp(one.predict(X), 60), other.predict(X), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["absolute", "quantile:0.9", "huber:0.5"])
def test_regression_losses(loss):
    X, _ = table(600)
    rng = np.random.default_rng(0)
    y = X @ [300.0, 30.0, 1.0, 0.1, 0.01] + rng.normal(size=600)
    predictions = TuneFreeRegressor(loss=loss).fit(X[:400], y[:400]).predict(X[400:])
    if loss == "quantile:0.9":
        assert 0.75 < np.mean(y[400:] < predictions) < 0.99
    else:
        assert np.abs(predictions - y[400:]).mean() < 0.95
    with pytest.raises(ValueError, match="logistic|loss"):
        TuneFreeClassifier(loss="hinge").fit(X, y > 0)


@pytest.mark.parametrize("scale", [1e-300, 1e300])
@holdout_stride
def test_finite_whatever_the_scale_of_features(cls, scale):
    X, y = table(100)
    X[:, 1] *= scale
    assert np.isfinite(said(cls().fit(X, y), X)).all()


def test_class_weights_are_sample_weights():
    X, y = table(120)
    weight = np.where(y == 0, 2.0, 0.5)
    by_dict = TuneFreeClassifier(class_weight={0: 2.0, 1: 0.5}).fit(X, y)
    assert_same(by_dict, TuneFreeClassifier().fit(X, y, weight), X)


def test_with_the_tools_of_scikit_learn():
    X, y = make_classification(200, n_informative=4, n_classes=3, n_clusters_per_class=1, random_state=0)
    predictions = cross_val_predict(make_pipeline(StandardScaler(), TuneFreeClassifier()), X, y, cv=3)
    assert np.mean(predictions == y) > 0.7


@holdout_stride
def test_verbose_tells_of_each_pass(cls, capsys):
    X, y = table(300)
    quiet = cls(random_state=1).fit(X, y)
    assert capsys.readouterr().out == ""
    told = cls(random_state=1, verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert any("search, pass 2 of at most" in line for line in lines)
    assert f"members make up to {told.n_iter_} passes" in "\n".join(lines)
    assert all(line.startswith(f"[{cls.__name__}]") for line in lines)
    assert_same(quiet, told, X)
    cls(verbose=True).partial_fit(X, y)
    assert capsys.readouterr().out == ""


def test_verbose_draws_a_bar_on_a_terminal(monkeypatch, capsys):
    X, y = table(300)
    monkeypatch.setenv("FORCE_COLOR", "1")  # which makes rich take any output for a terminal
    monkeypatch.setenv("TERM", "xterm")
    TuneFreeRegressor(random_state=1, verbose=True).fit(X, y)
    out = capsys.readouterr().out
    assert "search, pass 1 of at most 32: 17 members " in out and "\u2501" in out and "\x1b[?25h" in out
