"""Bounds on risks, and the test of rising losses: how often they are wrong, and independent of batches."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunefree.core.part import restored
from tunefree.theory.rises import LEVEL, MOST_KEPT, LossRises, Place
from tunefree.theory.risk import Progressive


@pytest.mark.parametrize(
    ("level", "draw"),
    [
        (0.003, lambda rng, mean: (rng.random(len(mean)) < mean).astype(float)),
        (0.5, lambda rng, mean: rng.beta(30 * mean, 30 * (1 - mean))),
    ],
)
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
    seen = Progressive()
    assert seen.bound() is None
    for weight in ([0.5, 1.5], [1.0, 1.0]):
        seen.add(np.array(weight), np.zeros(2))
        assert seen.bound() is None


def _place(rows, index):
    return Place(int(rows[index]) + 1, "a.csv", int(rows[index]) + 1)


def looked_at(losses, weight=None, scale=1.0, cuts=(), first=0, test=None):
    """The rises of losses that are used, of rows from number ``first`` on."""
    test, start = test or LossRises(), first
    weight = np.ones(len(losses)) if weight is None else weight
    used = np.flatnonzero((weight > 0.0) & ~np.isnan(losses))
    for stop in (*cuts, len(losses)):
        rows = used[(used >= start) & (used < stop)]
        while len(rows):
            n_seen = test.add(losses[rows], weight[rows], np.full(len(rows), scale), partial(_place, rows)).rows
            rows = rows[n_seen:]
        start = stop
    return test


@pytest.mark.parametrize("before", [0.0, 1.0])
def test_a_rise_after_equal_losses_begins_where_they_end(before):
    [rise] = looked_at(np.repeat([before, 3.0], 500)).rises
    assert (rise.row, rise.loss, rise.rows_before, rise.loss_before) == (501, 3.0, 500, before)


@pytest.mark.parametrize(("factor", "count"), [(1.08, 0), (1.15, 1)])
def test_small_rises_do_not_matter(factor, count):
    losses = 1.0 + np.random.default_rng(0).random(4000)
    losses[500:] *= factor
    assert looked_at(losses, scale=0.1).count == count


def losses_of_a_learned_share(rng, n):
    """Log-losses of the running share of a class of 10 %."""
    is_rare = rng.random(n) < 0.1
    share = (np.cumsum(is_rare) - is_rare + 0.5) / np.arange(1, n + 1)
    return -np.log(np.where(is_rare, share, 1.0 - np.minimum(share, 0.99)))


DRAWS = {
    "a share": losses_of_a_learned_share,
    "exponential": lambda rng, n: rng.exponential(size=n),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n) ** 2,
    "rare": lambda rng, n: np.where(rng.random(n) < 0.04, 4.0, 0.01) * rng.random(n),
    "ties": lambda rng, n: rng.integers(3, size=n).astype(float),
    "falling": lambda rng, n: rng.exponential(size=n) / (1.0 + np.arange(n) / 300.0),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_false_alarms_are_as_rare_as_stated(kind):
    counts = [looked_at(DRAWS[kind](np.random.default_rng(seed), 1500)).count for seed in range(400)]
    assert sum(counts) <= 4  # 0.4 are to be expected at most; more than 4 with a probability of 1e-4
    assert LEVEL == 0.001


def test_a_rise_is_seen_where_it_begins_with_the_losses_before_and_after():
    rng = np.random.default_rng(0)
    losses_after = []
    for _ in range(20):
        (rise,) = looked_at(np.concatenate([0.5 * rng.exponential(size=700), 1.5 * rng.exponential(size=300)])).rises
        assert abs(rise.row - 701) < 50 and rise.row_in_file == rise.row and rise.file == "a.csv"
        assert rise.rows_before == rise.row - 1 and rise.row + rise.rows <= 1001
        assert rise.loss_before == pytest.approx(0.5, abs=0.1)
        losses_after.append(rise.loss)
    assert np.mean(losses_after) == pytest.approx(1.5, abs=0.4)


def test_ratios_of_tiny_losses_tell_nothing():
    rng = np.random.default_rng(1)
    losses = np.concatenate([1e-6 * rng.random(1000), 1e-3 * rng.random(1000), 0.09 * rng.random(1000)])
    assert looked_at(losses).count == 0
    assert looked_at(losses, scale=1e-4).count > 0


def test_nothing_depends_on_batches_or_on_being_saved():
    rng = np.random.default_rng(2)
    losses = rng.exponential(size=4000) * np.repeat([1.0, 4.0, 1.0, 9.0], 1000)
    losses[rng.integers(4000, size=50)] = np.nan
    weight = rng.integers(3, size=4000).astype(float)
    whole = looked_at(losses, weight)
    assert whole.count == 2
    for cuts in (range(1, 4000, 7), (999, 1000, 1001, 1010, 3050)):
        assert repr(looked_at(losses, weight, cuts=cuts).save_state()) == repr(whole.save_state())
    begun = restored(LossRises(), "", *looked_at(losses[:3003], weight[:3003]).save_state())
    assert repr(looked_at(losses, weight, first=3003, test=begun).save_state()) == repr(whole.save_state())


def test_of_many_rises_the_largest_is_kept_too():
    heights = np.full(90, 8.0)
    heights[3] = 100.0
    losses = np.column_stack([np.ones((90, 200)), np.repeat(heights[:, None], 200, axis=1)]).reshape(-1)
    losses += np.random.default_rng(3).random(len(losses)) / 10.0
    test = looked_at(losses)
    assert len(test.rises) == MOST_KEPT < test.count and abs(test.rises[0].row - 1401) < 5
    for cuts in (range(1, len(losses), 1009), (1405, 1450, 36_000)):
        assert repr(looked_at(losses, cuts=cuts).save_state()) == repr(test.save_state())
