"""Records over the rows: weights, losses and where their curve ends, and rows kept to balance predictions."""

import numpy as np
import pytest

from tests.pool.rows import learned, stream
from tunefree import TuneFreeClassifier
from tunefree.core.rows import dense
from tunefree.intervals.learning_curve import rows_learned
from tunefree.pool import balance
from tunefree.pool.weights_record import MOST, WeightsRecord, estimate_of_record, estimated_loss


def filled(points):
    """A record of blocks of ten rows, with its totals counted apart."""
    random, record, totals = np.random.default_rng(0), WeightsRecord(3), np.zeros((4, 4))
    for number in range(1, points + 1):
        losses = random.random((10, 4))
        losses[:, 1] = np.nan if number % 3 else losses[:, 1]
        weights = random.random(10) + 0.5
        record.observe(losses, weights)
        record.add(10 * number, np.array([0.2, np.nan if number % 3 else 0.3, 0.5]))
        awake = ~np.isnan(losses)
        weighted = np.nan_to_num(losses) * weights[:, None]
        totals += weighted.sum(axis=0), weights @ awake, awake.sum(axis=0), (weighted**2).sum(axis=0)
    return record, totals


@pytest.mark.parametrize("points", [1, 2, MOST, MOST + 1, 5 * MOST + 3])
def test_points_are_thinned_and_no_loss_is_forgotten(points):
    record, totals = filled(points)
    assert len(record.rows) == min(points, MOST)
    assert (record.rows[0], record.rows[-1]) == (10, 10 * points)
    assert (np.diff(record.rows) > 0).all()
    steps = np.diff(record.rows, prepend=0)
    roots = np.diff(np.sqrt(record.rows), prepend=np.sqrt(record.rows[0]))
    assert roots.max() <= max(3.0 * np.sqrt(10 * points) / MOST, np.sqrt(20) - np.sqrt(10))
    np.testing.assert_array_equal(record.losses[:, 2, 0], steps)
    np.testing.assert_allclose((record.losses.sum(axis=0) + record.since)[:4], totals)
    np.testing.assert_allclose(record.weights.sum(axis=1), 1.0)


def test_standard_errors_are_for_means_of_units():
    random, record = np.random.default_rng(1), WeightsRecord(1)
    losses = np.repeat(random.random(50), 4)[:, None] * np.ones((1, 2))  # four like rows a unit
    record.observe(losses, np.full(200, 3.0), np.arange(0, 200, 4))
    means, standard_errors, rows = record.totals()
    np.testing.assert_allclose(means, losses.mean(axis=0))
    np.testing.assert_allclose(standard_errors, losses[::4].std(axis=0, ddof=1) / np.sqrt(50))
    assert rows.tolist() == [200, 200]
    half = WeightsRecord(1)
    asleep = np.repeat(np.arange(50) % 2 == 0, 4)
    of_both = np.column_stack([np.where(asleep, np.nan, losses[:, 0]), losses[:, 1]])
    half.observe(of_both, np.ones(200), np.arange(0, 200, 4))
    awake = losses[~asleep][::4, 0]  # who sleeps has no unit
    np.testing.assert_allclose(half.totals()[1][0], awake.std(ddof=1) / np.sqrt(25))


@pytest.mark.parametrize("size", [1, 7, 100])
def test_the_sample_is_the_rows_whose_number_the_step_divides(size, monkeypatch):
    monkeypatch.setattr(balance, "MOST_ROWS", 8)
    X, kept = np.arange(1.0, 101.0), balance.Balance()
    weight = np.where(X == 48.0, 0.0, X)
    numbers = np.cumsum(weight > 0.0)  # of the rows that were learned
    for start in range(0, 100, size):
        rows = slice(start, start + size)
        kept._sample(dense(X[rows, None]), weight[rows], numbers[rows], 1)
    sample, weights = kept.sample
    assert kept.step == 16 and weights.tolist() == sample.numbers[:, 0].tolist() == [16.0, 32.0, 49.0, 65.0, 81.0, 97.0]


N = 1500


def recorded(rng, factor=1.0, excess=40.0):
    """A record of rows whose expected loss falls from 1 to 0.2, by points as a pool has them."""
    record, start = WeightsRecord(1), 0
    for stop in (16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512, 724, 1024, N):
        expected = 0.2 + excess / rows_learned(np.arange(start + 1, stop + 1))
        losses = factor * rng.exponential(np.minimum(expected, 1.0))
        record.observe(np.stack([losses, losses], axis=1), np.ones(len(losses)))
        if stop < N:
            record.add(stop, np.ones(1))
        start = stop
    return record


def test_two_thirds_of_estimates_are_within_one_standard_error():
    for excess in (0.0, 40.0):
        records = [recorded(np.random.default_rng(seed), 1.0, excess) for seed in range(120)]
        estimates = [estimate_of_record(record, N, float(N)) for record in records]
        off = np.array([(one.loss - 0.2 - excess / N) / one.standard_error for one in estimates])
        assert 0.58 < np.mean(np.abs(off) < 1.0) < 0.78
        assert abs(off.mean()) < 0.3


def test_estimates_have_the_unit_of_the_losses():
    for factor in (1e-200, 1e100):
        one = estimate_of_record(recorded(np.random.default_rng(0)), N, float(N))
        other = estimate_of_record(recorded(np.random.default_rng(0), factor), N, float(N))
        assert other.loss == pytest.approx(factor * one.loss)
    assert estimate_of_record(recorded(np.random.default_rng(0), 1e150), N, float(N)) is None  # larger than is recorded


def test_before_the_end_of_a_pass_the_loss_of_the_next_row_is_estimated():
    model, _ = learned(stream())
    record, next_row = model.pool.contexts[0].record, float(rows_learned(np.array([301]))[0])
    assert estimated_loss(model.pool) == pytest.approx(estimate_of_record(record, 300, next_row))
    model.freeze()
    assert estimated_loss(model.pool) == pytest.approx(estimate_of_record(record, 300, 300.0))


def test_known_rows_count_by_their_share():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, (2, 900))
    y = (rng.random(900) < (1.0 + a + b) / 8.0).astype(int)
    model = TuneFreeClassifier(random_state=0).fit(np.column_stack([a, b]), y)
    pool = model._learned.model.pool
    assert pool.known_share > 0.9
    of_known = estimate_of_record(pool.contexts[1].record, 900, 900.0)
    assert model.estimated_loss_.loss == pytest.approx(of_known.loss, rel=0.1)
