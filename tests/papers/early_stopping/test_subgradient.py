"""The subgradient method against ten-line loops, and products of Gram matrices, to the bit."""

import numpy as np
import pytest
from scipy.special import softmax

from tests import naive
from tests.papers.kernel.contracts import drawn, gram
from tunefree import losses
from tunefree.losses.objectives import Objective
from tunefree.papers.early_stopping import gram as tiles
from tunefree.papers.early_stopping.gram import Gram
from tunefree.papers.early_stopping.step_size import largest_eigenvalue, step_size
from tunefree.papers.early_stopping.stopping_times import descends
from tunefree.papers.kernel.usual import LINEAR, Gaussian, Laplacian, Polynomial
from tunefree.papers.left_slopes import left_slope
from tunefree.papers.subgradient import Problem, Rows, descend, steps_of, wrong_classes

GAUSSIAN = Gaussian(0.25)


def data(n=60, d=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    codes = (X @ rng.normal(size=(d, classes)) + 0.5 * rng.normal(size=(n, classes))).argmax(axis=1)
    weight = rng.uniform(0.2, 2.0, n)
    return X, (2.0 * codes - 1.0 if classes == 2 else codes.astype(float)), weight


def share(weight):
    return weight / weight.sum()


def problem(X, y, weight, objective, kernel=None, n_outputs=1, held=15):
    """The rows after the first few, which are held out; without a kernel there is a constant, whose weight is last."""
    if kernel is None:
        X = np.column_stack([X, np.ones(len(X))])
        matrices, squares = (X[held:], X[:held]), (X[held:] ** 2).sum(axis=1)
    else:
        matrices = Gram(kernel, X[held:]), Gram(kernel, X[:held], X[held:])
        squares = kernel.diagonal(X[held:])
    learned = Rows(matrices[0], y[held:], share(weight[held:]))
    beside = Rows(matrices[1], y[:held], share(weight[:held]))
    return Problem(learned, beside, squares, kernel is not None, objective, wrong_classes, n_outputs)


def slopes_of(objective, y, margins):
    """Left derivatives, an output a column."""
    if objective.is_softmax:
        return softmax(margins, axis=1) - np.eye(margins.shape[1])[y.astype(int)]
    labels = y[:, None] if margins.shape[1] == 1 else 2.0 * np.eye(margins.shape[1])[y.astype(int)] - 1.0
    return np.vectorize(lambda a, b: left_slope(objective.loss, a, b))(labels, margins)


@pytest.mark.parametrize(
    ("loss", "classes", "theta"),
    [
        (losses.Logistic(), 2, 0.0),
        (losses.Hinge(), 2, 0.5),
        (losses.SmoothedHinge(), 3, 0.0),
        (losses.Hinge(), 3, 0.6),
        (losses.Logistic(), 4, 0.25),  # multinomial
    ],
)
def test_coefficients_equal_ten_lines(loss, classes, theta):
    X, y, weight = data(classes=classes)
    n_outputs = 1 if classes == 2 else classes
    objective = Objective("classification", None if classes == 4 else loss)
    run = descend(problem(X, y, weight, objective, GAUSSIAN, n_outputs), steps_of(0.9, theta, 20))
    K = GAUSSIAN.tile(X[15:], X[15:])
    slopes = lambda margins: share(weight[15:])[:, None] * slopes_of(objective, y[15:], margins)  # noqa: E731
    expected = naive.subgradient(K, slopes, steps_of(0.9, theta, 20), n_outputs)
    for t in (1, 2, 20):
        np.testing.assert_allclose(run.last(t), expected[t - 1], rtol=1e-10, atol=1e-12)
        norm = np.sqrt((expected[t - 1] * (K @ expected[t - 1])).sum())
        assert run.records["norm"][t - 1] == pytest.approx(norm, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("space", [None, GAUSSIAN], ids=["weights", "kernel"])
def test_the_largest_eigenvalue_is_met_from_above(space):
    X, y, weight = data(n=200)
    p = problem(X, y, weight, Objective("classification", losses.Logistic()), space)
    Phi = np.column_stack([X[15:], np.ones(len(X) - 15)])
    K = Phi @ Phi.T if space is None else GAUSSIAN.tile(X[15:], X[15:])
    roots = np.sqrt(p.learned.weight)
    true = np.linalg.eigvalsh(roots[:, None] * K * roots).max()
    found = largest_eigenvalue(p)
    assert true <= found <= 1.1 * true * (1 + 1e-9)


@pytest.mark.parametrize("loss", [losses.Logistic(), losses.SmoothedHinge(), losses.SquaredHinge(), losses.Square()])
def test_steps_for_smooth_losses_descend(loss):
    X, y, weight = data(n=200)
    p = problem(X, y, weight, Objective("classification", loss))
    run = descend(p, steps_of(step_size(p, loss, 0.0, "auto"), 0.0, 100))
    assert descends(run.records) and (np.diff(run.records["training_loss"]) <= 1e-12).all()
    assert step_size(p, loss, 0.0, "theory") <= step_size(p, loss, 0.0, "auto")
    assert not descends(descend(p, steps_of(50 * step_size(p, loss, 0.0, "auto"), 0.0, 20)).records)


KERNELS = {"linear": LINEAR, "rbf": Gaussian(0.3), "laplacian": Laplacian(0.2), "poly": Polynomial(3, 0.1, 1.0)}


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("most", [0, 70_000, 10**9])
def test_products_do_not_depend_on_the_tiles_that_are_kept(name, most, monkeypatch):
    kernel, gamma = KERNELS[name], getattr(KERNELS[name], "gamma", 1.0)
    monkeypatch.setattr(tiles, "BLOCK", 64)
    X, Z, c = drawn(0, 150).X, drawn(1, 70).X, np.random.default_rng(2).normal(size=(150, 2))
    products = []
    for bytes_kept in (0, most):
        monkeypatch.setattr(tiles, "MOST_BYTES", bytes_kept)
        square, oblong = Gram(kernel, X), Gram(kernel, Z, X)
        for _ in range(2):
            np.testing.assert_allclose(square @ c, gram(X, X, name, gamma) @ c, rtol=1e-10, atol=1e-11)
            np.testing.assert_allclose(oblong @ c, gram(Z, X, name, gamma) @ c, rtol=1e-10, atol=1e-11)
        products.append((square @ c).tobytes())
    assert products[0] == products[1]
    kept = sum(values.nbytes for values in square.tiles.values())
    assert kept == square.kept <= most and (most == 0 or kept > 0)
