"""Kernels by their names, and the median rule for their widths."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from tunefree.papers.kernel.kernels import median_gamma


@given(seed=st.integers(0, 2**32), n=st.integers(2, 40), sparse=st.booleans())
def test_the_median_rule_takes_distances_between_different_labels(seed, n, sparse):
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.7), rng.integers(0, 3, n)
    different = cdist(X, X)[labels[:, None] != labels]
    everyone = cdist(X, X)[~np.eye(n, dtype=bool)]
    found = median_gamma(csr_array(X) if sparse else X, labels)
    chosen = different if len(different) and np.median(different) > 0.0 else everyone
    if np.median(chosen) > 0.0:
        np.testing.assert_allclose(found, 0.5 / np.median(chosen**2), rtol=1e-9)
    assert found > 0.0 and math.isfinite(found)


def test_the_median_rule_without_distances():
    assert median_gamma(np.ones((5, 2)), np.arange(5)) == 1.0
    assert median_gamma(np.ones((1, 2)), np.zeros(1)) == 1.0
    rows = np.array([[0.0], [0.0], [0.0], [0.0], [2.0]])  # most distances are 0
    assert median_gamma(rows, np.array([0, 1, 0, 1, 0])) == 0.125
    assert median_gamma(np.array([[0.0], [4.0]]), np.zeros(2)) == 0.5 / 16.0  # one label
