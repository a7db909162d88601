"""The papers' algorithms as estimators: scikit-learn's checks, and the same numbers as those of the package's own."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import tunefree
from tunefree import papers
from tunefree.papers import PaperClassifier, PaperRegressor, play


@parametrize_with_checks([PaperClassifier(), PaperRegressor(papers.NAG(1.0), "square")])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def data(n=200, d=4):
    random = np.random.default_rng(0)
    X = random.normal(size=(n, d)) * 10.0 ** np.arange(d)
    return X, np.where(X[:, 0] + random.normal(size=n) > 0, "yes", "no")


PLAIN = {"passes": 1, "shuffle": False, "fit_intercept": False}
PAIRS = {
    "ScInOL1": (papers.ScInOL1(), lambda: tunefree.ScInOLClassifier(variant=1, **PLAIN)),
    "ScInOL2": (papers.ScInOL2(), lambda: tunefree.ScInOLClassifier(**PLAIN)),
    "PiSTOL": (
        papers.PiSTOL(a=3.0, normalised=True),
        lambda: tunefree.PiSTOLClassifier(coordinate=False, a=3.0, **PLAIN),
    ),
    "Adam": (papers.Adam(0.01), lambda: tunefree.OnlineClassifier("adam", settings={"eta": 0.01}, **PLAIN)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_play_and_the_compiled_estimators_agree(name):
    X, y = data()
    algorithm, other = PAIRS[name]
    result, model = play(algorithm, X, y), other().fit(X, y)
    np.testing.assert_allclose(model.coef_[0], result.weights[:, 0], rtol=1e-9, atol=1e-14)
    assert model.progressive_loss_ == pytest.approx(result.losses.mean(), rel=1e-11)
    ours = PaperClassifier(algorithm).fit(X, y)
    np.testing.assert_array_equal(ours.decision_function(X), X @ result.weights[:, 0])
    assert ours.progressive_loss_ == result.losses.mean()
    averaged = PaperClassifier(algorithm, output="average").fit(X, y)
    np.testing.assert_array_equal(averaged.decision_function(X), X @ result.average[:, 0])


def test_an_estimator_has_regret_bound_and_history():
    X, y = data()
    model = PaperClassifier(papers.ScInOL1()).fit(X, y)
    u = np.array([1.0, 0.0, 0.0, 0.0])
    assert 0.0 < model.regret(u) <= model.bound(u).value
    table = model.history()
    assert table["row"].to_pylist() == list(range(1, 201))
    assert table["mean_loss"].to_pylist()[-1] == pytest.approx(model.progressive_loss_)
    assert clone(model).fit(X, y).regret(u) == model.regret(u)


@pytest.mark.parametrize("name", ["ScInOL1", "ScInOL2", "PiSTOL"])
def test_the_packages_own_estimators_have_the_bound_of_their_theorem(name):
    X, y = data()
    algorithm, make = PAIRS[name]
    model, u = make().fit(X, y), np.array([1.0, 0.0, 0.01, 0.0])
    regret, bound = play(algorithm, X, y).regret(u), model.bound(u)
    assert regret <= bound.value and bound.theorem
    assert bound.value <= play(algorithm, X, y).bound(u).value * (1.0 + 1e-9)  # from the state it is never worse
    again = make().set_params(passes=2).fit(X, y).bound(u)
    assert again.value is None and "one pass" in str(again)
    with pytest.raises(ValueError, match="coef must have shape"):
        model.bound(u[:2])
