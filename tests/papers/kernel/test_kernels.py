"""Kernels by their names, and the median rule for their widths."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from tunefree.core.errors import ModelError
from tunefree.papers.kernel import kernels
from tunefree.papers.kernel.kernels import kernel_of, median_gamma
from tunefree.papers.kernel.usual import Polynomial


@pytest.mark.parametrize("name", kernels.ALL)
def test_names_are_those_of_scikit_learn(name):
    kernel = kernel_of(name, 0.5, 2, 1.5)
    assert kernel.is_ladder == (name in ("rbf", "laplacian"))
    if name == "linear":
        assert kernel == Polynomial(1, 1.0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("sigmoid", 1.0), "unknown `kernel` 'sigmoid'; choose one of rbf"),
        (("rbf", 0.0), "gamma must be a number above 0, not 0.0"),
        (("rbf", math.inf), "gamma must be a number above 0, not inf"),
        (("rbf", math.nan), "gamma must be a number above 0, not nan"),
        (("poly", 1.0, 0), "a degree from 1 on"),
        (("poly", 1.0, 2, -1.0), "a constant from 0 on"),
    ],
)
def test_what_is_no_kernel_is_named(arguments, problem):
    with pytest.raises(ModelError, match=problem):
        kernel_of(*arguments)


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


def test_the_median_rule_looks_at_the_first_rows_only():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(600, 2)), rng.integers(0, 2, 600)
    X[kernels.MOST_SAMPLED :] *= 1e6
    assert median_gamma(X, labels) == median_gamma(X[: kernels.MOST_SAMPLED], labels[: kernels.MOST_SAMPLED])


def test_the_median_rule_without_distances():
    assert median_gamma(np.ones((5, 2)), np.arange(5)) == 1.0
    assert median_gamma(np.ones((1, 2)), np.zeros(1)) == 1.0
    rows = np.array([[0.0], [0.0], [0.0], [0.0], [2.0]])  # most distances are 0
    assert median_gamma(rows, np.array([0, 1, 0, 1, 0])) == 0.125
    assert median_gamma(np.array([[0.0], [4.0]]), np.zeros(2)) == 0.5 / 16.0  # one label
