"""Gram products: the same as with the whole matrix, whatever is kept, dense or sparse, and to the bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import pairwise_kernels

from tunefree.papers.early_stopping import gram
from tunefree.papers.early_stopping.gram import Gram
from tunefree.papers.kernel.usual import LINEAR, Gaussian, Laplacian, Polynomial

KERNELS = {"linear": LINEAR, "rbf": Gaussian(0.3), "laplacian": Laplacian(0.2), "poly": Polynomial(3, 0.1, 1.0)}
by_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def whole(kernel, left, right):
    name = next(name for name, own in KERNELS.items() if own is kernel)
    parameters = {"poly": {"gamma": 0.1, "degree": 3, "coef0": 1.0}, "linear": {}}
    return pairwise_kernels(left, right, metric=name, **parameters.get(name, {"gamma": kernel.gamma}))


def rows(n, d=5, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X * (np.abs(X) > 0.4)


@by_kernel
@pytest.mark.parametrize("most", [0, 70_000, 10**9])
def test_products_do_not_depend_on_the_tiles_that_are_kept(kernel, most, monkeypatch):
    monkeypatch.setattr(gram, "BLOCK", 64)
    X, Z, c = rows(150), rows(70, seed=1), np.random.default_rng(2).normal(size=(150, 2))
    products = []
    for bytes_kept in (0, most):
        monkeypatch.setattr(gram, "MOST_BYTES", bytes_kept)
        square, oblong = Gram(kernel, X), Gram(kernel, Z, X)
        for _ in range(2):
            np.testing.assert_allclose(square @ c, whole(kernel, X, X) @ c, rtol=1e-10, atol=1e-11)
            np.testing.assert_allclose(oblong @ c, whole(kernel, Z, X) @ c, rtol=1e-10, atol=1e-11)
        products.append((square @ c).tobytes())
    assert products[0] == products[1]
    kept = sum(values.nbytes for values in square.tiles.values())
    assert kept == square.kept <= most and (most == 0 or kept > 0)


@by_kernel
@settings(max_examples=20)
@given(n=st.integers(0, 40), m=st.integers(1, 40), is_zero=st.booleans())
def test_products_of_any_shape(kernel, n, m, is_zero):
    left, right = rows(n, seed=4), rows(m, seed=3)
    c = np.random.default_rng(5).normal(size=(m, 2)) * (not is_zero)
    expected = whole(kernel, left, right) @ c if n else np.zeros((0, 2))
    np.testing.assert_allclose(Gram(kernel, left, right) @ c, expected, rtol=1e-10, atol=1e-11)
