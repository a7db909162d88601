"""The batch phase: L-BFGS, exact gradients over blocks in threads, stopped paths, and members that stand still."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

from tunefree import TuneFreeClassifier, TuneFreeRegressor
from tunefree.core import threads
from tunefree.core.rows import dense, sparse, table
from tunefree.estimators import pooled
from tunefree.losses import Logistic, Square
from tunefree.losses.objectives import Binary, Multinomial, regression
from tunefree.model import batch, batch_rows, lbfgs
from tunefree.model.batch_rows import BatchRows, inverses, matrix
from tunefree.model.mixture import Mixture, joined
from tunefree.model.standing import LEARNER, StandingMember

NUMBERS = regression(Square())._replace(unit=2.0, centre=0.25)
OBJECTIVES = {1: Binary(Logistic(), 0.0), 3: Multinomial(1.0)}


def problem(n=500, d=4, n_outputs=1, seed=0):
    """Rows, and classes that follow them but for noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if n_outputs == 1:
        return X, np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    return X, (X[:, :n_outputs] + rng.normal(size=(n, n_outputs))).argmax(axis=1).astype(float)


def rows_of(X, y, weight=None, cuts=()):
    edges = [0, *cuts, len(y)]
    weight = np.ones(len(y)) if weight is None else weight
    parts = [(dense(X[a:b]), y[a:b], weight[a:b]) for a, b in zip(edges, edges[1:], strict=False)]
    return BatchRows(parts, X.shape[1] + 1, 3 if y.max() > 1 else 1)


def test_lbfgs_finds_the_minimum_that_scipy_finds():
    def rosenbrock(x):
        return float(100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2), np.array(
            [-400 * x[0] * (x[1] - x[0] ** 2) - 2 * (1 - x[0]), 200 * (x[1] - x[0] ** 2)]
        )

    start = np.array([-1.2, 1.0])
    *_, found = lbfgs.iterates(rosenbrock, start, 1e-3)
    np.testing.assert_allclose(found, minimize(rosenbrock, start, jac=True).x, atol=1e-4)
    values = [rosenbrock(point)[0] for point in lbfgs.iterates(rosenbrock, start, 1e-3)]
    assert all(later < before for before, later in zip(values, values[1:], strict=False))


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_gradient_is_that_of_the_sum_of_the_losses(n_outputs):
    X, y = problem(60, n_outputs=n_outputs)
    rows, objective = rows_of(X, y, np.linspace(0.5, 2.0, 60)), OBJECTIVES[n_outputs]
    rng = np.random.default_rng(1)
    weights, inverse = rng.normal(size=(5, n_outputs)), np.array([1.0, 0.5, 2.0, 1.0, 3.0])
    loss, gradient = rows.gradient(objective, weights, inverse)
    for j, k in np.ndindex(weights.shape):
        moved = weights.copy()
        moved[j, k] += 1e-2
        assert rows.gradient(objective, moved, inverse)[0] - loss == pytest.approx(1e-2 * gradient[j, k], abs=2e-2)


def test_blocks_of_any_size_and_any_number_of_threads_give_the_same_bytes(monkeypatch):
    monkeypatch.setattr(batch_rows, "PIECE", 128)
    X, y = problem(1000)
    weights, inverse = np.ones((5, 1)), np.ones(5)
    found = []
    for cuts, n_threads in (((), 1), ((1, 300, 900), 1), ((500,), 3)):
        with threads.at_most(n_threads):
            found.append(rows_of(X, y, cuts=cuts).gradient(OBJECTIVES[1], weights, inverse))
    for loss, gradient in found[1:]:
        assert loss == found[0][0]
        np.testing.assert_array_equal(gradient, found[0][1])


def test_a_path_of_many_weights_does_not_depend_on_threads_of_products():
    """BLAS cuts products of vectors into parts from 10,000 numbers on."""
    random, d = np.random.default_rng(0), 40_000
    y = random.choice([-1.0, 1.0], 600)
    features = random.integers(1, d, (600, 100))
    X = sparse(np.arange(601) * 100, features.reshape(-1), random.normal(size=60_000) + np.repeat(y, 100))
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "blas"):
            rows = BatchRows([(X, y, np.ones(600))], d, 1)
            stopped = batch.stopped(rows, rows, OBJECTIVES[1], np.zeros((d, 1)))
            followed, _ = batch.followed(rows, OBJECTIVES[1], np.zeros((d, 1)), stopped.stages)
            found.append(stopped.weights.tobytes() + followed.tobytes())
    assert stopped.iterations > 5 and found[0] == found[1]


def test_rows_of_all_kinds_are_the_same_matrix():
    X = np.array([[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]])
    words = sparse([0, 2, 3], [1, 3, 2], [1.0, 3.0, 2.0])
    of_table = table(X[:, :1], [1], [[3], [0]], sparse([0, 1, 2], [2, 2], [5.0, 2.0]))
    expected = np.column_stack([np.ones(2), X])
    np.testing.assert_array_equal(matrix(dense(X), 4), expected)
    np.testing.assert_array_equal(matrix(words, 4).toarray(), expected)
    np.testing.assert_array_equal(matrix(of_table, 4).toarray(), [[1, 1, 5, 1], [1, 0, 2, 0]])
    assert np.isfinite(matrix(dense([[1e300, -1e300]]), 3)).all()


