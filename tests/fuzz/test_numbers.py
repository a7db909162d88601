"""No stream of finite numbers gives NaN, whatever the sizes of rows, weights and targets."""

import numpy as np
import pytest

from tests.fuzz.numbers import outcome
from tunefree.core.rows import dense
from tunefree.pool.model import Model, restored
from tunefree.pool.targets import Labels


@pytest.mark.slow
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_extreme_streams_give_finite_numbers(task):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        found = outcome(rng, task, 2 + seed % 2, learner="pool")
        assert found == [], f"seed {seed}"


def test_newton_steps_stay_finite_whatever_the_spread_of_weights():
    """Its matrix was no longer positive once weights were spread over some 25 orders of magnitude."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(300, 4)), Labels.of(rng.integers(0, 3, 300))
        model = Model("classification", "newton", view="steady", n_features=5)
        model.learn(dense(X), y, 10.0 ** rng.uniform(-40, 40, 300))
        assert np.isfinite(model.linear.present(dense(X)).predict(dense(X))).all()


def test_a_member_that_predicts_no_number_sleeps_for_these_rows():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(300, 4)), rng.integers(0, 2, 300), np.ones(300)
    model = Model("classification", n_features=5)
    model.learn(dense(X[:100]), Labels.of(y[:100]), weight[:100])
    learn = model.linear.members[1].learn

    def overflow(X, y, weight, predictions, met):
        learn(X, y, weight, predictions, met)
        predictions[::3] = np.inf

    model.linear.members[1].learn = overflow
    shown, losses = model.learn(dense(X[100:200]), Labels.of(y[100:200]), weight[100:200])
    del model.linear.members[1].learn
    assert np.isfinite(shown).all() and np.isfinite(losses).all() and np.isfinite(model.predict(dense(X))).all()
    weights = model.predictor.shares()
    assert np.isfinite([*weights.values()]).all() and weights[model.linear.members[1].name] > 0.0
    again = restored(*model.save_state())
    margins = [one.learn(dense(X[200:]), Labels.of(y[200:]), weight[200:])[0].tobytes() for one in (model, again)]
    assert margins[0] == margins[1]
