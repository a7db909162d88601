"""Shares of frozen candidates that predict numbers: the bound, the formulas, and what losses and sizes may be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunefree.losses import loss_of, objectives
from tunefree.losses.objectives import measured
from tunefree.model import ml_prod
from tunefree.model.ml_prod import excess
from tunefree.model.soft_bayes import Deployed, prior_of

N = 3  # members


def objective_of(loss):
    return objectives.regression(loss_of("regression", loss))


def deployed_of(mixture, limit=np.inf):
    shares, every = np.concatenate([mixture, 0.0 * mixture], axis=1), np.ones(len(mixture))
    return Deployed(mixture, shares, every, every, -limit * every, limit * every)


@st.composite
def judged(draw):
    """Targets, weights, and what copies predicted, in any units; some candidates are always near the target."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, copies = draw(st.integers(1, 150)), draw(st.integers(1, 2))
    size = 10.0 ** draw(st.sampled_from([-3, 0, 4]))
    y = size * rng.standard_t(2, n)
    spread = 10.0 ** rng.uniform(-2, draw(st.sampled_from([0, 3])), (copies, 2 * N, 1, 1))
    predictions = y[None, None, :, None] + size * spread * rng.normal(0.3, 1.0, (copies, 2 * N, n, 1))
    weight = 10.0 ** rng.uniform(-3, 3, n) if draw(st.booleans()) else np.ones(n)
    return y, weight, predictions, rng.dirichlet(np.ones(N), copies)


def judge(rule, stream, loss="square", limit=np.inf):
    y, weight, predictions, mixture = stream
    losses = np.empty((len(predictions), len(y)))
    ml_prod.judge(rule, objective_of(loss), y, weight, deployed_of(mixture, limit), predictions, losses)
    return losses


@given(judged(), st.sampled_from(["square", "absolute"]))
@settings(deadline=None)
def test_the_shares_lose_no_more_than_the_theorem_says(stream, loss):
    rule = ml_prod.create(prior_of(N))
    judge(rule, stream, loss)
    assert rule.rounds == len(stream[0]) * len(stream[2]) and rule.means.sum() == pytest.approx(1.0)
    assert (rule.weights > 0.0).all()
    for c, prior in enumerate(prior_of(N)):
        assert rule.loss - rule.losses[c] <= excess(rule, c, prior) * (1.0 + 1e-9) + 1e-9 * rule.losses[c]
        assert rule.costs[c] <= 4.0 * np.sqrt(rule.squares[c]) * (1.0 + 1e-9)


@given(judged())
@settings(deadline=None, max_examples=20)
def test_losses_and_shares_are_those_of_the_formulas(stream):
    y, weight, predictions, mixture = stream
    objective, prior = objective_of("square"), prior_of(N)
    rule = ml_prod.create(prior)
    losses = judge(rule, stream)
    weights, rates, squares, total, largest = prior.copy(), None, np.zeros(2 * N + 1), 0.0, 0.0
    for row in range(len(y)):
        for s in range(len(predictions)):
            own = predictions[s, :, row, 0]
            own = np.concatenate([[mixture[s] @ own[:N]], own])
            shares = (weights if rates is None else rates * weights) / (
                weights if rates is None else rates * weights
            ).sum()
            mixed = shares @ own
            total += weight[row] * (mixed - y[row]) ** 2 * measured(objective, np.ones(1), np.zeros((1, 1)))[0]
            slope = 2.0 * (mixed - y[row]) * measured(objective, np.ones(1), np.zeros((1, 1)))[0]
            gains = weight[row] * slope * (mixed - own)
            before, largest = largest, max(largest, np.abs(gains).max())
            gains = gains * (before / largest) if largest else gains
            if rates is not None:
                weights = weights * (1.0 + rates * gains)
            squares = squares + gains**2
            after = 2.0 / np.sqrt(16.0 * largest**2 + squares) if largest else None
            if rates is not None:
                weights = after / rates * weights + (1.0 - after / rates) * prior
            rates = after
            assert losses[s, row] == pytest.approx(measured(objective, y[row : row + 1], own[:1, None])[0], rel=1e-9)
    np.testing.assert_allclose(rule.weights, weights, rtol=1e-6)
    assert rule.loss == pytest.approx(total, rel=1e-6)


def test_candidates_that_are_dropped_leave_the_bound_to_the_others():
    rng = np.random.default_rng(0)
    y = rng.normal(size=400)
    predictions = y[:, None] + np.linspace(1.0, 0.1, 2 * N)[:, None, None] * rng.normal(size=(1, 2 * N, 400, 1))
    rule, weight = ml_prod.create(prior_of(N)), np.ones(400)
    judge(rule, (y[:200], weight[:200], predictions[:, :, :200], np.array([[0.5, 0.25, 0.25]])))
    both = np.array([True, False, True] * 2)
    rule = ml_prod.without(rule, np.concatenate([[True], both]))
    rest = np.ascontiguousarray(predictions[:, both, 200:])
    judge(rule, (y[200:], weight[200:], rest, np.array([[0.5, 0.5]])))
    for c, prior in enumerate(prior_of(N)[1:][both], start=1):
        assert rule.loss - rule.losses[c] <= excess(rule, c, prior)


def test_a_candidate_that_is_clearly_better_is_found_and_numbers_stay_within_what_was_known():
    rng = np.random.default_rng(0)
    y = rng.normal(size=2000)
    predictions = (
        y[:, None] + rng.normal(size=(1, 2 * N, 2000, 1)) * np.where(np.arange(2 * N) == 4, 0.1, 1.0)[:, None, None]
    )
    stream, rule = (y, np.ones(2000), predictions, np.full((1, N), 1.0 / N)), ml_prod.create(prior_of(N))
    judge(rule, stream)
    assert rule.means.argmax() == 5 and rule.means[5] > 0.9
    far, clipped = predictions.copy(), ml_prod.create(prior_of(N))
    far[0, 0] = 1e200
    judge(clipped, (y, np.ones(2000), far, stream[3]), limit=4.0)
    assert clipped.losses.max() < 2000 * 8.0**2 and clipped.means.argmax() == 5


def test_numbers_of_any_size_are_no_nan():
    rule, y = ml_prod.create(prior_of(N)), np.array([1e-200, 1e300, -1e300, 0.0, 1.0])
    predictions = np.random.default_rng(0).choice([1e300, -1e300, 1e-300, 0.0], (1, 2 * N, 5, 1))
    judge(rule, (y, np.full(5, 1e3), predictions, np.full((1, N), 1.0 / N)))
    assert all(np.isfinite(array).all() for array in rule)
