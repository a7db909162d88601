"""What the figures of kernel learners are made of, against a few lines of NumPy."""

import numpy as np
import pytest

from tests import naive
from tests.papers.test_twins import plain_pistol
from tunefree.losses import SmoothedHinge
from tunefree.papers.experiments import descents, matrices, path_fig1, pistol_fig3, sgd_fig2
from tunefree.papers.experiments.sgd_fig1 import strips
from tunefree.papers.kernel.usual import LINEAR


def test_sgd_is_algorithm_1():
    x, y = strips(40, 0.25, np.random.default_rng(3))
    stops = np.array([1, 17, 40])
    played = sgd_fig2.descent(x, y, 0.01, 30.0, stops)
    rows, expected = np.column_stack([np.ones(40), x]), []
    for t in stops:
        slope = lambda t, margins: -y[t] / (1.0 + np.exp(y[t] * margins))  # noqa: E731
        margins, *functions = naive.kernel_regularized_sgd(rows[:t] @ rows[:t].T, slope, 1, np.ones(t), 0.01, 30.0)
        expected.append([rows[:t].T @ function[:, 0] for function in functions])
    losses = np.logaddexp(0.0, -y * margins[:, 0])
    np.testing.assert_allclose(np.squeeze(played.functions, -1), expected, rtol=1e-9)
    np.testing.assert_allclose(np.logaddexp(0.0, -y * played.predictions[:, 0]), losses, rtol=1e-9)
    assert sgd_fig2.progressive_loss(x, y, 0.01, 30.0) == pytest.approx(np.mean(losses), rel=1e-9)


def test_paths_are_those_of_algorithm_1():
    random = np.random.default_rng(0)
    train, test = path_fig1.gaussians(50, random), path_fig1.gaussians(40, random)
    descent = descents.path_of(LINEAR, train, test, 1.0, 0.5, 30)
    w = np.zeros(2)
    errors = descents.errors_of(descent)
    for t in range(1, 31):
        for sample, kind in ((train, "training"), (test, "test")):
            wrong = (sample.x @ w > 0) != (sample.y > 0)
            assert errors[kind][t - 1] == pytest.approx(wrong.mean())
        slopes = np.where(train.y * (train.x @ w) <= 1.0, -train.y, 0.0)
        w = w - t**-0.5 * (slopes @ train.x) / 50
    assert train.x.T @ descent.last(30)[:, 0] == pytest.approx(w + 30**-0.5 * (slopes @ train.x) / 50)


def test_pistol_is_algorithm_3_with_the_settings_of_the_appendix():
    random, n = np.random.default_rng(0), 120
    X = random.normal(size=(n, 2))
    y = np.where(np.sum(X**2, axis=1) < 1.2, 1.0, -1.0)
    case = matrices.CASES[0]._replace(gamma=0.5)
    K = np.exp(-0.5 * np.sum((X[:, None] - X) ** 2, axis=2))
    slope = lambda t, margin: SmoothedHinge().slope(y[t], margin)  # noqa: E731
    _, last, average = plain_pistol(K, slope, 0.25, np.sqrt(2.0 * 0.25 * 2.0 * n), 2.0)
    functions = pistol_fig3.fit("pistol", case, X, y, 0.0)
    np.testing.assert_allclose(functions["last"](X), last, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(functions["average"](X), average, rtol=1e-3, atol=1e-3)
