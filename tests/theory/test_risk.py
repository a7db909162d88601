"""The bound on the risk covers as often as it says, wherever one stops, and is not much wider than it must be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunefree.theory.risk import Progressive


def bernoulli(rng, mean):
    return (rng.random(len(mean)) < mean).astype(float)


def beta(rng, mean):
    return rng.beta(30 * mean, 30 * (1 - mean))


@pytest.mark.parametrize(("level", "draw"), [(0.003, bernoulli), (0.5, beta)])
def test_coverage_for_models_that_change(draw, level):
    """The risk falls as models learn; the bound must hold at every power of two rows at once."""
    rng, delta, trials, n, failures = np.random.default_rng(5), 0.1, 300, 2048, 0
    risk = np.minimum(level * (1.0 + 3.0 / np.sqrt(np.arange(1, n + 1))), 1.0 - 1e-9)
    for _ in range(trials):
        losses, seen, fails = draw(rng, risk), Progressive(), False
        for start, stop in zip((0, 64, 256, 1024), (64, 256, 1024, n), strict=True):
            seen.add(np.ones(stop - start), losses[start:stop])
            mean = risk[:stop].mean()
            fails |= seen.total / stop < mean and seen.bound(delta) < mean  # no bound is below the mean of the losses
        failures += fails
    assert failures <= delta * trials


def test_coverage_when_the_risk_depends_on_the_past():
    """A martingale that is not a sum of independent losses: the risk rises after each row without an error."""
    rng, delta, trials, n, failures = np.random.default_rng(6), 0.2, 400, 300, 0
    for _ in range(trials):
        risk, errors, now = np.empty(n), np.empty(n), 0.1
        for t in range(n):
            risk[t], errors[t] = now, float(rng.random() < now)
            now = 0.1 if errors[t] else min(now * 1.2, 0.6)
        seen = Progressive()
        seen.add(np.ones(n), errors)
        failures += seen.bound(delta) < risk.mean()
    assert failures <= delta * trials


@pytest.mark.parametrize(("errors", "n", "widest"), [(0, 1000, 0.008), (100, 1000, 0.037), (5000, 50_000, 0.005)])
def test_width_for_errors(errors, n, widest):
    """Not far from the 0.003, 0.017 and 0.0022 of the Chernoff bound for one n fixed beforehand."""
    seen = Progressive()
    seen.add(np.ones(n), np.random.default_rng(0).permutation(np.arange(n) < errors))
    assert seen.bound(0.05) - errors / n < widest


@given(
    losses=st.lists(st.floats(0, 1e308), min_size=1, max_size=50),
    cut=st.integers(0, 50),
    ceiling=st.sampled_from([1.0, 10.0]),
)
def test_finite_and_the_same_wherever_it_is_cut(losses, cut, ceiling):
    whole, parts = Progressive(ceiling), Progressive(ceiling)
    whole.add(np.ones(len(losses)), losses)
    parts.add(np.ones(len(losses[:cut])), losses[:cut])
    parts.add(np.ones(len(losses[cut:])), losses[cut:])
    assert whole == parts
    assert np.minimum(losses, ceiling).mean() * (1 - 1e-12) <= whole.bound(0.01) <= ceiling
    assert whole.bound(0.2) <= whole.bound(0.01)


def test_none_with_weights_or_without_rows():
    assert Progressive().bound() is None
    seen = Progressive()
    seen.add(np.array([0.5, 1.5]), np.zeros(2))
    assert seen.bound() is None
    seen.add(np.ones(2), np.zeros(2))
    assert seen.bound() is None
