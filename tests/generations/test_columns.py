"""Columns that trees see, bundles of features, and the rows that are kept of them."""

import numpy as np
import pytest

from tunefree.core.rows import part, sparse, table
from tunefree.generations.bundles import Bundles
from tunefree.generations.columns import MOST_TOGETHER, Columns, is_bundle
from tunefree.generations.reservoir import Reservoir


def one_hot(categories, sizes, numbers):
    """Sparse rows of categories (n, q), with so many features each, and numbers (n, p) behind them."""
    starts = 1 + np.cumsum([0, *sizes])
    columns = [starts[k] + of_column for k, of_column in enumerate(categories.T)]
    columns += [np.full(len(numbers), starts[-1] + k) for k in range(numbers.shape[1])]
    features = np.stack(columns, axis=1)
    values = np.concatenate([np.ones(categories.shape), numbers], axis=1)
    return sparse(np.arange(len(values) + 1) * values.shape[1], features.reshape(-1), values.reshape(-1))


def learned(columns, X):
    return columns.matrix(X, np.ones(len(X.numbers), bool))


def test_bundles_are_the_columns_that_an_encoder_made_many_features_of():
    rng, columns = np.random.default_rng(0), Columns()
    categories = np.stack([rng.integers(0, 1100, 24_000), rng.integers(0, 3, 24_000)], axis=1)
    X = one_hot(categories, [1100, 3], rng.normal(size=(24_000, 2)))
    for start in range(0, 24_000, 1000):
        learned(columns, part(X, start, start + 1000))
        columns.grown_on()
    assert sorted(columns.grown_on()) == [-((1101 << 32) + 1104), -((1 << 32) + 1101), 1104, 1105]
    at = columns.places(np.array(sorted(columns.grown_on())))
    expected = np.column_stack([1101 + categories[:, 1], 1 + categories[:, 0], X.values.reshape(-1, 4)[:, 2:]])
    assert np.array_equal(columns.matrix(X)[:, at], expected)


def test_rows_learned_before_a_bundle_was_known_have_its_categories():
    rng, columns = np.random.default_rng(0), Columns()
    categories = np.stack([rng.integers(0, 1500, 300), rng.integers(0, 3, 300)], axis=1)
    X = one_hot(categories, [1500, 3], rng.normal(size=(300, 1)))
    before = learned(columns, X)
    seen = columns.grown_on()
    assert any(is_bundle(key) for key in seen)
    places = columns.places(np.array(seen))
    assert np.array_equal(columns.completed(before)[:, places], columns.matrix(X)[:, places])


@pytest.mark.parametrize("values", ["binary", "counts"])
def test_rows_of_texts_are_not_for_trees(values):
    rng, columns = np.random.default_rng(0), Columns()
    words = [np.unique(1 + (20_000 * rng.random(80) ** 3).astype(int)) for _ in range(16)]
    features = np.concatenate(words)
    counts = np.ones(len(features)) if values == "binary" else rng.integers(1, 4, len(features)).astype(float)
    learned(columns, sparse(np.cumsum([0, *map(len, words)]), features, counts))
    assert columns.grown_on() is None


def test_few_rows_of_more_features_wait_until_it_is_known_whether_they_are_texts():
    rng, columns = np.random.default_rng(0), Columns()
    for n, n_seen in ((16, 0), (64, 1000)):
        words = [np.sort(rng.choice(np.arange(1, 1001), 30, replace=False)) for _ in range(n)]
        learned(columns, sparse(np.arange(n + 1) * 30, np.concatenate(words), np.ones(30 * n)))
        seen = columns.grown_on()
        assert 0.8 * n_seen <= len(seen) <= n_seen


def test_bundles_do_not_depend_on_how_rows_come():
    rng = np.random.default_rng(0)
    row, features = np.repeat(np.arange(60), 4), rng.integers(1, 50, 240)
    entries = np.unique(row * 64 + features)
    row, features, values = entries // 64, entries % 64, rng.choice([1.0, 1.0, 2.0], len(entries))
    whole, cut = Bundles(), Bundles()
    whole.add(60, row, features, values)
    for start in rng.permutation(np.arange(0, 60, 6)):
        of_row = (row >= start) & (row < start + 6)
        cut.add(6, row[of_row], features[of_row], values[of_row])
    assert all(map(np.array_equal, whole.runs(), cut.runs()))
    starts, stops, *_ = whole.runs()
    run = np.searchsorted(starts, features, "right") - 1
    assert len(np.unique(np.column_stack([row, run]), axis=0)) == len(features)  # no row has two of a run
    assert all(stops[run[values != 1.0]] - starts[run[values != 1.0]] == 1)


def test_memory_does_not_grow_with_sets_of_keys():
    columns, rng = Columns(), np.random.default_rng(0)
    for _ in range(4000):
        keys = np.flatnonzero(rng.random(40) < 0.5)
        learned(columns, table(np.ones((1, 1)), [1], np.full((1, len(keys)), 9), code_columns=keys))
    assert len(columns.keys) == 41 and len(columns._together) <= MOST_TOGETHER


def filled(reservoir, columns, width, start=0):
    n = len(columns)
    numbers = start + np.arange(n)
    fills = [np.nan] * width
    reservoir.add(columns, numbers.astype(float), np.ones(n), numbers.astype(np.uint64), fills)


@pytest.mark.parametrize("latest", [0, 700])
def test_rows_that_become_wider_are_kept_as_if_all_had_been_so_wide(latest):
    n, few, most = 1000 if latest else 2000, 64, 1000  # of the latest, some of before are kept
    changed, wide = Reservoir(latest, most), Reservoir(latest, most)
    for reservoir, width in ((changed, few), (wide, 4 * few)):
        filled(reservoir, np.zeros((900, width)), width)
        filled(reservoir, np.zeros((n - 900, 4 * few)), 4 * few, 900)
        assert reservoir.capacity == 250 and len(reservoir.kept()["targets"]) == 250
    assert np.array_equal(changed.kept(250 * (latest > 0))["targets"], wide.kept(250 * (latest > 0))["targets"])
