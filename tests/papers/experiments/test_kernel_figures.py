"""What the figures of kernel learners are made of, against a few lines of NumPy."""

import numpy as np
import pytest

from tunefree.papers.experiments import descents, matrices, path_fig1, pistol_fig3, sgd_fig2
from tunefree.papers.experiments.sgd_fig1 import strips
from tunefree.papers.kernel.usual import LINEAR


def test_sgd_is_algorithm_1():
    x, y = strips(40, 0.25, np.random.default_rng(3))
    stops = np.array([1, 17, 40])
    played = sgd_fig2.descent(x, y, 0.01, 30.0, stops)
    w, total, mass, expected, losses = np.zeros(3), np.zeros(3), 0.0, [], []
    for t, (row, label) in enumerate(zip(np.column_stack([np.ones(40), x]), y, strict=True), 1):
        total, mass = total + (30.0 + t - 1.0) * w, mass + 30.0 + t - 1.0
        losses.append(np.logaddexp(0.0, -label * (row @ w)))
        rate, slope = 2.0 / (0.01 * (30.0 + t)), -label / (1.0 + np.exp(label * (row @ w)))
        w = (1.0 - rate * 0.01) * w - rate * slope * row
        expected.append([w, (total + (30.0 + t) * w) / (mass + 30.0 + t)])
    np.testing.assert_allclose(np.squeeze(played.functions, -1), [expected[t - 1] for t in stops], rtol=1e-9)
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
    g, total, alpha, b = np.zeros(n), np.zeros(n), 0.25 * 2.0, np.sqrt(2.0 * 0.25 * 2.0 * n)

    def function():
        return g * b / alpha * np.exp(g @ K @ g / (2.0 * alpha))

    for t in range(n):
        total += function()
        margin = y[t] * (function() @ K[t])
        slope = 0.0 if margin >= 1.0 else -2.0 * y[t] * min(1.0 - margin, 1.0)  # of the smoothed hinge
        g[t], alpha = -slope, alpha + 0.25 * abs(slope)
    functions = pistol_fig3.fit("pistol", case, X, y, 0.0)
    np.testing.assert_allclose(functions["last"](X), K @ function(), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(functions["average"](X), K @ total / n, rtol=1e-3, atol=1e-3)
