"""The pool as scikit-learn estimators: in what order, of which rows, and that nothing else matters."""

from __future__ import annotations

import copy
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
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tunefree import OnlineClassifier, TuneFreeClassifier, TuneFreeRegressor, load, train
from tunefree.core.errors import DataError, ModelError
from tunefree.core.rows import dense
from tunefree.estimators import validation

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


def test_files_hold_them_whole(fitted, tmp_path):
    fitted.save(tmp_path / "m")
    loaded, X = load(tmp_path / "m"), product(1)[0]
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.history().column("loss").to_pylist()[-1] == pytest.approx(fitted.progressive_loss_)


def test_the_selection_lists_members_awake_by_their_weights(fitted):
    members, selection = fitted._learned.model.pool.members, fitted.selection_.to_pandas()
    assert set(selection["member"]) <= {members.names[place] for place in members.places_awake}
    assert list(selection) == ["member", "weight", "loss", "standard_error", "rows"]
    assert selection["weight"].sum() == pytest.approx(1.0)
    assert (np.diff(selection["weight"]) <= 0.0).all()
    assert selection["rows"].max() <= 300
    assert "of the mean that is corrected" in fitted._learned_html()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shuffle": 1}, "`shuffle` must be True or False"),
        ({"n_jobs": 1.5}, "`n_jobs` must be"),
    ],
    ids=str,
)
@of_both
def test_parameters_that_make_no_sense(cls, options, message):
    with pytest.raises(ValueError, match=message):
        cls(**options).fit(*table())


@pytest.mark.parametrize("options", [{"shuffle": False}, {"random_state": 1}], ids=str)
def test_other_parameters_have_an_effect(fitted, options):
    X, other = product()[0], clone(fitted).set_params(**options)
    assert not np.array_equal(scores(other.fit(X, targets(type(fitted))), X), scores(fitted, X))


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


def test_noise_is_learned_as_noise():
    X, y = np.random.default_rng(0).normal(size=(600, 100)), np.random.default_rng(1).integers(0, 2, 600)
    fitted = TuneFreeClassifier().fit(X[:300], y[:300])
    assert log_loss(y[300:], fitted.predict_proba(X[300:])) < 1.1 * np.log(2)


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


def test_a_class_that_appears_late_is_learned():
    X, y = table(2000, n_classes=3, noise=0.1)
    order = np.argsort(np.where(y == 2, np.arange(2000) + 1000, np.arange(2000)), kind="stable")
    late = TuneFreeClassifier().partial_fit(X[order], y[order])
    assert np.mean(late.predict(X[y == 2]) == 2) > 0.7
    assert np.mean(late.predict(X) == y) > 0.8


@of_both
def test_warm_starts_go_on_with_the_pass(cls):
    X, y = product()[0], targets(cls)
    warm = cls(warm_start=True).fit(X, y)
    assert_same(warm, cls().fit(X, y), X)
    first = copy.deepcopy(warm)
    warm.fit(product(1)[0], targets(cls, 1))
    assert (warm.t_, warm.n_iter_) == (600, 1)
    test = product(2)[0], targets(cls, 2)
    assert warm.score(*test) > first.score(*test) - 0.02


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
    for kind in (np.asfortranarray(X), pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        assert_same(of_dense, cls().fit(kind, y), X)
        np.testing.assert_array_equal(said(of_dense, kind), said(of_dense, X))
    for kind in (sparse.csr_matrix(X), sparse.csc_array(X), sparse.coo_array(X), sparse.lil_array(X)):
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


@of_both
def test_rows_are_learned_in_blocks_without_a_trace(cls, monkeypatch):
    X, y = table(150)
    fitted = cls().fit(X, y)
    monkeypatch.setattr(validation, "BLOCK", 16)
    assert_same(fitted, cls().fit(X, y), X)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("scale", "offset"), [(1e-300, 0.0), (1.0, 10.0), (1e300, -10.0)])
def test_regression_targets_of_any_scale_and_offset(scale, offset):
    X, _ = table(500)
    y = X @ [300.0, 30.0, 1.0, 0.1, 0.01] + offset
    fitted = TuneFreeRegressor().fit(X[:400], scale * y[:400])
    predictions = fitted.predict(X[400:])
    assert np.isfinite(predictions).all()
    assert np.isfinite(fitted.selection_["weight"].to_numpy()).all()
    assert np.abs(predictions / scale - y[400:]).mean() < 0.5 * np.abs(y - y.mean()).mean()


def test_multiplying_targets_by_a_power_of_two_multiplies_predictions():
    X, _ = table(200)
    y = X @ [300.0, 30.0, 1.0, 0.1, 0.01] + 3.0
    one, other = (TuneFreeRegressor(shuffle=False).fit(X, np.ldexp(y, power)) for power in (0, 60))
    np.testing.assert_allclose(np.ldexp(one.predict(X), 60), other.predict(X), rtol=1e-9)


def test_with_the_tools_of_scikit_learn():
    X, y = make_classification(200, n_informative=4, n_classes=3, n_clusters_per_class=1, random_state=0)
    predictions = cross_val_predict(make_pipeline(StandardScaler(), TuneFreeClassifier()), X, y, cv=3)
    assert np.mean(predictions == y) > 0.7


