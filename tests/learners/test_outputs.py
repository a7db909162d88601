"""Beyond the contract: late classes, rows wider than Newton's matrices, and the steps that Adam missed."""

import copy
from functools import partial

import numpy as np
import pytest
from scipy.special import expit

from tests import naive
from tests.contracts import run, weights
from tests.strategies import KINDS, as_dense
from tunefree import learners, losses
from tunefree.core.fields import BLOCKS, padded
from tunefree.core.rows import Row, part
from tunefree.learners.contract import Scale, mirror
from tunefree.learners.newton import Newton
from tunefree.learners.weights import read
from tunefree.losses.objectives import Objective
from tunefree.papers.learners.adam import Adam
from tunefree.pool import passes

ALL = {name: learners.ALL[name] for name in naive.ALL}
CAN_BE_HALVED = [name for name in ALL if any(field.is_halved for field in ALL[name].fields)]


def row_of(*values):
    return Row(np.arange(4, dtype=np.uint32), np.array([1.0, *values]))


def learn(state, gradients):
    """Learn a random row for each gradient (n, K)."""
    for values, gradient in zip(np.random.default_rng(0).normal(size=(len(gradients), 3)), gradients, strict=True):
        row, of_outputs = row_of(*values), np.zeros((2, padded(state.n_outputs)))
        of_outputs[0, : state.n_outputs], of_outputs[1, : state.n_outputs] = gradient, 0.2
        state.predict(row, Scale(1.0, 1.0, 1.0), np.zeros(padded(state.n_outputs)))
        state.update(row, *of_outputs)
    return state


def margins_of(state):
    margins = np.zeros(padded(state.n_outputs))
    copy.deepcopy(state).predict(row_of(0.5, -1.0, 2.0), Scale(0.0, 1.0, 0.0), margins)
    return margins[: state.n_outputs]


def learned(learner):
    return learn(learner(4), np.random.default_rng(1).uniform(-1.0, 1.0, (20, 1)))


@pytest.mark.parametrize("name", sorted(ALL))
def test_without_a_mirror_the_margin_stays_as_it_is(name):
    state = learned(ALL[name])
    np.testing.assert_array_equal(margins_of(state.with_outputs(3, first=1)), [0.0, *margins_of(state), 0.0])


def test_first_bets_are_in_units_of_the_margin():
    bets = []
    for margin in (1.0, 3.0):
        state, row = learners.ALL["cocob"](4), row_of(0.5, -1.0, 2.0)
        state.predict(row, Scale(1.0, margin, 1.0), np.zeros(padded(1)))
        state.update(row, np.full(padded(1), 0.5), np.full(padded(1), 0.2))
        bets.append(margins_of(state))
    np.testing.assert_allclose(bets[1], 3.0 * bets[0], rtol=1e-12)
    assert bets[0] != 0.0


@pytest.mark.parametrize("name", CAN_BE_HALVED)
def test_chosen_features_are_mirrored_and_no_others(name):
    state = learned(ALL[name]).with_outputs(3, first=1)
    before = state.arrays()
    mirror(state, np.array([2]))
    for field in state.fields:
        changed = state[field.name] != before.get(field.name, state[field.name])
        assert not changed.any() or field.parity or field.is_halved
        assert not np.delete(changed, 2, axis=0).any() if "feature" in field.axes else not changed.any()


def test_a_late_output_of_newton_steps_learns():
    state = learned(partial(Newton, variance=3.0)).with_outputs(3, first=1)
    assert np.diagonal(state.covariance[2]).tolist() == [3.0] * 4
    before = margins_of(state)
    after = margins_of(learn(state, np.tile([0.0, 0.0, 0.5], (5, 1))))
    assert after[2] != 0.0 and after[0] == before[0]


N_ROWS, N_OUTPUTS, N_FEATURES = 12, 10, 401


def among_others(numbers):
    """The numbers, followed in memory by others that are not numbers."""
    memory = np.append(numbers, np.full(N_FEATURES**2, np.nan))
    return memory[: numbers.size].reshape(numbers.shape)


def newton_learned(state):
    X, y = np.zeros((N_ROWS, N_FEATURES - 1)), np.arange(N_ROWS) % float(N_OUTPUTS)
    X[:, :100] = np.random.default_rng(0).normal(size=(N_ROWS, 100))
    predictions = np.zeros((N_ROWS, N_OUTPUTS))
    passes.learn(state, Objective("classification"), as_dense(X), y, np.ones(N_ROWS), predictions)
    return np.vstack([predictions, state["weights"][:100]])


def test_zeros_beyond_the_matrices_read_nothing():
    state = Newton(N_FEATURES, N_OUTPUTS)
    assert state.covariance.shape[1] < N_FEATURES  # an array of its own, as corrections and directions
    memory, state = state.__getstate__(), Newton.__new__(Newton)
    arrays = memory["blocks"][len(BLOCKS) :]
    state.__setstate__({**memory, "blocks": [*memory["blocks"][: len(BLOCKS)], *map(among_others, arrays)]})
    predictions = newton_learned(state)
    assert np.isfinite(predictions).all() and predictions[1:].any()
    assert np.array_equal(predictions, newton_learned(Newton(N_FEATURES, N_OUTPUTS)))


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

    def slope(t, m):
        return -y[kept][t] * expit(-y[kept][t] * m)

    expected, last = naive.adam(X[kept], slope, 1, weight[kept], **settings_of_adam)
    results = []
    for block in KINDS.values():
        state = Adam(5, **settings_of_adam)
        results.append((run(state, LOGISTIC, block(X), y, weight, 1)[2], weights(state, 4)[0]))
        np.testing.assert_allclose(results[-1][0][kept], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(results[-1][1], last, rtol=1e-9, atol=1e-12)
        np.testing.assert_equal(results[-1], results[0])


def test_reading_adams_weights_changes_nothing():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(200, 4)) * (rng.random((200, 4)) < 0.1)
    y, state, other = rng.choice([-1.0, 1.0], 200), Adam(5), Adam(5)
    for i in range(200):
        block = part(as_dense(X), i, i + 1)
        one = run(state, LOGISTIC, block, y[i : i + 1], np.ones(1), 1)[2]
        assert one == run(other, LOGISTIC, block, y[i : i + 1], np.ones(1), 1)[2]
        read(other)
