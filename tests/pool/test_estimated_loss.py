"""The loss to expect of new rows: where the learning curve of the pass ends."""

import numpy as np
import pytest

from tunefree import TuneFreeClassifier
from tunefree.intervals.learning_curve import rows_learned
from tunefree.pool.weights_record import WeightsRecord, estimate_of_record

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
        estimates = [
            estimate_of_record(recorded(np.random.default_rng(seed), 1.0, excess), N, float(N)) for seed in range(120)
        ]
        off = np.array([(one.loss - 0.2 - excess / N) / one.standard_error for one in estimates])
        assert 0.58 < np.mean(np.abs(off) < 1.0) < 0.78
        assert abs(off.mean()) < 0.3


def test_estimates_have_the_unit_of_the_losses():
    for factor in (1e-200, 1e100):
        one = estimate_of_record(recorded(np.random.default_rng(0)), N, float(N))
        other = estimate_of_record(recorded(np.random.default_rng(0), factor), N, float(N))
        assert other.loss == pytest.approx(factor * one.loss)
    assert estimate_of_record(recorded(np.random.default_rng(0), 1e150), N, float(N)) is None  # larger than is recorded


def test_known_rows_count_by_their_share():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, (2, 900))
    y = (rng.random(900) < (1.0 + a + b) / 8.0).astype(int)
    model = TuneFreeClassifier(random_state=0).fit(np.column_stack([a, b]), y)
    pool = model._learned.model.pool
    assert pool.known_share > 0.9
    of_known = estimate_of_record(pool.contexts[1].record, 900, 900.0)
    assert model.estimated_loss_.loss == pytest.approx(of_known.loss, rel=0.1)
