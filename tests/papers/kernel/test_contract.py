"""What every kernel obeys, also one from outside: values, points, sums over a support, and the median rule."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Matern as MaternOfScikitLearn

from tests.extending import as_before, run_page
from tests.papers.kernel.contracts import drawn, gram
from tests.strategies import KINDS
from tunefree import IterativeRegularizationClassifier, KernelPiSTOLClassifier
from tunefree.papers.kernel import kernels
from tunefree.papers.kernel.expansion import Terms
from tunefree.papers.kernel.kernels import kernel_of, median_gamma
from tunefree.papers.kernel.points import BLOCK, points, sums_at, values_within

Matern: Any = run_page("kernel.md", until="kernels.register")["Matern"]  # a kernel that is not in the package
OUTSIDE = "matern-3/2"
GAMMA = 0.3
by_kernel = pytest.mark.parametrize("name", [*kernels.ALL, OUTSIDE])


@pytest.fixture(autouse=True)
def with_one_from_outside():
    with as_before(kernels.ALL):
        kernels.register(OUTSIDE, Matern)
        yield


def values_of(name, X, Z, gamma=GAMMA):
    if name == OUTSIDE:
        return MaternOfScikitLearn(length_scale=(2.0 * gamma) ** -0.5, nu=1.5)(X, Z)
    return gram(X, Z, name, gamma)


@by_kernel
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_tiles_and_diagonals_are_the_values_of_pairs(name, form):
    kernel, X, Z = kernel_of(name, GAMMA), drawn(0, 30).X, drawn(1, 20).X
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
    kernel, X, Z = kernel_of(name, GAMMA), drawn(5, 50).X, drawn(6, 200).X
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
    rng = np.random.default_rng(13)
    X = rng.normal(size=(400, 4)) * (rng.random((400, 4)) < 0.7)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    kernel = kernel_of(OUTSIDE, GAMMA)
    assert KernelPiSTOLClassifier(kernel=OUTSIDE, gamma=GAMMA, view="raw").fit(X, y).score(X, y) > 0.8
    assert KernelPiSTOLClassifier(kernel=OUTSIDE, passes=1).fit(X, y).gamma_ != 1.0  # the median rule's
    parameters = {"gamma": GAMMA, "precision": "double", "standardize": False}
    stopped = IterativeRegularizationClassifier(kernel=OUTSIDE, stop=30, validation_fraction=0.0, **parameters)
    margins = stopped.fit(X, y).decision_function(X)
    np.testing.assert_allclose(margins, kernel.tile(X, X) @ stopped.dual_coef_[0], rtol=1e-9, atol=1e-12)
    assert IterativeRegularizationClassifier(kernel=OUTSIDE, max_iter=30).fit(X, y).score(X, y) > 0.8


def test_the_page_on_adding_a_kernel_runs_as_it_stands():
    del kernels.ALL._entries[OUTSIDE]
    assert run_page("kernel.md")["tuned"].gamma_ > 0.0


LEAST = {"rbf": 0.125, "laplacian": 0.0625, "poly": 0.5, "linear": 1.0}
STEPS = {"rbf": [2, 0, 4, 2], "laplacian": [0, 1, 2], "poly": [0, 0], "linear": [0]}  # of each function
by_usual_kernel = pytest.mark.parametrize("name", sorted(LEAST))


def array_of(found, n, d):
    """The first n points as an array (n, d); feature j is column j - 1."""
    return csr_array((found.values, found.features.astype(int) - 1, found.pointers[: n + 1]), (n, d)).toarray()


@by_usual_kernel
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_rows_are_points_with_their_norms(kind, name):
    X = drawn(0, 20, 5).X
    found = points(KINDS[kind](X), kernel_of(name, 0.5))
    np.testing.assert_array_equal(array_of(found, 20, 5), X)
    norms = np.abs(X) if name == "laplacian" else X**2
    np.testing.assert_allclose(found.norms, norms.sum(axis=1), rtol=1e-12)


@given(
    seed=st.integers(0, 2**32),
    pieces=st.lists(st.integers(0, 60), min_size=1, max_size=40),
    kind=st.sampled_from(sorted(KINDS)),
)
def test_points_joined_piece_by_piece_are_all_there(seed, pieces, kind):
    rng, X = np.random.default_rng(seed), drawn(seed, 80, 5).X
    rows = points(KINDS[kind](X), kernel_of("rbf", 0.5))
    store, chosen = Terms.none(1, 1).points, np.arange(0)
    for piece in pieces:
        which = np.sort(rng.permutation(80)[:piece])
        store, chosen = store.joined(rows, which), np.concatenate([chosen, which])
    assert store.size == sum(pieces)
    np.testing.assert_array_equal(array_of(store, store.size, 5), X[chosen])
    np.testing.assert_array_equal(store.norms, rows.norms[chosen])
    assert store.keys() == [rows.keys()[i] for i in chosen]


@by_usual_kernel
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@settings(max_examples=6)
@given(seed=st.integers(0, 2**31), n_rows=st.integers(1, BLOCK), n_support=st.integers(0, 400), data=st.data())
def test_sums_over_the_support_equal_the_definition(name, kind, seed, n_rows, n_support, data):
    X, Z = drawn(seed, n_rows).X, drawn(seed + 1, n_support).X
    kernel, steps = kernel_of(name, LEAST[name], 2, 1.0), np.array(STEPS[name])
    rows, support = (points(KINDS[kind](A), kernel) for A in (X, Z))
    coefficients = np.random.default_rng(seed).normal(size=(len(steps), 2, n_support))
    first = data.draw(st.integers(0, n_rows - 1))
    found = sums_at(kernel, steps, support, coefficients, rows, first, n_rows)
    for m, step in enumerate(steps):
        values = gram(X[first:], Z, name, LEAST[name] * 2.0**step, 2, 1.0)
        scale = 1.0 + np.abs(values @ coefficients[m].T).max(initial=0.0)
        np.testing.assert_allclose(found[m], values @ coefficients[m].T, rtol=0, atol=1e-11 * scale)


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
