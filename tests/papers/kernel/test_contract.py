"""What every kernel obeys: those in the registry, and one that is not in the package."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import Matern as MaternOfScikitLearn
from sklearn.metrics.pairwise import pairwise_kernels

from tests.extending import run_page
from tests.strategies import KINDS
from tunefree import IterativeRegularizationClassifier, KernelPiSTOLClassifier
from tunefree.papers.kernel import kernels
from tunefree.papers.kernel.kernels import kernel_of
from tunefree.papers.kernel.points import points, sums_at, values_within

Matern: Any = run_page("kernel.md", until="kernels.register")["Matern"]  # a kernel that is not in the package
OUTSIDE = "matern-3/2"
GAMMA = 0.3
OTHERS = {"poly": {"degree": 3, "coef0": 1.0}}  # parameters beside gamma
PACKAGE = copy.deepcopy(kernels.ALL)  # without the one from outside
by_kernel = pytest.mark.parametrize("name", [*kernels.ALL, OUTSIDE])


@pytest.fixture(autouse=True)
def with_one_from_outside(monkeypatch):
    package = copy.deepcopy(PACKAGE)
    monkeypatch.setattr(kernels, "ALL", package)
    monkeypatch.setattr(kernels, "register", package.register)
    package.register(OUTSIDE, Matern)


def drawn(seed, n, d=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)


def values_of(name, X, Z, gamma=GAMMA):
    """Those of scikit-learn."""
    if name == OUTSIDE:
        return MaternOfScikitLearn(length_scale=(2.0 * gamma) ** -0.5, nu=1.5)(X, Z)
    return pairwise_kernels(X, Z, metric=name, **({} if name == "linear" else {"gamma": gamma} | OTHERS.get(name, {})))


@by_kernel
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_tiles_and_diagonals_are_the_values_of_pairs(name, form):
    kernel, X, Z = kernel_of(name, GAMMA), drawn(0, 30), drawn(1, 20)
    X[3] = X[7]
    expected = values_of(name, X, Z)
    np.testing.assert_allclose(kernel.tile(form(X), form(Z)), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(form(X)), np.diag(values_of(name, X, X)), rtol=1e-9)
    assert kernel.diagonal(form(X.astype(np.float32))).dtype == np.float64
    thin = kernel.tile(form(X.astype(np.float32)), form(Z.astype(np.float32)))
    assert thin.dtype == np.float32
    np.testing.assert_allclose(thin, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


@by_kernel
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_compiled_code_computes_the_same_values(name, kind):
    kernel, X, Z = kernel_of(name, GAMMA), drawn(5, 50), drawn(6, 200)
    block, support = (points(KINDS[kind](A), kernel) for A in (X, Z))
    coefficients = np.random.default_rng(7).normal(size=(1, 1, 200))
    found = sums_at(kernel, np.zeros(1, int), support, coefficients, block, 0, 50)[0, :, 0]
    np.testing.assert_allclose(found, values_of(name, X, Z) @ coefficients[0, 0], rtol=1e-8, atol=1e-8)
    n_steps = 3 if kernel.is_ladder else 1
    for first in (0, 37):
        for step, within in enumerate(values_within(kernel, n_steps, block, first)):
            expected = values_of(name, X[first:], X, GAMMA * 2.0**step)
            np.testing.assert_allclose(within, expected, rtol=1e-6, atol=1e-7)


def test_a_kernel_from_outside_is_learned_with_by_its_name():
    X = drawn(13, 400)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    kernel = kernel_of(OUTSIDE, GAMMA)
    assert KernelPiSTOLClassifier(kernel=OUTSIDE, gamma=GAMMA, view="raw").fit(X, y).score(X, y) > 0.8
    assert KernelPiSTOLClassifier(kernel=OUTSIDE, passes=1).fit(X, y).gamma_ != 1.0  # the median rule's
    parameters = {"gamma": GAMMA, "precision": "double", "standardize": False}
    stopped = IterativeRegularizationClassifier(kernel=OUTSIDE, stop=30, validation_fraction=0.0, **parameters)
    margins = stopped.fit(X, y).decision_function(X)
    np.testing.assert_allclose(margins, kernel.tile(X, X) @ stopped.dual_coef_[0], rtol=1e-9, atol=1e-12)
    assert IterativeRegularizationClassifier(kernel=OUTSIDE, max_iter=30).fit(X, y).score(X, y) > 0.8


def test_the_page_on_adding_a_kernel_runs_as_it_stands(monkeypatch):
    package = copy.deepcopy(PACKAGE)
    monkeypatch.setattr(kernels, "ALL", package)
    monkeypatch.setattr(kernels, "register", package.register)
    assert run_page("kernel.md")["tuned"].gamma_ > 0.0
