"""Truths that rows are drawn from."""

import numpy as np
from scipy.special import expit

from tests.situations.situation import Case, Rows

TEST = 10_000  # rows


def cut(X: np.ndarray, y: np.ndarray, n: int, loss: str = "log") -> Case:
    """The first n rows to learn, the others to predict."""
    return Case(Rows(X[:n], y[:n]), Rows(X[n:], y[n:]), loss)


def labels(margins: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """0 or 1 with these log-odds."""
    return (rng.random(len(margins)) < expit(margins)).astype(np.int64)


def mixed_margins(X: np.ndarray) -> np.ndarray:
    """Something linear, a step, a product and a curve, of the first five columns."""
    return X[:, 0] - 0.7 * X[:, 1] + 1.5 * (X[:, 2] > 0.3) + X[:, 3] * X[:, 4] + np.sin(2 * X[:, 1]) - 0.7


def mixed(seed: int, n: int = 3000, n_test: int = TEST) -> Case:
    """Two classes, eight columns of which five matter in all the usual ways."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + n_test, 8))
    return cut(X, labels(mixed_margins(X), rng), n)


def mixed_numbers(seed: int, n: int = 3000, n_test: int = TEST) -> Case:
    """Numbers with the truth of :func:`mixed`, and noise of half its deviation."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + n_test, 8))
    return cut(X, mixed_margins(X) + rng.normal(size=len(X)), n, "square")


def linear(seed: int, n: int, n_columns: int, loss: str = "log", n_true: int | None = None) -> Case:
    """Two classes or numbers with a linear truth of the first columns, or of all."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + TEST, n_columns))
    n_true = n_columns if n_true is None else n_true
    truth = X[:, :n_true] @ rng.normal(size=n_true) * 2 / np.sqrt(n_true)
    return cut(X, labels(truth, rng) if loss == "log" else truth + rng.normal(size=len(X)), n, loss)
