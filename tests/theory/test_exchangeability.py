"""Tests of exchangeability and of changed columns: their level, and what they name."""

import math
from itertools import permutations

import numpy as np
import pytest

from tests.pool.rows import bytes_of
from tunefree.core import part
from tunefree.theory.column_changes import FEWEST, MISSING, TARGET, Bin, compared
from tunefree.theory.exchangeability import LEVEL, MOST_SPACED, TargetSample, log_fortunes


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
    rng, samples = np.random.default_rng(0), [TargetSample(numbers) for _ in range(400)]
    for sample in samples:
        sample.add(draw(rng))
    logs = np.array([sample.finding().log_evidence for sample in samples])
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
    assert bytes_of(whole) == bytes_of(cut)
    assert whole.finding() == cut.finding()
    np.testing.assert_array_equal(whole.spaced, targets[:: whole.stride])


KINDS = [True, False, True, False, True, False, False]  # which columns are categories


def rows(rng, n):
    """A target of two classes, and columns of several kinds."""
    gaps = np.where(rng.random(n) < 0.1, MISSING, rng.normal(size=n))
    mostly = np.where(rng.random(n) < 0.8, 0.0, rng.exponential(size=n))
    categories = rng.integers(0, 3, n), rng.zipf(1.5, n) % 50
    columns = rng.integers(2, size=n), rng.normal(size=n), categories[0], mostly, categories[1], gaps, np.full(n, 3.0)
    return np.column_stack(columns).astype(np.float32)


def changes(before, after, kinds=KINDS):
    return compared(before, after, range(before.shape[1]), kinds).changes


@pytest.mark.parametrize(
    "sizes",
    [(512, FEWEST), pytest.param((512, 512), marks=pytest.mark.slow), pytest.param((60, 300), marks=pytest.mark.slow)],
)
def test_samples_of_the_same_rows_differ_by_chance_as_seldom_as_stated(sizes):
    rng = np.random.default_rng(0)
    false_alarms = sum(bool(changes(rows(rng, sizes[0]), rows(rng, sizes[1]))) for _ in range(300))
    assert false_alarms <= 4  # 0.3 are to be expected; more than 4 with a probability of 2e-5


def test_what_changed_is_named_with_its_bin_and_shares():
    rng = np.random.default_rng(1)
    before, after = rows(rng, 500), rows(rng, 300)
    after[:, 1] += 2.0
    after[:, 2] = np.where(rng.random(300) < 0.5, 7.0, after[:, 2])  # a category that is new
    after[:200, 5] = MISSING  # a column that disappears
    after[:, 6] = 4.0  # a constant that becomes another
    named = {change.key: change for change in changes(before, after) if not change.is_relation}
    assert named.keys() == {1, 2, 5, 6} and all(0.0 <= change.error < 0.05 for change in named.values())
    assert named[1].distance == pytest.approx(0.68, abs=0.06) and named[1].bin.kind == "numbers"
    assert named[2].bin == Bin("category", 7.0, 7.0)
    assert named[2].before == 0.0 and named[2].after == pytest.approx(0.5, abs=0.1)
    assert named[5].bin == Bin("missing") and named[5].after == pytest.approx(0.7, abs=0.05)
    assert named[6].distance == 1.0 and named[6].bin in (Bin("numbers", 3.0, 3.0), Bin("numbers", 4.0, 4.0))


def test_a_relation_that_is_reversed_is_named_and_the_values_are_not():
    rng = np.random.default_rng(2)
    before, after = rows(rng, 512), rows(rng, 512)
    before[:, TARGET] = before[:, 1] > 0.0
    after[:, TARGET] = after[:, 1] < 0.0
    (change,) = changes(before, after)
    assert (change.key, change.is_relation, change.bin) == (1, True, None) and change.distance > 0.9
    numbers = [False, *KINDS[1:]]
    before[:, TARGET], after[:, TARGET] = before[:, 1], -after[:, 1]  # a number as the target
    assert [change.key for change in changes(before, after, numbers)] == [1]


def test_what_is_extreme_is_borne():
    for values in (*(np.full((100, 2), one) for one in (MISSING, 0.0, 3e38)), np.arange(200.0).reshape(-1, 2)):
        for kinds in ([True, True], [False, False]):
            assert compared(values, values, [0, 1], kinds).changes == []
            compared(values, np.zeros((100, 2)), [0, 1], kinds)


def test_where_the_target_changed_relations_do_not_count_for_it():
    rng = np.random.default_rng(0)
    before, after = rng.normal(size=(2, 2000, 3))
    after[:, 0] += 1.0
    assert [change.key for change in compared(before, after, [TARGET, 1, 2], [False] * 3).changes] == [TARGET]
