"""Which of two predictors is better: false alarms, power, and that nothing depends on how rows are divided."""

from __future__ import annotations

from dataclasses import asdict, astuple

import numpy as np
import pytest

from tunefree.theory.superiority import LEVEL, Superiority


def compared(first, second, weight=None):
    comparison = Superiority()
    comparison.add(first, second, np.ones(len(first)) if weight is None else weight)
    return comparison


def ever_better(first, second, step=50):
    comparison, decisions = Superiority(), []
    for start in range(0, len(first), step):
        comparison.add(*(losses[start : start + step] for losses in (first, second, np.ones(len(first)))))
        decisions.append((comparison.is_first_better(), comparison.is_second_better()))
    return np.any(decisions, axis=0)


def test_alike_ones_are_not_told_apart():
    """Looked at all along, equal, skewed and dependent losses: the level holds with much room."""
    rng, n_alarms = np.random.default_rng(0), 0
    for number in range(200):
        common, noise = rng.exponential(size=2000), rng.standard_t(3, size=(2, 2000))
        losses = [np.abs(common + 0.3 * part) for part in noise]
        losses = [np.cumsum(part) % 3.0 for part in losses] if number % 3 == 0 else losses
        n_alarms += ever_better(*losses).any()
    assert n_alarms <= 200 * LEVEL + 1


def test_an_advantage_that_goes_on_average_to_nothing_is_none():
    """One is better in the first half, the other in the second by as much: the sum counts."""
    rng = np.random.default_rng(1)
    better = rng.exponential(size=4000)
    worse = better + 0.2 * rng.uniform(size=4000)
    half = np.arange(4000) < 2000
    comparison = compared(np.where(half, better, worse), np.where(half, worse, better))
    assert not comparison.is_first_better() and not comparison.is_second_better()


def test_the_better_one_is_known_soon():
    rng = np.random.default_rng(2)
    better = rng.exponential(size=20_000)
    worse = better * np.exp(0.05 + 0.3 * rng.normal(size=20_000))
    assert list(ever_better(better, worse)) == [True, False]
    assert list(ever_better(worse, better)) == [False, True]


def test_one_row_of_a_huge_loss_decides_nothing():
    losses = np.full(100, 0.5)
    huge = np.where(np.arange(100) == 50, 1e300, losses)
    comparison = compared(huge, losses)
    assert not comparison.is_second_better() and np.isfinite(comparison.log_evidence()).all()


def test_nothing_depends_on_batches_units_or_which_is_the_first():
    rng = np.random.default_rng(3)
    first, second, weight = rng.exponential(size=(3, 500))
    weight[::7], first[::11] = 0.0, np.nan
    whole = compared(first, second, weight)
    parts = Superiority()
    for start in range(0, 500, 37):
        parts.add(*(losses[start : start + 37] for losses in (first, second, weight)))
    assert astuple(parts) == astuple(whole) and Superiority(**asdict(whole)) == whole
    assert compared(second, first, weight).log_evidence() == pytest.approx(whole.log_evidence()[::-1])
    scaled = compared(1024.0 * first, 1024.0 * second, weight)
    assert scaled.log_evidence() == whole.log_evidence()


def test_no_rows_and_no_losses():
    nothing = compared(np.zeros(0), np.zeros(0))
    assert np.isnan(nothing.means()).all() and nothing.log_evidence() == (0.0, 0.0)
    assert compared(np.zeros(50), np.zeros(50)).log_evidence() == (0.0, 0.0)
    assert compared(np.zeros(50), np.zeros(50)).means() == (0.0, 0.0)
