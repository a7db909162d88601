"""Quantiles of scores cover as often as they say, and levels that follow a stream keep their bound."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunefree.core.rows import dense, sparse
from tunefree.intervals.adaptive import BUDGET, FINEST, LATEST, N_STEPS, Adaptive, follow, most_missed
from tunefree.intervals.conformal import quantile, recency, wider
from tunefree.intervals.conformal_record import COVERAGES, TAILS
from tunefree.intervals.learning_curve import LearningCurve, rows_learned
from tunefree.intervals.sets import PENALTY, class_scores, draws_of


@given(st.integers(1, 60), st.sampled_from([0.05, 0.1, 0.5, 0.8, 0.9, 0.95]))
def test_a_new_score_is_below_the_quantile_as_often_as_asked_for(n, level):
    """Its rank among n + 1 exchangeable scores is uniform, so the share of places below the quantile is known."""
    scores = np.arange(1.0, n + 1.0)
    bound = quantile(scores, np.ones(n), level)
    new = np.arange(n + 1) + 0.5  # one in each gap between scores
    is_within = new >= bound if level < 0.5 else new <= bound
    share, asked = is_within.mean(), max(level, 1.0 - level)
    assert asked - 1e-12 <= share < asked + 1.0 / (n + 1) - 1e-12 or (share == 1.0 and math.isinf(bound))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30), st.floats(0.01, 0.99), st.integers(1, 4))
def test_a_weight_is_so_many_copies(scores, level, copies):
    array = np.array(scores)
    weighted = quantile(array, np.full(len(array), float(copies)), level)
    assert weighted == quantile(np.repeat(array, copies), np.ones(copies * len(array)), level)


def test_other_scores_count_only_where_they_are_surely_wider():
    rng = np.random.default_rng(1)
    for level in (0.05, 0.95):
        bound = quantile(rng.normal(size=2000), np.ones(2000), level)
        assert wider(bound, rng.normal(size=500), np.ones(500), level) == bound
        far = 2.0 * rng.normal(size=500)
        assert wider(bound, far, np.ones(500), level) == quantile(far, np.ones(500), level)
        assert wider(bound, 0.1 * far, np.ones(500), level) == bound
        assert wider(bound, far[:3], np.ones(3), level) == bound


def naive(targets, scores):
    """The levels and counts of Gibbs and Candes, with the sum of errors of Angelopoulos and others, as they stand."""
    levels = [[target] * N_STEPS for target in targets]
    weights, below, latest = [[1.0 / N_STEPS] * N_STEPS for _ in targets], [0.0] * len(targets), []
    for t, score in enumerate(scores):
        ordered, n = sorted(latest), len(latest)
        for j, tau in enumerate(targets):
            tail = min(tau, 1.0 - tau)
            part = min(max((tau * t - below[j]) / BUDGET, -1.0), 1.0)
            played = sum(w * a for w, a in zip(weights[j], levels[j], strict=True)) + 2.0 * tail * part * part * part
            count = sum(other <= score for other in latest) if tau < 0.5 else 1 + sum(other < score for other in latest)
            levels[j], weights[j] = experts(ordered, tau, levels[j], weights[j], score, count / (n + 1.0))
            below[j] += is_under(ordered, tau, played, score)
        latest = [*latest, score][-LATEST:]
    return np.array(levels), np.array(weights), np.array(below)


def experts(ordered, tau, levels, weights, score, beta):
    """Their next levels and weights."""
    tail, sigma = min(tau, 1.0 - tau), 1.0 / (2.0 * LATEST)
    spread = (1.0 - tail) ** 2 * tail**3 + (1.0 - tail) ** 3 * tail**2
    eta = math.sqrt(3.0 / LATEST * (math.log(N_STEPS * LATEST) + 2.0) / spread)
    losses = [max(tau * (beta - a), (tau - 1.0) * (beta - a)) for a in levels]
    new = [w * math.exp(-eta * loss) for w, loss in zip(weights, losses, strict=True)]
    moved = [a + FINEST * 2**k * tail * (tau - is_under(ordered, tau, a, score)) for k, a in enumerate(levels)]
    kept = [min(max(a, tau - tail), tau + tail) for a in moved]
    return kept, [(1.0 - sigma) * w / sum(new) + sigma / N_STEPS for w in new]


def is_under(ordered, target, level, score):
    """Whether a score is below the quantile of a level of others."""
    n, is_low = len(ordered), target < 0.5
    if level <= 0.0 or (is_low and math.floor(target * (n + 1) + 1e-9) < 1):
        return False
    if level >= 1.0 or (not is_low and math.ceil(target * (n + 1) - 1e-9) > n):
        return True
    rank = math.floor(level * (n + 1) + 1e-9) if is_low else math.ceil(level * (n + 1) - 1e-9)
    bound = ordered[min(max(rank, 1), n) - 1]
    return score < bound if is_low else score <= bound


@pytest.mark.parametrize("kind", ["normal", "equal", "few values", "rising", "falling"])
def test_levels_equal_the_formula(kind):
    n, rng = LATEST + 300, np.random.default_rng(2)
    scores = {
        "normal": rng.normal(size=n),
        "equal": np.ones(n),
        "few values": rng.integers(0, 4, n).astype(float),
        "rising": np.arange(float(n)),
        "falling": -np.arange(float(n)),
    }[kind]
    state = Adaptive.create(TAILS)
    follow(state, scores)
    levels, weights, below = naive(TAILS, scores.tolist())
    np.testing.assert_array_equal(state.below, below)
    np.testing.assert_allclose(state.weights, weights, rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(state.levels, levels, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(state.weights.sum(axis=1), 1.0)
    np.testing.assert_array_equal(state.ordered, np.sort(scores[-LATEST:]))


@pytest.mark.parametrize("opponent", ["above", "below", "changing", "just beyond"])
def test_no_stream_is_missed_more_often_than_the_bound_says(opponent):
    state, rng = Adaptive.create(TAILS), np.random.default_rng(3)
    for t in range(3000):
        score = {
            "above": float(t) ** 2,
            "below": -(float(t) ** 2),
            "changing": (-1.0) ** (t // 300) * 10.0 ** (t // 100) * rng.normal(),
            "just beyond": np.nextafter(state.quantile(0.95), math.inf) if math.isfinite(state.quantile(0.95)) else 0.0,
        }[opponent]
        follow(state, np.array([score]))
        for target, below in zip(TAILS, state.below, strict=True):
            missed = below if target < 0.5 else t + 1 - below
            assert missed <= most_missed(target, t + 1)


def test_quantiles_of_a_stationary_stream_are_near_quantiles_of_its_scores():
    state, scores = Adaptive.create(TAILS), np.random.default_rng(4).normal(size=20_000)
    follow(state, scores)
    for coverage in COVERAGES:
        levels = (1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0
        covered = state.below[TAILS.index(levels[1])] - state.below[TAILS.index(levels[0])]
        assert covered / len(scores) == pytest.approx(coverage, abs=0.003)
    assert [Adaptive.create(TAILS).quantile(level) for level in (0.05, 0.95)] == [-math.inf, math.inf]
    between = [state.quantile(level) for level in (0.1, 0.15, 0.25)]
    assert between == sorted(between)


def test_scores_of_classes_are_uniform_where_probabilities_are_right():
    rng = np.random.default_rng(5)
    probabilities = rng.dirichlet(np.ones(5), 20_000)
    y = (rng.random((20_000, 1)) > probabilities.cumsum(axis=1)).sum(axis=1)
    draws = draws_of(dense(rng.normal(size=(20_000, 2))))
    scores = class_scores(np.log(probabilities), draws)
    assert ((scores >= 0.0) & (scores <= 1.0 + 1e-12)).all()
    adaptive = (scores - PENALTY * (1.0 - probabilities)) / (1.0 - PENALTY)
    of_rows = np.sort(adaptive[np.arange(20_000), y])
    assert np.abs(of_rows - np.arange(20_000) / 20_000).max() < 0.02  # Kolmogorov and Smirnov: .0096 at 5 %
    assert len(set(draws_of(sparse([0, 1, 2, 3], [1, 2, 2], [1.0, 1.0, 2.0])).tolist())) == 3


def test_a_learning_curve_is_the_power_law_of_its_rows_less_a_standard_error():
    rng, numbers = np.random.default_rng(7), np.arange(33, 6001)
    means = (rows_learned(numbers) / 6000.0) ** -0.1
    for noise, most in ((0.0, 0.01), (0.5, 0.06)):
        roots = means * np.maximum(1.0 + noise * rng.normal(size=len(means)), 0.0)
        curve = LearningCurve.fitted(numbers, roots, recency(numbers), 6000)
        factor, expected = curve.factors(np.array([6000]))[0], (6000 / 4096) ** -0.1
        assert expected - 0.01 < factor < expected + most
        np.testing.assert_allclose(curve.factors(np.array([33]))[0] < factor, True)


def test_a_learning_curve_is_flat_where_chance_explains_it_and_rises_where_the_world_changes():
    rng, numbers = np.random.default_rng(8), np.arange(33, 4001)
    weights, even = recency(numbers), np.abs(rng.normal(size=len(numbers)))
    flat = [LearningCurve.fitted(numbers, rng.permutation(even), weights, 4000).slope == 0.0 for _ in range(100)]
    assert 50 < sum(flat) < 86  # 68 are expected
    rising = LearningCurve.fitted(numbers, (1.0 + numbers / 4000.0) * even, weights, 4000)
    assert rising.factors(np.array([4000]))[0] > 1.1
    for roots in (np.zeros(len(numbers)), np.full(len(numbers), 1e75)):
        assert LearningCurve.fitted(numbers, roots, weights, 4000).factors(numbers) == pytest.approx(1.0)
    for n in (0, 1):
        assert LearningCurve.fitted(numbers[:n], even[:n], weights[:n], n).slope == 0.0
