"""Columns that trees see, their codes, bundles of features, and the rows that are kept of them."""

import numpy as np
import pytest

from tunefree.core.part import restored
from tunefree.core.rows import dense, part, sparse, table
from tunefree.generations import columns as columns_of_trees
from tunefree.generations.bins import MISSING, MOST_CODES, bins_of, codes_of
from tunefree.generations.boosted import grow_boosted
from tunefree.generations.bundles import MOST_MEMBERS, Bundles, exclusive_of
from tunefree.generations.columns import MOST_TOGETHER, Columns, is_bundle
from tunefree.generations.problem import Problem, prepared
from tunefree.generations.reservoir import MOST_ROWS, Reservoir
from tunefree.generations.seen import PLACES, Seen
from tunefree.losses import Square


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


def added(reservoir, start, stop, width=1, block=1000):
    for first in range(start, stop, block):
        numbers = np.arange(first, min(first + block, stop))
        columns = np.tile(numbers[:, None].astype(np.float64), (1, width))
        arrays = columns, numbers.astype(np.float64), np.ones(len(numbers)), numbers.astype(np.uint64)
        reservoir.add(*arrays, [np.nan] * width)
    return reservoir


@pytest.mark.parametrize("latest", [0, 700])
def test_rows_that_become_wider_are_kept_as_if_all_had_been_so_wide(latest):
    n, few, most = 1000 if latest else 2000, 64, 1000  # of the latest, some of before are kept
    changed, wide = Reservoir(latest, most), Reservoir(latest, most)
    for reservoir, width, block in ((changed, few, 7), (wide, 4 * few, 1000)):
        added(reservoir, 0, 900, width, block)
        added(reservoir, 900, n, 4 * few, block)
        assert reservoir.capacity == 250 and len(reservoir.kept()["targets"]) == 250
    kept, expected = (reservoir.kept(250 * (latest > 0)) for reservoir in (changed, wide))
    assert all(np.array_equal(kept[name], expected[name]) for name in ("targets", "weights", "digests"))


NUMBER, CATEGORY = np.array([False]), np.array([True])


def codes(column, is_categorical=NUMBER, scores=None, new=None):
    X = np.asarray(column, float)[:, None]
    bins = bins_of(X, is_categorical, np.zeros(len(X)) if scores is None else np.asarray(scores, float))
    return codes_of(bins, X if new is None else np.asarray(new, float)[:, None])[:, 0]


@pytest.mark.parametrize(
    "column",
    [
        [3.0, 1.0, 2.0, 1.0],
        [-1.7e308, 0.0, 1.7e308],
        [0.0, 5e-324, 1e-323, -5e-324],
        [1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0)],
        [-0.0, 0.0, 1.0],
    ],
)
def test_few_numbers_have_a_code_each_in_their_order(column):
    ranks = np.unique(column, return_inverse=True)[1]
    assert (codes(column) == ranks).all()


def test_many_numbers_share_codes_about_evenly():
    column = np.random.default_rng(0).normal(size=20_000)
    counts = np.bincount(codes(column))
    assert len(counts) == MOST_CODES
    assert counts.min() > 30 and counts.max() < 160


def test_frequent_numbers_have_codes_of_their_own():
    random = np.random.default_rng(0)
    column = np.where(random.random(5000) < 0.6, 0.0, random.normal(size=5000))
    column[:300] = 0.25
    of_rows = codes(column)
    for value in (0.0, 0.25):  # or share it with less than half of the rows that others have
        with_it = column[of_rows == of_rows[column == value][0]]
        assert (with_it == value).mean() > 0.97
    assert of_rows.max() > 100


def test_what_is_missing_or_unknown_has_a_code_of_its_own():
    assert codes([1.0, np.nan, 2.0]).tolist() == [0, MISSING, 1]
    assert codes([7.0, np.nan, 2.0**31], CATEGORY, new=[2.0**31, 8.0, np.nan]).tolist()[1:] == [MISSING, MISSING]
    assert (codes([np.nan, np.nan]) == MISSING).all()


def test_categories_are_ordered_by_their_mean_score():
    column, scores = np.repeat([5.0, 1.0, 9.0], 50), np.repeat([2.0, 3.0, 1.0], 50)
    assert codes(column, CATEGORY, scores, new=[9.0, 5.0, 1.0]).tolist() == [0, 1, 2]


def indicators(n=600, n_levels=7, seed=0):
    """A number, indicators of a category, two that conflict, one with missing values."""
    random = np.random.default_rng(seed)
    level = random.integers(0, n_levels, n)
    is_level = level[:, None] == np.arange(n_levels)
    X = np.column_stack([random.normal(size=n), is_level, level != 3, random.random(n) < 0.5])
    late = np.where(random.random(n) < 0.1, np.nan, X[:, -1])
    return np.column_stack([X, late]), level


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_trees_have_the_same_bits_with_and_without_bundles(n_classes):
    X, level = indicators()
    y = X[:, 0] + level % 3
    y = np.digitize(y, [0.5, 1.5][: n_classes - 1]).astype(float) if n_classes else y
    rows = Problem(X, np.zeros(X.shape[1], bool), y, np.ones(len(y)), n_classes, None if n_classes else Square())
    problem = prepared(rows)
    binned = problem.binned
    assert binned.exclusive.bundles[1:9].tolist() == [0] * 7 + [-1] and binned.exclusive.n_filled == 5
    none = exclusive_of(binned.codes, np.full(len(binned.codes), 3), binned.bins.is_categorical)
    assert none.n_filled == len(binned.codes)
    both = binned, binned._replace(exclusive=none)
    bundled, single = (grow_boosted(problem._replace(binned=part), 3) for part in both)
    assert len(bundled.nodes) > 100
    assert bundled.nodes.tobytes() == single.nodes.tobytes() and bundled.values.tobytes() == single.values.tobytes()


def test_rows_have_one_column_of_a_bundle_at_most():
    level = np.random.default_rng(1).integers(0, 300, 900)
    codes = (level == np.arange(300)[:, None]).astype(np.uint8)
    codes[280, :] |= codes[283]  # a conflict
    n_codes, is_categorical = np.full(300, 2), np.zeros(300, bool)
    n_codes[290], is_categorical[291] = 3, True
    exclusive = exclusive_of(codes, n_codes, is_categorical)
    assert np.bincount(exclusive.bundles + 1).tolist() == [2, MOST_MEMBERS, 28, 7, 8]
    for b, of_rows in enumerate(exclusive.codes):
        members = np.flatnonzero(exclusive.bundles == b)
        assert codes[members].sum(axis=0).max() == 1
        assert np.array_equal(of_rows, (codes[members] * exclusive.members[members][:, None]).sum(axis=0))


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
    restored(other, "", arrays, header)
    np.testing.assert_array_equal(other.columns, [values])
    assert (other.columns.dtype, other.kept()["columns"].dtype) == (kind, "f8")
    other.add(np.array([[0.1, 1.0, 2.0]]), np.ones(1), np.ones(1), np.ones(1, np.uint64), [np.nan] * 3)
    np.testing.assert_array_equal(other.kept()["columns"], [values, [0.1, 1.0, 2.0]])


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


def test_columns_that_are_too_many_are_counted(monkeypatch):
    monkeypatch.setattr(columns_of_trees, "MOST_COLUMNS", 4)
    columns = Columns([1, 2], [0.0, 0.0])
    assert columns.matrix(dense(np.ones((3, 7))), np.ones(3, bool)).shape == (3, 4)
    assert columns.keys[:2] == [1, 2] and columns.n_unseen == 3
