"""What Newton steps do with rows wider than their matrices."""

import numpy as np

from tests.strategies import as_dense
from tunefree.core.fields import BLOCKS
from tunefree.learners.newton import Newton
from tunefree.losses.objectives import Objective
from tunefree.pool.passes import learn

N_ROWS, N_OUTPUTS, N_FEATURES = 12, 10, 401


def among_others(numbers):
    """The numbers, followed in memory by others that are not numbers."""
    memory = np.full(numbers.size + N_FEATURES**2, np.nan)
    view = memory[: numbers.size].reshape(numbers.shape)
    view[...] = numbers
    return view


def learned(state):
    X, y = np.zeros((N_ROWS, N_FEATURES - 1)), np.arange(N_ROWS) % float(N_OUTPUTS)
    X[:, :100] = np.random.default_rng(0).normal(size=(N_ROWS, 100))
    predictions = np.zeros((N_ROWS, N_OUTPUTS))
    learn(state, Objective("classification"), as_dense(X), y, np.ones(N_ROWS), predictions)
    return np.vstack([predictions, state["weights"][:100]])


def test_zeros_beyond_the_matrices_read_nothing():
    state = Newton(N_FEATURES, N_OUTPUTS)
    assert state.covariance.shape[1] < N_FEATURES  # an array of its own, as corrections and directions
    memory, state = state.__getstate__(), Newton.__new__(Newton)
    arrays = memory["blocks"][len(BLOCKS) :]
    state.__setstate__({**memory, "blocks": [*memory["blocks"][: len(BLOCKS)], *map(among_others, arrays)]})
    predictions = learned(state)
    assert np.isfinite(predictions).all() and predictions[1:].any()
    assert np.array_equal(predictions, learned(Newton(N_FEATURES, N_OUTPUTS)))
