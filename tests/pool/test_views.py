"""How learners see rows: what views agree with, what they leave alone, and what no single row can do to them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import naive
from tests.strategies import words
from tunefree.compiled import functions
from tunefree.core import rows
from tunefree.core.rows import n_rows, part
from tunefree.pool.views import Steady, transform_rows


def shown(view, X, learns=None, cuts=()):
    """A block as the view shows it, learned on the way; cut into pieces."""
    numbers, entries, edges = [], [], [0, *cuts, n_rows(X)]
    learns = np.ones(n_rows(X)) if learns is None else learns
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        piece = part(X, start, stop)
        numbers.append(np.empty_like(piece.numbers))
        entries.append(np.empty_like(piece.values))
        arrays = piece.numbers, piece.pointers, piece.values
        transform_rows(view, learns[start:stop], *arrays, numbers[-1], entries[-1])
    return X._replace(numbers=np.concatenate(numbers), values=np.concatenate(entries))


def assert_same(one, other):
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left, right)


@st.composite
def columns(draw, exponents=20):
    """Rows of numbers with zeros, repetitions and constant columns, each column of a scale of its own."""
    n, d = draw(st.integers(1, 60)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.standard_t(2.0, (n, d)) + rng.choice([0.0, 10.0])
    X *= rng.random((n, d)) < draw(st.sampled_from([0.2, 0.8, 1.0]))
    if draw(st.booleans()):
        X[:, 0] = X[0, 0]
    return np.ldexp(X, rng.integers(-exponents, exponents + 1, d))


def table(X, Z):
    """A table of numbers X, one-hot codes, and the non-zeros of Z as words."""
    codes = np.arange(2 * len(X)).reshape(-1, 2) % 3
    return rows.table(X, np.arange(X.shape[1]) + 1, codes, words(Z))


@given(X=columns())
def test_steady_numbers_are_distances_from_a_centre(X):
    view = Steady.create(X.shape[1])
    seen = shown(view, rows.dense(X)).numbers
    for c in range(X.shape[1]):
        expected, centre, distance = naive.steady(X[:, c])
        np.testing.assert_allclose(seen[:, c], expected, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(view.centres[c], centre, rtol=1e-9, atol=1e-12 * np.abs(X[:, c]).max())
        np.testing.assert_allclose(view.distances[c], distance, rtol=1e-9, atol=1e-12 * np.abs(X[:, c]).max())


@given(X=columns())
def test_steady_entries_are_in_units_of_a_typical_size(X):
    view = Steady.create(0)
    block = words(X)
    expected, typical = naive.steady_entries([row[row != 0] for row in X])
    np.testing.assert_allclose(shown(view, block).values, np.concatenate(expected), rtol=1e-9)
    np.testing.assert_allclose(view.size, typical, rtol=1e-9)


@given(X=columns(), Z=columns())
def test_dense_rows_and_tables_are_seen_alike(X, Z):
    n = min(len(X), len(Z))
    X, Z = X[:n], Z[:n]
    of_table, of_dense, of_sparse = (Steady.create(width) for width in (X.shape[1], X.shape[1], 0))
    given_table = table(X, Z)
    seen = shown(of_table, given_table)
    np.testing.assert_array_equal(seen.numbers, shown(of_dense, rows.dense(X)).numbers)
    np.testing.assert_array_equal(seen.values, shown(of_sparse, words(Z)).values)
    for name_of_part in ("columns", "codes", "pointers", "features"):
        assert getattr(seen, name_of_part) is getattr(given_table, name_of_part)


@given(X=columns(), seed=st.integers(0, 2**32))
def test_rows_of_weight_0_are_seen_but_not_learned(X, seed):
    learns = np.random.default_rng(seed).choice([0.0, 0.5, 2.0], len(X))
    one, other = (Steady.create(X.shape[1]) for _ in range(2))
    seen = shown(one, rows.dense(X), learns).numbers
    np.testing.assert_array_equal(seen[learns > 0], shown(other, rows.dense(X[learns > 0])).numbers)
    assert_same(one, other)
    before = [np.array(array) for array in one]
    last = shown(one, rows.dense(X), np.zeros(len(X))).numbers
    assert_same(before, one)
    np.testing.assert_array_equal(last, shown(one, rows.dense(X), np.zeros(len(X)), cuts=(len(X) // 2,)).numbers)


@given(X=columns(exponents=0), data=st.data())
def test_multiplying_columns_by_powers_of_two_changes_no_bit_of_the_steady_view(X, data):
    d = X.shape[1]
    exponents = np.array(data.draw(st.lists(st.integers(-300, 300), min_size=d, max_size=d)))
    blocks = table(X, X), table(np.ldexp(X, exponents), np.ldexp(X, int(exponents[0])))
    one, other = (shown(Steady.create(d), block) for block in blocks)
    np.testing.assert_array_equal(one.numbers, other.numbers)
    np.testing.assert_array_equal(one.values, other.values)


@pytest.mark.parametrize("at", [0, 2000])
def test_one_row_a_million_times_too_large_moves_typical_sizes_little(at):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4)) * [1e-3, 1.0, 1e3, 1.0] + [0.0, 1.0, 3e3, -3.0]
    spoilt = X.copy()
    spoilt[at] *= 1e6
    clean, moved = Steady.create(4), Steady.create(4)
    shown(clean, table(X, X))
    shown(moved, table(spoilt, spoilt))
    assert (np.abs(moved.centres - clean.centres) < 0.01 * clean.distances).all()
    np.testing.assert_allclose(moved.distances, clean.distances, rtol=0.01)
    np.testing.assert_allclose(moved.size, clean.size, rtol=0.01)


@given(X=columns(exponents=300), extremes=st.sampled_from([None, 1e300, 1.7e308]))
def test_plain_python_computes_the_same_bits_which_are_finite(X, extremes):
    if extremes is not None:
        X[len(X) // 2] = extremes * np.resize([1.0, -1.0], X.shape[1])
    learns, block = np.arange(len(X)) % 3 * 1.0, table(X, X)
    compiled, plain = (Steady.create(X.shape[1]) for _ in range(2))
    by_kernel = shown(compiled, block, learns)
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(functions, "IS_COMPILED", False)
        by_python = shown(plain, block, learns)
    assert by_kernel.numbers.tobytes() == by_python.numbers.tobytes()
    assert by_kernel.values.tobytes() == by_python.values.tobytes()
    assert [array.tobytes() for array in compiled] == [array.tobytes() for array in plain]
    assert all(np.isfinite(array).all() for array in (by_kernel.numbers, by_kernel.values, *compiled))