@pytest.mark.parametrize("scale", [1e-20, 1e20])
def test_the_path_does_not_depend_on_the_units_of_columns(scale):
    X, y = problem(400)
    losses = []
    for factor in (1.0, scale):
        learned, held = rows_of(factor * X[:300], y[:300]), rows_of(factor * X[300:], y[300:])
        losses.append(batch.stopped(learned, held, OBJECTIVES[1], np.zeros((5, 1))).loss)
    assert losses[0] < 0.9 * np.log(2.0)
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


def test_a_path_that_is_followed_on_the_same_rows_ends_where_it_was_stopped():
    X, y = problem(600)
    learned, held = rows_of(X[:400], y[:400]), rows_of(X[400:], y[400:])
    found = batch.stopped(learned, held, OBJECTIVES[1], np.zeros((5, 1)))
    weights, units = batch.followed(learned, OBJECTIVES[1], np.zeros((5, 1)), found.stages)
    np.testing.assert_array_equal(weights, found.weights)
    assert found.loss == held.loss(OBJECTIVES[1], weights, inverses(units))
    assert found.iterations == sum(stage.iterations for stage in found.stages) > 0


def test_a_row_held_out_that_is_far_away_does_not_stop_the_path():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X @ np.array([1.0, -2.0, 0.5]) + 0.1 * rng.normal(size=600)
    learned, start = rows_of(X[:400], y[:400]), np.zeros((4, 1))
    far = X[400:].copy()
    far[7, 1] = 1e5  # of which every step predicts what no target is
    ends = [batch.stopped(learned, rows_of(held, y[400:]), NUMBERS, start) for held in (X[400:], far)]
    assert [own.loss < 0.1 * y.var() for own in ends] == [True, True]
    assert learned.limits(NUMBERS) == (y[:400].min(), y[:400].max())
    weighted = rows_of(X[:400], y[:400], (np.arange(400) < 100).astype(float))
    assert weighted.limits(NUMBERS) == (y[:100].min(), y[:100].max())


def test_the_path_is_no_worse_than_its_start():
    X, y = problem(300)
    learned, held = rows_of(X[:200], -y[:200]), rows_of(X[200:], y[200:])  # what is learned is wrong
    start = np.array([[0.0], [-1.0], [0.0], [0.0], [0.0]])
    found = batch.stopped(learned, held, OBJECTIVES[1], start)
    assert found.loss <= held.loss(OBJECTIVES[1], start, np.ones(5))


def test_numbers_of_an_extreme_size_have_no_batch_phase():
    assert batch.suits(NUMBERS)
    assert not batch.suits(NUMBERS._replace(unit=2.0**-900))
    assert not batch.suits(NUMBERS._replace(unit=0.0))
    assert not batch.suits(NUMBERS._replace(spread=1e149))


def test_others_that_join_a_mixture_get_half_of_it():
    mixture = Mixture.for_task("classification", 2)
    mixture.shares[:] = 0.75, 0.25
    found = joined(mixture, np.array([False, True, False]))
    np.testing.assert_allclose(found.shares, [0.375, 0.5, 0.125])
    found.shares[:] = 0.0
    np.testing.assert_allclose(mixture.shares, [0.75, 0.25])


@pytest.mark.parametrize("n_columns", [400, 401], ids=["narrow", "wide"])
def test_rows_of_more_columns_than_rows_are_gone_through_by_passes(n_columns, monkeypatch):
    monkeypatch.setattr(pooled, "MANY", 100)
    X, y = problem(400)
    wide = np.column_stack([X, np.zeros((400, n_columns - X.shape[1]))])
    found = TuneFreeClassifier(kernel=False).fit(csr_array(wide), y)
    of_members = [
        own
        for own, member in zip(found.passes_, found._learned.model.members, strict=True)
        if not isinstance(member, StandingMember)
    ]
    assert (max(of_members) == 1) == (n_columns == 400)


def test_a_start_that_large_ridges_lead_away_from_is_improved_by_small_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    y = np.where(X @ np.array([4.0, -4.0, 2.0, 0.0]) + 0.3 * rng.normal(size=900) > 0, 1.0, -1.0)
    learned, held = rows_of(X[:600], y[:600]), rows_of(X[600:], y[600:])
    start = np.array([[0.0], [4.0], [-4.0], [2.0], [0.5]])
    found = batch.stopped(learned, held, OBJECTIVES[1], start)
    of_start = held.loss(OBJECTIVES[1], start, np.ones(5))
    assert found.loss < 0.9 * of_start and found.stages[0].ridge < batch.RIDGES[0]
    weights, units = batch.followed(learned, OBJECTIVES[1], start, found.stages)
    assert found.loss == held.loss(OBJECTIVES[1], weights, inverses(units))


@pytest.mark.parametrize("many", [100, 10_000], ids=["one pass", "several passes"])
@pytest.mark.parametrize("cls", [TuneFreeClassifier, TuneFreeRegressor])
def test_members_of_the_batch_phase_stand_still_while_others_learn_on(cls, many, monkeypatch):
    monkeypatch.setattr(pooled, "MANY", many)
    X, y = problem(400)
    found = cls(n_jobs=1).fit(X, y)
    standing = [own for own in found._learned.model.members if isinstance(own, StandingMember)]
    assert [own.setting.learner for own in standing] == [LEARNER, LEARNER]
    np.testing.assert_array_equal(found.predict(X), cls(n_jobs=2).fit(X, y).predict(X))
    weights = [own.weights(own.room, 1)[0].copy() for own in standing]
    found.partial_fit(X[:50], y[:50])
    for own, before in zip(standing, weights, strict=True):
        np.testing.assert_array_equal(own.weights(own.room, 1)[0], before)
    assert found.t_ >= 450
