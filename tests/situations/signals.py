"""What there is to learn: nothing, something linear, steps, interactions, hidden among noise."""

import numpy as np

from tests.situations.situation import Case
from tests.situations.truths import TEST, cut, labels, linear


def noise(seed: int, n: int) -> Case:
    """Nothing to learn: the best is the share of each class."""
    rng = np.random.default_rng(seed)
    return cut(rng.normal(size=(n + TEST, 10)), rng.integers(2, size=n + TEST), n)


def noise_of_classes(seed: int) -> Case:
    """Nothing to learn about ten classes of unequal shares."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, 11) / 55
    return cut(rng.normal(size=(2000 + TEST, 10)), rng.choice(10, 2000 + TEST, p=shares), 2000)


def noise_of_numbers(seed: int, n: int) -> Case:
    """Nothing to learn: the best is the mean."""
    rng = np.random.default_rng(seed)
    return cut(rng.normal(size=(n + TEST, 10)), rng.normal(size=n + TEST), n, "square")


def noise_columns(seed: int) -> Case:
    """Five columns of a hundred matter."""
    return linear(seed, 1000, 100, n_true=5)


def noise_columns_with_steps(seed: int) -> Case:
    """Three columns of sixty matter, by steps, so that linear models do not find them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000 + TEST, 60))
    y = 2.0 * (X[:, 0] > 0.5) + (np.abs(X[:, 1]) < 0.5) - (X[:, 2] > 1) + 0.5 * rng.normal(size=len(X))
    return cut(X, y, 2000, "square")


def wide(seed: int, n: int) -> Case:
    """More columns than rows: whoever fits all of them fits noise."""
    return linear(seed, n, 5 * n // 2, n_true=10)


def wide_numbers(seed: int) -> Case:
    """More columns than rows, and numbers to predict."""
    return linear(seed, 300, 600, "square", n_true=20)


def linear_classes(seed: int, n: int) -> Case:
    """A linear truth, where trees are a waste."""
    return linear(seed, n, 10)


def linear_numbers(seed: int, n: int) -> Case:
    """A linear truth with noise, where trees are a waste."""
    return linear(seed, n, 10, "square")


def exact_numbers(seed: int) -> Case:
    """A linear truth with hardly any noise: anything beside the linear model shows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000 + TEST, 6))
    return cut(X, X @ rng.normal(size=6) + 0.05 * rng.normal(size=len(X)), 1000, "square")


def steps(seed: int) -> Case:
    """Steps in a few columns, which trees know and lines do not."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(2000 + TEST, 6))
    return cut(X, labels(3 * (X[:, 0] > 0.6) - 2 * (X[:, 1] > 0.3) + 2 * (np.abs(X[:, 2] - 0.5) < 0.2), rng), 2000)


def exclusive_or(seed: int) -> Case:
    """Two columns matter only together."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000 + TEST, 6))
    return cut(X, labels(np.where((X[:, 0] > 0) ^ (X[:, 1] > 0), 2.5, -2.5), rng), 1000)


def products(seed: int) -> Case:
    """Products of columns, smooth, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000 + TEST, 6))
    return cut(X, X[:, 0] * X[:, 1] + X[:, 2] * X[:, 3] + 0.5 * rng.normal(size=len(X)), 2000, "square")


def waves(seed: int) -> Case:
    """A smooth curve of one column and a line of another."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(1500 + TEST, 5))
    return cut(X, np.sin(3 * X[:, 0]) + 0.5 * X[:, 1] + 0.4 * rng.normal(size=len(X)), 1500, "square")


def separable(seed: int) -> Case:
    """Classes that a line separates: log-odds have no bound, and every error is dear."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600 + TEST, 5))
    return cut(X, (X @ rng.normal(size=5) > 0).astype(np.int64), 600)
