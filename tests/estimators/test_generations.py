"""The estimators with ``learner="generations"``: what they are for scikit-learn, and what they say of themselves."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from tunefree import TuneFreeClassifier, TuneFreeRegressor, load, train
from tunefree.core.errors import ModelError

N = 300


def rows(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    signal = X[:, 0] * X[:, 1]
    return X, np.where(signal > 0.0, "yes", "no"), 10.0 * signal + 5.0


def targets(estimator, seed=0):
    return rows(seed)[1 if isinstance(estimator, TuneFreeClassifier) else 2]


@pytest.fixture(scope="module", params=[TuneFreeClassifier, TuneFreeRegressor])
def fitted(request):
    estimator = request.param(learner="generations")
    return estimator.fit(rows()[0], targets(estimator))


def test_they_learn_what_no_linear_model_can(fitted):
    X = rows(1)[0]
    assert fitted.score(X, targets(fitted, 1)) > 0.75
    assert cross_val_score(fitted, rows()[0], targets(fitted), cv=3).min() > 0.7
    assert (fitted.n_iter_, fitted.t_) == (1, N)


@pytest.mark.parametrize("again", [copy.deepcopy, lambda estimator: pickle.loads(pickle.dumps(estimator))])
def test_copies_predict_and_learn_the_same(fitted, again):
    X, other = rows(1)[0], again(fitted)
    np.testing.assert_array_equal(other.predict(X), fitted.predict(X))
    one, two = (again(fitted).partial_fit(X, targets(fitted, 1)) for _ in range(2))
    assert one._learned.model.pool.rows == 2 * N
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    np.testing.assert_array_equal(other.predict(X), fitted.predict(X))


def test_clones_know_nothing_and_learn_the_same(fitted):
    X, other = rows()[0], clone(fitted)
    assert not hasattr(other, "n_features_in_")
    np.testing.assert_array_equal(other.fit(X, targets(fitted)).predict(X), fitted.predict(X))


def test_files_hold_them_whole(fitted, tmp_path):
    fitted.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    X = rows(1)[0]
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.history().column("loss").to_pylist()[-1] == pytest.approx(fitted.progressive_loss_)
    assert all(member["member"] in loaded.report().html for member in fitted.members_)


def test_members_are_those_awake(fitted):
    members = fitted._learned.model.pool.members
    awake = {members.names[place] for place in members.places_awake}
    assert {member["member"] for member in fitted.members_} <= awake
    assert sum(member["share"] for member in fitted.members_) == pytest.approx(1.0)
    assert all(member["passes"] == 1 for member in fitted.members_)
    assert "of the mean that is corrected" in fitted._learned_html()


@pytest.mark.parametrize("name", ["coef_", "intercept_", "feature_importances_"])
def test_there_are_no_weights(fitted, name):
    assert not hasattr(fitted, name)
    with pytest.raises(AttributeError, match="models of generations are not explained"):
        getattr(fitted, name)


def test_nothing_explains_the_linear_members_alone(fitted):
    for explain in (lambda: fitted.explain(rows()[0]), fitted.feature_weights):
        with pytest.raises(ModelError, match="models of generations are not explained"):
            explain()


@pytest.mark.parametrize(
    "options",
    [{"kernel": True}, {"epochs": 3}, {"pairs": [(0, 1)]}, {"pairs": []}, {"max_support": 9}, {"device": "cpu"}],
    ids=str,
)
def test_parameters_without_an_effect_are_refused(fitted, options):
    (name,) = options
    with pytest.raises(ModelError, match=f"{name} has no effect with learner='generations'"):
        clone(fitted).set_params(**options).fit(rows()[0], targets(fitted))


@pytest.mark.parametrize("options", [{"shuffle": False}, {"random_state": 1}, {"fit_intercept": False}], ids=str)
def test_other_parameters_have_an_effect(fitted, options):
    if set(options) <= set(fitted.get_params()):
        X, other = rows()[0], clone(fitted).set_params(**options)
        other.fit(X, targets(fitted))
        assert not np.array_equal(_scores(other, X), _scores(fitted, X))


@pytest.mark.parametrize("options", [{"n_jobs": 1}, {"epochs": 1}, {"kernel": False}, {"verbose": True}], ids=str)
def test_these_parameters_change_no_model(fitted, options):
    X, other = rows()[0], clone(fitted).set_params(**options)
    np.testing.assert_array_equal(_scores(other.fit(X, targets(fitted)), X), _scores(fitted, X))


def _scores(estimator, X):
    return estimator.predict_proba(X) if isinstance(estimator, TuneFreeClassifier) else estimator.predict(X)


def test_in_given_order_a_fit_is_the_pass_of_partial_fit_and_its_end(fitted):
    X, y = rows()[0], targets(fitted)
    whole = clone(fitted).set_params(shuffle=False).fit(X, y)
    pieces = clone(fitted)
    first = {"classes": np.unique(y)} if isinstance(fitted, TuneFreeClassifier) else {}
    for start in range(0, N, 70):
        pieces.partial_fit(X[start : start + 70], y[start : start + 70], **(first if start == 0 else {}))
    assert pieces.progressive_loss_ == pytest.approx(whole.progressive_loss_)
    pieces._learned.model.freeze()
    np.testing.assert_array_equal(_scores(pieces, X), _scores(whole, X))


def test_warm_starts_go_on(fitted):
    again = copy.deepcopy(fitted).set_params(warm_start=True)
    X = rows(1)[0]
    again.fit(X, targets(fitted, 1))
    assert (again.t_, again.n_iter_) == (2 * N, 1)
    assert again.score(rows(2)[0], targets(fitted, 2)) > fitted.score(rows(2)[0], targets(fitted, 2)) - 0.02


def test_balanced_classes_weigh_the_same():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    y = np.where(rng.random(2000) < 1.0 / (1.0 + np.exp(3.0 - X[:, 0])), "yes", "no")
    weight = np.where(y == "yes", np.mean(y == "no"), np.mean(y == "yes"))
    found = [
        TuneFreeClassifier(learner="generations", class_weight=balanced).fit(X[:1000], y[:1000]).predict_proba(X[1000:])
        for balanced in (None, "balanced")
    ]
    assert found[0][:, 1].mean() < 0.15 < 0.2 < found[1][:, 1].mean() < 0.6
    losses = [log_loss(y[1000:], own, sample_weight=weight[1000:]) for own in found]
    assert losses[1] < 0.9 * losses[0]


def test_classes_that_partial_fit_meets_late():
    X, y, _ = rows()
    model = TuneFreeClassifier(learner="generations").partial_fit(X[:200], y[:200])
    late = np.where(X[200:, 2] > 0.5, "perhaps", y[200:])
    model.partial_fit(X[200:], late)
    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_tables_and_the_function_that_trains():
    X, y, _ = rows()
    table = {"a": X[:, 0].tolist(), "b": X[:, 1].tolist(), "c": np.where(X[:, 2] > 0, "up", "down").tolist()}
    trained = train(table | {"y": y.tolist()}, target="y", learner="generations")
    assert np.mean(trained.predict(table) == y) > 0.9
    assert "generations" in repr(trained)
    fitted = TuneFreeClassifier(learner="generations").fit(table, y)
    assert fitted.score(table, y) > 0.9
    with pytest.raises(ModelError, match="--passes has no effect"):
        train(table | {"y": y.tolist()}, target="y", learner="generations", passes=2)


@pytest.mark.parametrize("weight", [2.0**-20, 2.0**9])
def test_all_weights_times_a_power_of_two_change_no_byte(fitted, weight):
    X, other = rows()[0], clone(fitted)
    other.fit(X, targets(fitted), sample_weight=np.full(N, weight))
    assert _scores(other, X).tobytes() == _scores(fitted, X).tobytes()


def test_copies_are_weights_and_no_evidence(fitted):
    X, y = rows()[0], targets(fitted)
    order = np.random.default_rng(0).permutation(np.tile(np.arange(N), 5))
    other = clone(fitted).fit(X[order], y[order])
    np.testing.assert_allclose(_scores(other, X), _scores(fitted, X), rtol=1e-9)


def test_rows_of_few_values_are_rounds_each():
    X = np.random.default_rng(0).integers(0, 2, (1000, 2)).astype(float)
    y = np.where(np.random.default_rng(1).random(1000) < 0.2 + 0.6 * (X[:, 0] != X[:, 1]), "yes", "no")
    model = TuneFreeClassifier(learner="generations").fit(X, y)
    assert model.t_ == 1000
    expected = [np.mean(y[(X[:, 0] != X[:, 1]) == differs] == "yes") for differs in (False, True)]
    np.testing.assert_allclose(model.predict_proba([[0.0, 0.0], [0.0, 1.0]])[:, 1], expected, atol=0.06)
