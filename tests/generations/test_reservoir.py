"""Rows that generations are grown on: fewer of a sample, and a sample of rows that were learned elsewhere."""

import numpy as np
import pytest

from tunefree.generations.reservoir import MOST_ROWS, Reservoir
from tunefree.generations.seen import PLACES, Seen


def added(reservoir, start, stop, width=1, block=1000):
    for first in range(start, stop, block):
        numbers = np.arange(first, min(first + block, stop))
        columns = np.tile(numbers[:, None].astype(np.float64), (1, width))
        arrays = columns, numbers.astype(np.float64), np.ones(len(numbers)), numbers.astype(np.uint64)
        reservoir.add(*arrays, [np.nan] * width)
    return reservoir


def test_half_of_a_sample_is_a_sample_of_all_rows_and_goes_on_as_one():
    reservoir = added(Reservoir(most=4000), 0, 20_000)
    before = set(reservoir.kept()["targets"].tolist())
    reservoir.keep(2000)
    half = reservoir.kept()
    assert len(half["targets"]) == reservoir.n_kept == 2000 and set(half["targets"].tolist()) < before
    np.testing.assert_array_equal(half["columns"][:, 0], half["targets"])
    added(reservoir, 20_000, 40_000)
    numbers = reservoir.kept()["targets"]
    assert len(set(numbers.tolist())) == 2000
    counts = np.histogram(numbers, 8, (0, 40_000))[0]  # about 250 each, with a standard deviation of 15
    assert (np.abs(counts - 250) < 60).all()


@pytest.mark.parametrize("width", [1, 65, 1000, 9000])
def test_as_many_rows_are_kept_as_are_asked_for_however_wide_they_are(width):
    reservoir = added(Reservoir(), 0, 70, width)
    reservoir.keep(reservoir.n_kept)
    assert reservoir.capacity == 70 and reservoir.most <= MOST_ROWS
    reservoir.keep(35)
    assert reservoir.capacity == len(reservoir.kept()["targets"]) == 35


@pytest.mark.parametrize(
    ("values", "kind"), [([1.5, np.nan, -np.inf], "f4"), ([0.1, 2.0, 3.0], "f8"), ([1e300] * 3, "f8")]
)
def test_columns_are_in_single_precision_where_it_has_all_digits(values, kind):
    reservoir, other = Reservoir(), Reservoir()
    reservoir.add(np.array([values]), np.ones(1), np.ones(1), np.ones(1, np.uint64), [np.nan] * 3)
    arrays, header = reservoir.save_state()
    assert arrays["columns"].dtype == kind
    other.take_over(arrays, header)
    np.testing.assert_array_equal(other.columns, [values])
    assert (other.columns.dtype, other.kept()["columns"].dtype) == (kind, "f8")
    other.add(np.array([[0.1, 1.0, 2.0]]), np.ones(1), np.ones(1), np.ones(1, np.uint64), [np.nan] * 3)
    np.testing.assert_array_equal(other.kept()["columns"], [values, [0.1, 1.0, 2.0]])


def test_it_does_not_depend_on_how_rows_come_in_blocks():
    one, other = (added(Reservoir(most=500), 0, 3000, block=block).kept() for block in (7, 1000))
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name])


@pytest.mark.parametrize("target", [1.0, 0.1])
def test_numbers_are_in_single_precision_while_it_has_all_digits(target):
    reservoir = Reservoir()
    for number in (2.0, target):
        reservoir.add(np.zeros((1, 1)), np.array([number]), np.ones(1), np.ones(1, np.uint64), [np.nan])
    assert reservoir.weights.dtype == np.float32
    assert reservoir.targets.dtype == (np.float32 if target == 1.0 else np.float64)
    assert reservoir.kept()["targets"].tolist() == [2.0, target]


def test_a_table_that_grows_knows_the_same_observations():
    random, seen, latest = np.random.default_rng(0), Seen(), {}
    for n in (1, 1, 64, 500, 3000):
        digests = random.integers(1, 2**62, n).astype(np.uint64)
        digests[1::5] &= np.uint64(PLACES * 8 - 1)
        digests[2::5] = digests[1::5][: len(digests[2::5])] + np.uint64(PLACES)  # of the same place
        expected = []
        for digest in digests.tolist():
            expected.append(latest.get(digest % PLACES) == digest)
            latest[digest % PLACES] = digest
        assert seen.add(digests, np.ones(n)).tolist() == expected
        assert seen.digests.tolist() == [latest[place] for place in sorted(latest)]
        assert 2 * len(latest) <= len(seen.table) < PLACES
        assert seen.copied().knows(digests[-1:]).all()
