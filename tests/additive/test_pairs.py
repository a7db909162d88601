"""Pairs: products of two columns' coarse functions, by definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.additive.contracts import FIRST_CODE, dense_of, features_of, hats, table_of, words_of
from tunefree.additive.features import MOST_WEIGHTS, PAIR_ENTRIES, AdditiveFeatures
from tunefree.additive.pairs import FREQUENT, SHARED, sources_of

quick = settings(max_examples=40, deadline=None)


@st.composite
def tables(draw):
    """Numbers of many and of few values, and columns of codes, some of which are rare."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, p, q = draw(st.integers(2, 300)), draw(st.integers(0, 3)), draw(st.integers(0, 2))
    numbers = rng.normal(size=(n, p))
    for column in range(p):
        kind = rng.integers(4)
        numbers[:, column] = (numbers[:, column], np.round(numbers[:, column]), numbers[:, column] > 0, 5.0)[kind]
    codes = np.minimum(rng.geometric(0.05, (n, q)), 90) * (rng.random((n, q)) < 0.9) + 100 * np.arange(q)
    return table_of(numbers, np.where(codes % 100 > 0, codes, 0), 16 * np.arange(q))


def cells_by_definition(features, first, rows):
    """For each source the values of its cells (n, size) on rows, of which the ``first`` ones fixed the features."""
    made = [
        hats(own.values[own.levels == 0], column) for own, column in zip(features.knots, rows.numbers.T, strict=True)
    ]
    for place, own in enumerate(rows.code_columns):
        if own not in features.sources.code_columns:
            continue
        here = first.codes[:, place]
        different, counts = np.unique(here[here > 0], return_counts=True)
        often = different[np.argsort(-counts, kind="stable")][:FREQUENT].tolist()
        known, cells = set(different.tolist()), np.zeros((len(rows.numbers), len(often) + SHARED))
        for i, code in enumerate(rows.codes[:, place].tolist()):
            if code in often:
                cells[i, often.index(code)] = 1.0
            elif code in known:
                cells[i, len(often) + code % SHARED] = 1.0
        made.append(cells)
    return made


def pairs_by_definition(features, first, rows):
    """The products (n, features) of the cells of each pair."""
    cells = cells_by_definition(features, first, rows)
    assert [own.shape[1] for own in cells] == features.sources.sizes.tolist()
    made = np.zeros((len(rows.numbers), features.n_features))
    for a, b, start in zip(*features.pairs, strict=True):
        products = (cells[a][:, :, None] * cells[b][:, None, :]).reshape(len(made), -1)
        made[:, start : start + products.shape[1]] = products
    return made


@quick
@given(rows=tables(), seed=st.integers(0, 2**32))
def test_pairs_are_products_of_cells(rows, seed):
    features = features_of(rows)
    n_curves = features.n_features
    assert features.screening() is None  # they are so few that all of them are learned
    n = len(features.sources.sizes)
    pairs = list(zip(features.pairs.first.tolist(), features.pairs.second.tolist(), strict=True))
    assert pairs == [(a, b) for a in range(n) for b in range(a + 1, n)]
    features.refine()
    rng = np.random.default_rng(seed)
    rows = rows._replace(numbers=rows.numbers * rng.uniform(0.5, 2.0, rows.numbers.shape))
    curves = features.curves(rows)
    written = dense_of(features.with_pairs(rows), features.n_features)
    expected = dense_of(curves, features.n_features) + pairs_by_definition(features, rows, rows)
    np.testing.assert_allclose(written, expected, atol=1e-12)
    assert np.count_nonzero(written[:, n_curves:], axis=1).max() <= 4 * len(pairs) + len(features.knots)


def test_codes_that_nothing_is_known_of_have_no_products():
    rng = np.random.default_rng(0)
    rows = table_of(rng.normal(size=(60, 1)), rng.integers(1, 4, (60, 1)))
    features = features_of(rows)
    assert features.screening() is None
    new = rows._replace(codes=np.where(np.arange(60)[:, None] % 2 == 0, rows.codes, FIRST_CODE + 50).astype(np.int32))
    curves = features.curves(new)
    entries = np.diff(features.with_pairs(new).pointers) - np.diff(curves.pointers)
    assert (entries[::2] > 0).all()
    assert (entries[1::2] == 0).all()
    without = rows._replace(codes=rows.codes[:, :0], code_columns=rows.code_columns[:0])
    assert features.with_pairs(without).features.max() < features.pairs.starts[0]


def test_a_code_that_comes_later_shares_a_cell_with_other_rare_ones():
    rows = table_of(np.zeros((40, 0)), np.column_stack([np.arange(40) % 30 + 1, np.arange(40) % 2 + 50]))
    features = AdditiveFeatures(rows, np.arange(40), 1)
    features.meet(rows, np.ones(40))
    assert features.sources.n_frequent.tolist() == [FREQUENT, 2]
    assert features.screening() is None
    late = table_of(np.zeros((3, 0)), np.array([[60, 50], [60 + SHARED, 51], [61, 50]]))
    features.meet(late, np.ones(3))
    written = features.with_pairs(late)
    at = written.pointers[1:] - 1
    place = (written.features[at] - features.pairs.starts[0]) // features.sources.sizes[1]
    np.testing.assert_array_equal(place, FREQUENT + (FIRST_CODE + np.array([60, 60, 61])) % SHARED)


def test_pairs_of_many_classes_change_as_many_weights_as_those_of_few():
    rows = table_of(np.random.default_rng(0).normal(size=(200, 6)))
    for n_outputs, most in ((1, PAIR_ENTRIES), (40, PAIR_ENTRIES), (1000, MOST_WEIGHTS // 1000), (2**15, 0)):
        features = features_of(rows, n_outputs)
        screening = features.screening()  # 15 pairs of 4 entries each
        assert (screening is None) == (most >= 60)
        if screening is not None:
            screening.squares[:], screening.total[()] = 1e-9, 1.0  # as if all pairs paid
            screening.gradients[:], screening.counts[:] = np.random.default_rng(1).normal(size=screening[3].shape), 1.0
            features.choose_pairs(screening, 1.0)
        assert len(features.pairs.first) == min(most // 4, 15)


def test_columns_of_one_code_make_no_pairs():
    codes = np.array([[1, 4, 6], [2, 4, 0], [2, 0, 0]])
    sources, cells = sources_of([9], codes, np.array([0, 16, 17]))
    assert sources.sizes.tolist() == [9, 2 + SHARED]
    assert sources.code_columns.tolist() == [0]
    assert cells.tolist() == [[2, 1], [1, 2]]


def test_restored_features_learn_codes_that_they_had_no_room_for():
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(1, 40, 300), rng.integers(50, 60, 300)])
    first = table_of(rng.normal(size=(300, 2)), codes, words=words_of(rng, 300, 3, 500))
    more = table_of(rng.normal(size=(300, 2)), codes + 700, words=words_of(rng, 300, 3, 900))
    whole = features_of(first)
    restored = AdditiveFeatures.restore(*whole.save_state())
    assert len(restored.place_of) == len(restored.cell_of)
    shown = []
    for features in (whole, restored):
        assert features.screening() is None
        known = features.meet(more, np.ones(300))
        assert (features.cell_of[more.codes] > 0).all()
        shown.append(dense_of(features.with_pairs(known), features.n_features))
    np.testing.assert_array_equal(*shown)
