"""Kernels by their names, the exponential they are made of, and the median rule for their widths."""

from __future__ import annotations

import math
from functools import cache
from typing import Annotated

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from tunefree.core.errors import ModelError
from tunefree.papers.kernel import kernels
from tunefree.papers.kernel.external import External
from tunefree.papers.kernel.kernels import kernel_of, median_gamma
from tunefree.papers.kernel.polynomial import Polynomial
from tunefree.papers.kernel.precision import exponential, in_precision


@cache
def raising(dtype):
    exp = exponential(dtype)

    def raise_all(powers: Annotated[np.ndarray, "real[n]"], found: Annotated[np.ndarray, "real[n]"]) -> None:
        for i in range(len(powers)):
            found[i] = exp(powers[i])

    return in_precision(raise_all, dtype, "tests.raise_all")


def raised(powers, dtype):
    powers = np.asarray(powers, dtype)
    found = np.empty_like(powers)
    raising(powers.dtype.name)(powers, found)
    return found, np.exp(powers.astype(np.float64))


def test_the_exponential_of_single_precision_is_near_the_true_one():
    powers = np.concatenate([-np.linspace(0.0, 86.6, 1_000_001), -np.logspace(-40, 0, 1001), [0.0]])
    found, expected = raised(powers, np.float32)
    # beyond 3e-7 it is no further off than if its power were rounded once more
    assert (np.abs(found / expected - 1.0) < 3e-7 + 2.0**-23 * np.abs(powers)).all()
    assert found[-1] == 1.0


def test_the_exponential_of_single_precision_ends_at_the_least_normal_number():
    found, expected = raised([-86.7, -87.0, -90.0, -104.0, -1e3, -1e30, -np.inf], np.float32)
    assert (np.abs(found - expected) < 2.4e-38).all()


def test_the_exponential_of_single_precision_never_grows_as_its_power_falls_but_by_rounding():
    found, _ = raised(-np.linspace(0.0, 90.0, 400_001), np.float32)
    assert (np.diff(found) <= 2e-7 * found[:-1]).all()


def test_the_exponential_of_double_precision_is_the_true_one():
    powers = -np.linspace(0.0, 750.0, 100_001)
    found, expected = raised(powers, np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-323)
    assert exponential("float64")(-0.5) == math.exp(-0.5)


def test_the_exponential_of_single_precision_has_the_same_bits_uncompiled():
    powers = -np.logspace(-10, 3, 400).astype(np.float32)
    found, _ = raised(powers, np.float32)
    uncompiled = [exponential("float32")(power) for power in powers]
    assert found.tobytes() == np.array(uncompiled, np.float32).tobytes()


@pytest.mark.parametrize("name", kernels.ALL)
def test_names_are_those_of_scikit_learn(name):
    kernel = kernel_of(name, 0.5, 2, 1.5)
    assert kernel.is_ladder == (name in ("rbf", "laplacian"))
    if name == "linear":
        assert kernel == Polynomial(1, 1.0, 0.0)


def test_functions_are_kernels():
    kernel = kernel_of(np.dot, 1.0)
    assert kernel == External(np.dot)
    assert not kernel.is_ladder


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("sigmoid", 1.0), "unknown kernel 'sigmoid'; choose one of rbf"),
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


@pytest.mark.parametrize("gamma", [1e300, 1.7976931348623157e308])
def test_widths_beyond_single_precision_are_the_narrowest_it_has(gamma):
    with np.errstate(over="raise"):
        found = kernel_of("rbf", gamma=gamma).in_compiled_code(np.float32)
    assert found.gamma == np.finfo(np.float32).max
