"""Rows as points of a kernel: what becomes of dense, sparse and table rows, and how points are kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.papers.kernel.contracts import gram
from tests.strategies import KINDS, as_dense, as_sparse, as_table
from tunefree.core.errors import ModelError
from tunefree.papers.kernel.external import External
from tunefree.papers.kernel.kernels import kernel_of
from tunefree.papers.kernel.points import BLOCK, TILE, DensePoints, SparsePoints, points, selected, unpacked

RBF = kernel_of("rbf", 0.5)
by_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def drawn(seed, n, d=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)


def values_of(found, n, d):
    """The first n points as an array (n, d); feature j of scattered ones is column j - 1."""
    if isinstance(found, DensePoints):
        return found.values[:n]
    dense = np.zeros((n, d))
    for i in range(n):
        span = slice(found.pointers[i], found.pointers[i + 1])
        dense[i, found.features[span] - 1] = found.values[span]
    return dense


@by_dtype
@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly", "linear"])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_rows_are_points_with_their_norms(kind, name, dtype):
    X = drawn(0, 20)
    found = points(KINDS[kind](X), kernel_of(name, 0.5), dtype)
    assert isinstance(found, DensePoints if kind == "dense" else SparsePoints)
    assert found.values.dtype == found.norms.dtype == dtype
    np.testing.assert_array_equal(values_of(found, 20, 5), X.astype(dtype))
    norms = np.abs(X.astype(dtype)) if name == "laplacian" else X.astype(dtype) ** 2
    np.testing.assert_allclose(found.norms, norms.sum(axis=1), rtol=1e-6)


def test_tables_are_alike_whether_they_have_codes_and_words_or_not():
    """A number may be missing, which is a code, or a text hold a word, long after the first rows."""
    X = drawn(1, 10)
    numbers = as_table(np.c_[X, np.zeros_like(X)])
    found = points(numbers, RBF, np.float64)
    assert type(found) is type(points(as_table(X), RBF, np.float64))
    np.testing.assert_array_equal(values_of(found, 10, 5), X)


@given(
    seed=st.integers(0, 2**32),
    pieces=st.lists(st.integers(0, 60), min_size=1, max_size=5),
    kind=st.sampled_from(sorted(KINDS)),
)
def test_points_joined_piece_by_piece_are_all_there(seed, pieces, kind):
    rng = np.random.default_rng(seed)
    X = drawn(seed, 80)
    rows = points(KINDS[kind](X), RBF, np.float64)
    store, n, chosen = rows.empty(RBF), 0, np.arange(0)
    for piece in pieces:
        which = np.sort(rng.permutation(80)[:piece])
        store, n, chosen = store.joined(n, rows, which), n + piece, np.concatenate([chosen, which])
    np.testing.assert_array_equal(values_of(store, n, 5), X[chosen])
    np.testing.assert_array_equal(store.norms[:n], rows.norms[chosen])
    assert store.size % TILE == 0
    assert not store.norms[n:].any()
    assert store.keys(n) == [rows.keys(80)[i] for i in chosen]
    arrays = {f"a.{name}": array for name, array in store.packed(n).items()}
    again = unpacked(arrays, "a.")
    assert type(again) is type(store)
    np.testing.assert_array_equal(values_of(again, n, 5), X[chosen])
    np.testing.assert_array_equal(values_of(store.cut(n // 2, n), n - n // 2, 5), X[chosen][n // 2 :])


def test_there_is_room_for_many_points():
    X = drawn(2, 100)
    for rows in (points(kind(X), RBF, np.float32) for kind in KINDS.values()):
        store = rows.empty(RBF)
        for n in range(0, 3000, 100):
            store = store.joined(n, rows, np.arange(100))
        assert store.size % TILE == 0 and store.size >= 3000
        np.testing.assert_array_equal(values_of(store, 3000, 5), np.tile(X.astype(np.float32), (30, 1)))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_keys_tell_points_apart(kind):
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 2.0], [-0.0, 1.0], [0.0, 0.0]])
    found = points(KINDS[kind](X), RBF, np.float32).keys(6)
    assert found[0] == found[2] == found[4]
    assert len(set(found)) == 4


def block_of(rows):
    """Points with zeros up to a whole block."""
    return selected(rows, np.arange(rows.size)).cut(0, BLOCK)


@by_dtype
@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly", "linear"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_numbers_of_pairs_are_products_or_distances_less_norms(name, kind, dtype):
    X, Z = drawn(3, BLOCK).astype(dtype), drawn(4, 50).astype(dtype)
    kernel = kernel_of(name, 0.5)
    block, rows = (points(KINDS[kind](A), kernel, dtype) for A in (X, Z))
    store = selected(rows, np.arange(50), kernel)
    found = store.cut(0, TILE).pairs(block_of(block), kernel)[:50].T
    expected = X.astype(np.float64) @ Z.T.astype(np.float64)
    if name == "laplacian":
        expected = -np.log(gram(X, Z, "laplacian", 1.0)) - np.abs(X).sum(1)[:, None] - np.abs(Z).sum(1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 if dtype == np.float32 else 1e-12)


def test_a_feature_that_the_block_lacks_counts_for_the_distance():
    kernel = kernel_of("laplacian", 1.0)
    block, rows = (points(as_sparse(np.array(a)), kernel, np.float64) for a in ([[1.0, 0.0]], [[0.0, 3.0], [4.0, 2.0]]))
    store = selected(rows, np.arange(2), kernel)
    found = store.cut(0, TILE).pairs(block_of(block), kernel)[:2, 0]
    np.testing.assert_allclose(found + block.norms[0] + rows.norms, [4.0, 5.0])


def test_of_a_matrix_made_beforehand_places_are_kept():
    kernel = External(None)
    matrix = np.array([[1.0, 0.2, 0.3], [0.2, 1.0, 0.4], [0.3, 0.4, 1.0]])
    rows = points(as_dense(np.c_[np.arange(3.0), matrix]), kernel, np.float64)
    store = selected(rows, np.array([2, 0]), kernel)
    np.testing.assert_array_equal(store.as_matrix()[:2], [[2.0], [0.0]])
    assert rows.as_kept_by(store).keys(3)[2] == store.keys(1)[0]
    found = store.cut(0, TILE).pairs(block_of(rows), kernel)
    np.testing.assert_array_equal(found[:2, :3].T, matrix[:, [2, 0]])


def test_sparse_rows_have_no_kernel_made_beforehand():
    kernel = External(np.dot)
    rows = block_of(points(as_sparse(drawn(5, 3)), kernel, np.float64))
    with pytest.raises(ModelError, match="takes dense rows; pass an array"):
        rows.pairs(rows, kernel)


def test_a_function_that_gives_too_few_numbers_is_named():
    kernel = External(lambda X, Z: X[:, 0])
    rows = block_of(points(as_dense(drawn(6, 3)), kernel, np.float64))
    with pytest.raises(ModelError, match=r"a matrix \(128,\) for 128 x 128 rows"):
        rows.pairs(rows, kernel)
