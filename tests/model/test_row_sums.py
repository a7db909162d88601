"""Sums of squares are those of the matrix that the rows are, of whatever kind these are."""

from __future__ import annotations

import numpy as np
import pytest

from tunefree.core.rows import dense, sparse, table
from tunefree.model.batch_rows import LARGEST, matrix
from tunefree.model.row_sums import LANES, add_squares, padded

NUMBERS = np.array([[3.0, -2.0], [0.0, 0.5], [-4.0, 1.0]])
BLOCKS = {
    "dense": dense(NUMBERS),
    "sparse": sparse([0, 2, 2, 3], [1, 3, 2], [5.0, -1.0, 2.0]),
    "table": table(NUMBERS, [3, 1], [[2, 0], [4, 5], [0, 5]], sparse([0, 1, 1, 2], [6, 6], [0.5, -7.0])),
}


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("n_factors", [1, 5])
def test_sums_of_squares_are_those_of_the_matrix(kind, n_factors):
    X, width = BLOCKS[kind], 7
    factors = padded(np.random.default_rng(0).uniform(size=(3, n_factors)))
    assert factors.shape[1] % LANES == 0
    sums, largest = np.zeros((width, factors.shape[1])), np.zeros(width)
    for _ in range(2):
        add_squares(X, factors, sums, largest)
    rows = matrix(X, width)
    rows = (rows if kind == "dense" else rows.toarray()).astype(np.float64)
    np.testing.assert_allclose(sums, 2.0 * (rows**2).T @ factors, rtol=1e-12)
    np.testing.assert_array_equal(largest, np.abs(rows).max(axis=0))


def test_features_that_nobody_knows_are_left_out_and_huge_entries_stay_finite():
    sums, largest = np.zeros((2, LANES)), np.zeros(2)
    add_squares(sparse([0, 2], [1, 9], [-1e300, 1.0]), np.ones((1, LANES)), sums, largest)
    assert np.isfinite(sums).all() and largest.tolist() == [1.0, LARGEST]
