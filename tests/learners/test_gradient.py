"""What the learners with rates promise beyond the contract: the bounds of their papers, and Adam's missed steps."""

import numpy as np
import pytest
from scipy.special import expit

from tests import naive
from tests.contracts import run, weights
from tests.strategies import KINDS, as_dense
from tunefree import losses
from tunefree.core.rows import part
from tunefree.learners.weights import read
from tunefree.losses.objectives import Objective
from tunefree.papers.learners.adam import Adam

LOGISTIC = Objective("classification", losses.Logistic())


@pytest.mark.parametrize("settings_of_adam", [{}, {"eta": 0.3}, {"beta1": 0.99, "beta2": 0.9999}, {"beta1": 0.0}])
def test_adam_makes_up_for_all_steps_that_a_weight_has_missed(settings_of_adam):
    rng = np.random.default_rng(5)
    X = np.zeros((3000, 4))
    X[:, 0] = rng.normal(size=3000)
    X[[0, 5, 6, 2500], 1] = [1.0, -2.0, 0.5, 3.0]
    X[[40, 41, 1500, 2999], 2] = [1e-3, 1e3, 1.0, 1.0]
    X[100, 3] = 1.0  # and never again: only reading brings it up to date
    y = rng.choice([-1.0, 1.0], 3000)
    weight = np.where(rng.random(3000) < 0.1, 0.0, 1.0)
    weight[[0, 5, 6, 40, 41, 100, 1500, 2500]] = 1.0
    kept = weight > 0
    results = []
    for block in KINDS.values():
        state = Adam(5, **settings_of_adam)
        margins = run(state, LOGISTIC, block(X), y, weight, 1)[2]
        results.append((margins, weights(state, 4)[0]))
    for margins, last in results[1:]:
        np.testing.assert_array_equal(margins, results[0][0])
        np.testing.assert_array_equal(last, results[0][1])

    def slope(t, m):
        return -y[kept][t] * expit(-y[kept][t] * m)

    expected, last = naive.adam(X[kept], slope, 1, weight[kept], **settings_of_adam)
    np.testing.assert_allclose(results[0][0][kept], expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(results[0][1], last, rtol=1e-9, atol=1e-12)


def test_reading_adams_weights_changes_nothing():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(200, 4)) * (rng.random((200, 4)) < 0.1)
    y, state, other = rng.choice([-1.0, 1.0], 200), Adam(5), Adam(5)
    for i in range(200):
        block = part(as_dense(X), i, i + 1)
        one = run(state, LOGISTIC, block, y[i : i + 1], np.ones(1), 1)[2]
        assert one == run(other, LOGISTIC, block, y[i : i + 1], np.ones(1), 1)[2]
        read(other)
