"""Sums of kernel values over a support, against NumPy; and that neither threads nor neighbours change a bit."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.papers.kernel.contracts import gram
from tests.strategies import KINDS
from tunefree.core import threads
from tunefree.papers.kernel import kernel_sums
from tunefree.papers.kernel.kernels import kernel_of
from tunefree.papers.kernel.points import BLOCK, points, selected

LEAST = {"rbf": 0.125, "laplacian": 0.0625, "poly": 0.5, "linear": 1.0}
STEPS = {"rbf": [2, 0, 4, 2], "laplacian": [0, 1, 2], "poly": [0, 0], "linear": [0]}  # of each function


def made(name, kind, dtype, n_rows, n_support, seed=0):
    """Rows, a support, and coefficients of some functions."""
    rng = np.random.default_rng(seed)
    X, Z = (rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.8) for n in (n_rows, n_support))
    kernel = kernel_of(name, LEAST[name], 2, 1.0)
    block, rows = (points(KINDS[kind](A), kernel, dtype) for A in (X, Z))
    block = selected(block, np.arange(n_rows)).cut(0, BLOCK)
    store = selected(rows, np.arange(n_support), kernel)
    steps = np.array(STEPS[name])
    coefficients = rng.normal(size=(len(steps), 2, n_support))
    return X, Z, kernel, steps, block, store, coefficients


def by_definition(name, X, Z, steps, coefficients):
    found = np.zeros((len(steps), len(X), coefficients.shape[1]))
    for m, step in enumerate(steps):
        found[m] = gram(X, Z, name, LEAST[name] * 2.0**step, 2, 1.0) @ coefficients[m].T
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", sorted(LEAST))
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@settings(max_examples=6)
@given(seed=st.integers(0, 2**32), n_rows=st.integers(1, BLOCK), n_support=st.integers(0, 2500), data=st.data())
def test_sums_over_the_support_are_those_of_the_definition(name, kind, dtype, seed, n_rows, n_support, data):
    X, Z, kernel, steps, block, store, coefficients = made(name, kind, dtype, n_rows, n_support, seed)
    first = data.draw(st.integers(0, n_rows - 1))
    found = kernel_sums.evaluate(kernel, steps, block, (first, n_rows), store, coefficients)
    expected = by_definition(name, X, Z, steps, coefficients)
    expected[:, :first] = 0.0
    tolerance = 2e-5 if dtype == np.float32 else 1e-11
    scale = 1.0 + np.abs(by_definition(name, X, Z, steps, np.abs(coefficients))).max(initial=0.0)
    np.testing.assert_allclose(found[:, :n_rows], expected, rtol=0, atol=tolerance * scale)
    assert found.shape == (len(steps), BLOCK, coefficients.shape[1])
    assert not found[:, n_rows:].any()


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_kernel_values_within_a_block(name, kind):
    X, _, kernel, steps, block, _, _ = made(name, kind, np.float64, 100, 1)
    for first in (0, 37):
        values = np.zeros((int(steps.max()) + 1, BLOCK, BLOCK))
        kernel_sums.write_values_within(kernel, block, (first, 100), values)
        for step in range(len(values)):
            expected = np.tril(gram(X, X, name, LEAST[name] * 2.0**step))[first:]
            np.testing.assert_allclose(np.tril(values[step, :100, :100])[first:], expected, rtol=1e-10, atol=1e-17)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_number_of_threads_changes_no_bit(kind, dtype, monkeypatch):
    _, _, kernel, steps, block, store, coefficients = made("rbf", kind, dtype, 100, 5000)
    found = []
    monkeypatch.setattr(threads, "FEW", 0)  # threads, however little there is to do
    for number in (1, 2, 5):
        monkeypatch.setattr(os, "cpu_count", lambda number=number: number)
        found.append(kernel_sums.evaluate(kernel, steps, block, (0, 100), store, coefficients).tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_other_rows_of_a_block_change_no_bit(kind, name, dtype):
    X, _, kernel, steps, block, store, coefficients = made(name, kind, dtype, BLOCK, 1500)
    whole = kernel_sums.evaluate(kernel, steps, block, (0, BLOCK), store, coefficients)
    rows = points(KINDS[kind](X), kernel, dtype)
    for n in (1, 7, 64, 127):
        alone = selected(rows, np.arange(n)).cut(0, BLOCK)
        found = kernel_sums.evaluate(kernel, steps, alone, (0, n), store, coefficients)
        np.testing.assert_array_equal(found[:, :n], whole[:, :n])
        last = kernel_sums.evaluate(kernel, steps, block, (n - 1, n), store, coefficients)
        np.testing.assert_array_equal(last[:, n - 1], whole[:, n - 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size_of_coefficients", [1e-290, 1e-60, 1e-30, 1e30, 1e60, 1e290])
def test_coefficients_of_any_size(dtype, size_of_coefficients):
    X, Z, kernel, steps, block, store, coefficients = made("rbf", "dense", dtype, 50, 1200)
    found = kernel_sums.evaluate(kernel, steps, block, (0, 50), store, size_of_coefficients * coefficients)
    expected = by_definition("rbf", X, Z, steps, coefficients)
    np.testing.assert_allclose(found[:, :50] / size_of_coefficients, expected, rtol=0, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_coefficients_are_scaled_by_powers_of_two(dtype):
    coefficients = np.array([[9.0, 3.0, 0.0, -1.0, 1e-300], [9.0, 0.0, 0.0, 0.0, 0.0], [9.0, 1e-310, 0.0, 0.0, 0.0]])
    units, scaled = np.zeros(3), np.full((8, 3), 7.0, dtype)
    assert kernel_sums.SCALING[dtype](coefficients, 1, 4, units, scaled) == 4
    np.testing.assert_array_equal(units, [2.0, 1.0, 1.0])
    expected = [[1.5, 0.0, -0.5, 0.0], [0.0, 0.0, 0.0, 0.0], np.array([1e-310, 0.0, 0.0, 0.0], dtype)]
    np.testing.assert_array_equal(scaled[:4].T, expected)
    assert (scaled[4:] == 7.0).all()


def test_values_that_would_be_denormal_numbers_are_0():
    X = np.array([[0.0], [7.0]])  # exp(-49 / 8) is 2e-3, its 16th power 1e-43
    kernel, steps = kernel_of("rbf", 0.125), np.arange(8)
    rows = points(KINDS["dense"](X), kernel, np.float32)
    store = selected(rows, np.arange(2), kernel)
    coefficients = np.tile([0.0, 1.0], (8, 1, 1))
    found = kernel_sums.evaluate(kernel, steps, store.cut(0, BLOCK), (0, 1), store, coefficients)[:, 0, 0]
    assert store.size >= BLOCK
    np.testing.assert_allclose(found, np.exp(-49 / 8 * 2.0**steps), rtol=2e-4, atol=1e-35)
    assert found[-1] == 0.0