@of_both
def test_verbose_tells_of_the_pass(cls, capsys):
    X, y = table(300)
    quiet = cls(random_state=1).fit(X, y)
    assert capsys.readouterr().out == ""
    told = cls(random_state=1, verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert f"a pass over 300 rows, progressive loss {told.progressive_loss_:.6g}" in lines[-1]
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
    assert "a pass over 300 rows" in out and "\u2501" in out and "\x1b[?25h" in out


def test_balanced_classes_weigh_the_same():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = np.where(rng.random(2000) < 1.0 / (1.0 + np.exp(3.0 - X[:, 0])), "yes", "no")
    weight = np.where(y == "yes", np.mean(y == "no"), np.mean(y == "yes"))
    predicted = [
        TuneFreeClassifier(class_weight=balanced).fit(X[:1000], y[:1000]).predict_proba(X[1000:])
        for balanced in (None, "balanced")
    ]
    means = [np.average(probabilities[:, 1], weights=weight[1000:]) for probabilities in predicted]
    assert means[0] < 0.25 and abs(means[1] - 0.5) < 0.1  # of the balanced rows, half are of either class
    losses = [log_loss(y[1000:], probabilities, sample_weight=weight[1000:]) for probabilities in predicted]
    assert losses[1] < 0.9 * losses[0]


def test_a_minority_that_was_copied_has_the_weight_of_its_copies():
    X, y, _ = product()
    minority = np.flatnonzero(y == "yes")[:20]
    kept = np.concatenate([np.flatnonzero(y == "no"), minority])
    copies = np.random.default_rng(0).permutation(np.concatenate([kept, *[minority] * 9]))
    weight = np.where(y[kept] == "yes", 10.0, 1.0)
    weighted = TuneFreeClassifier().fit(X[kept], y[kept], sample_weight=weight)
    copied = TuneFreeClassifier().fit(X[copies], y[copies])
    alone, new = TuneFreeClassifier().fit(X[kept], y[kept]), X + 0.01
    means = [model.predict_proba(new)[:, 1].mean() for model in (alone, weighted, copied)]
    assert means[1] > means[0] + 0.05 and means[2] > means[0] + 0.03


@pytest.mark.parametrize("weight", [2.0**-20, 1.0 / 3.0, 1e6])
def test_constant_weights_change_no_byte(fitted, weight):
    X, other = product()[0], clone(fitted)
    other.fit(X, targets(type(fitted)), sample_weight=np.full(300, weight))
    assert scores(other, X).tobytes() == scores(fitted, X).tobytes()


def test_rows_of_few_values_are_rounds_each():
    X = np.random.default_rng(0).integers(0, 2, (1000, 2)).astype(float)
    y = np.where(np.random.default_rng(1).random(1000) < 0.2 + 0.6 * (X[:, 0] != X[:, 1]), "yes", "no")
    model = TuneFreeClassifier().fit(X, y)
    assert model.t_ == 1000
    expected = [np.mean(y[(X[:, 0] != X[:, 1]) == differs] == "yes") for differs in (False, True)]
    np.testing.assert_allclose(model.predict_proba([[0.0, 0.0], [0.0, 1.0]])[:, 1], expected, atol=0.06)


def test_tables_and_the_function_that_trains():
    X, y, _ = product()
    mixed = {"a": X[:, 0].tolist(), "b": X[:, 1].tolist(), "c": np.where(X[:, 2] > 0, "up", "down").tolist()}
    trained = train(mixed | {"y": y.tolist()}, target="y")
    assert np.mean(trained.predict(mixed) == y) > 0.9
    assert TuneFreeClassifier().fit(mixed, y).score(mixed, y) > 0.9


def gaps(n=100):
    """Numbers of which some are missing, the same in a table, and the columns' names."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = (X[:, 0] > 0.0) * 1
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, pd.DataFrame(X, columns=["x0", "x1", "x2"]), y


@of_both
@pytest.mark.parametrize("first", ["fit", "partial_fit"])
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


@of_both
def test_infinite_numbers_are_no_gaps(cls):
    X, _, y = gaps()
    full, bad = np.nan_to_num(X), X.copy()
    bad[7, 1] = -np.inf
    fitted = cls().fit(full, y)
    for use in (lambda: cls().fit(bad, y), lambda: cls().partial_fit(bad, y), lambda: fitted.predict(bad)):
        with pytest.raises(DataError, match="X, row 8, column 'x1': the number is infinite"):
            use()
    with pytest.raises(ValueError, match="X has 2 features, but .* is expecting 3"):
        fitted.predict(X[:, :2])
    with pytest.raises(ValueError, match="NaN"):
        cls().fit(sparse.csr_array(X), y)


@of_both
def test_what_is_no_table(cls):
    X, frame, y = gaps(40)
    with pytest.raises(DataError, match="X: there are no columns; pass a table of one column or more"):
        cls().fit(pd.DataFrame(index=range(40)), y)
    with pytest.raises(ValueError, match="Input y contains NaN|Unknown label type"):
        cls().fit(X, [None, *y[1:].tolist()])
    with pytest.raises(DataError, match="categorical: there is no column 'x3'"):
        cls(categorical=["x3"]).fit(frame, y)
    index = frame.index[::-1] + 7  # rows are taken in their order, whatever their labels
    of_series = pd.Series(y, index=index), pd.Series(np.arange(40) % 3 + 1.0, index=index[::-1])
    odd = cls().fit(frame.set_index(index), of_series[0], of_series[1], groups=pd.Series(np.arange(40) // 4))
    plain = cls().fit(X, y, np.arange(40) % 3 + 1.0, groups=np.arange(40) // 4)
    np.testing.assert_array_equal(scores(odd, frame), scores(plain, X))
