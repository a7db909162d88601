"""The test of exchangeability: its level, what it finds, and that it does not depend on batches."""

import math
from itertools import permutations

import numpy as np
import pytest

from tunefree.core import part
from tunefree.theory.exchangeability import LEVEL, MOST_SPACED, TargetSample, log_fortunes


def finding(targets, numbers=False):
    sample = TargetSample(numbers)
    sample.add(np.asarray(targets))
    return sample.finding()


@pytest.mark.parametrize(
    "targets", [[0, 0, 1, 1, 1], [0, 1, 2, 2, 3], [0, 0, 0, 0, 1], [0, 0, 0], [0], [0, 1, 0, 1, 0, 1]]
)
def test_no_bet_gains_over_all_orders(targets):
    """The mean fortune over all orders of any targets is at most 1: the level is exact, not asymptotic."""
    fortunes = np.exp([log_fortunes(np.array(order)) for order in permutations(targets)])
    assert (fortunes.mean(axis=0) <= 1.0 + 1e-12).all()


RANDOM = {
    "coins": (False, lambda rng: rng.integers(0, 2, 300)),
    "rare": (False, lambda rng: rng.random(300) < 0.01),
    "many classes": (False, lambda rng: rng.integers(0, 100, 300)),
    "heavy tails": (True, lambda rng: rng.standard_cauchy(300)),
    "ties": (True, lambda rng: rng.integers(0, 5, 300)),
    "as drawn, then shuffled": (True, lambda rng: rng.permutation(np.arange(300.0))),
    "longer than what is kept": (False, lambda rng: rng.integers(0, 2, 2 * MOST_SPACED + 1)),
}


@pytest.mark.parametrize("kind", RANDOM)
def test_false_alarms_are_rarer_than_the_level(kind):
    numbers, draw = RANDOM[kind]
    rng = np.random.default_rng(0)
    logs = np.array([finding(draw(rng), numbers).log_evidence for _ in range(400)])
    assert not (logs >= -math.log(LEVEL)).any()
    for level in (0.3, 0.1, 0.05):
        most = 400 * level + 3 * math.sqrt(400 * level)
        assert np.count_nonzero(logs >= -math.log(level)) <= most


@pytest.mark.parametrize("numbers", [False, True])
def test_a_sample_does_not_depend_on_batches_and_is_saved_exactly(numbers):
    rng = np.random.default_rng(0)
    targets = rng.normal(size=30_000) if numbers else rng.integers(0, 3, 30_000)
    whole, cut = TargetSample(numbers), TargetSample(numbers)
    whole.add(targets)
    for piece in np.split(targets, np.sort(rng.integers(0, 30_000, 40))):
        cut.add(piece)
        cut = part.restored(TargetSample(), "", *cut.save_state())
    for name, array in whole.save_state()[0].items():
        np.testing.assert_array_equal(array, cut.save_state()[0][name])
        assert array.dtype == cut.save_state()[0][name].dtype
    assert whole.save_state()[1] == cut.save_state()[1]
    assert whole.finding() == cut.finding()
    np.testing.assert_array_equal(whole.spaced, targets[:: whole.stride])
