"""Rare classes, and many."""

import numpy as np

from tests.situations.situation import Case, Rows
from tests.situations.truths import TEST, cut, labels

RARE_TEST = 40_000  # rows, so that there are some positives


def rare(seed: int, rate_and_rows: tuple[float, int]) -> Case:
    """Rare positives: few of them judge anything, and a wrong base rate costs more than all the columns gain."""
    rate, n = rate_and_rows
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + RARE_TEST, 5))
    margins = X @ np.array([1.0, -0.8, 0.6, 0.0, 0.0])
    y = labels(margins + intercept(margins, rate), rng)
    n_positive = max(1, round(rate * n))
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    rows = rng.permutation(np.concatenate([positive[:n_positive], negative[: n - n_positive]]))
    others = np.concatenate([positive[n_positive:], negative[n - n_positive :]])
    return Case(Rows(X[rows], y[rows]), Rows(X[others], y[others]))


def intercept(margins: np.ndarray, rate: float) -> float:
    """What to add to log-odds so that their mean probability is this rate."""
    low, high = -30.0, 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (1 / (1 + np.exp(-margins - middle))).mean() < rate else (low, middle)
    return low


def many(seed: int, classes_and_rows: tuple[int, int]) -> Case:
    """Few rows of each class: what is known of one class is little, and there are many."""
    n_classes, n_each = classes_and_rows
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_classes * n_each + TEST)
    y[:n_classes] = np.arange(n_classes)
    centres = rng.normal(size=(n_classes, 10))
    return cut(centres[y] + 0.8 * rng.normal(size=(len(y), 10)), y, n_classes * n_each)


def single_rows(seed: int) -> Case:
    """Some classes have one row: they cannot be learned, and must not spoil the others."""
    rng = np.random.default_rng(seed)
    counts = np.array([150, 120, 100, 80, 50, 1, 1, 1, 1])
    centres = rng.normal(size=(len(counts), 6))
    y = np.concatenate([np.repeat(np.arange(len(counts)), counts), rng.choice(len(counts), TEST, p=counts / 504)])
    rows = np.concatenate([rng.permutation(504), np.arange(504, len(y))])
    return cut(centres[y[rows]] + rng.normal(size=(len(y), 6)), y[rows], 504)


def unequal_sizes(seed: int) -> Case:
    """Ten classes, each half as large as the one before: boosting goes astray on the smallest."""
    rng = np.random.default_rng(seed)
    shares = 0.5 ** np.arange(10.0)
    y = rng.choice(10, 3000 + TEST, p=shares / shares.sum())
    y[:10] = np.arange(10)
    centres = rng.normal(size=(10, 8))
    return cut(centres[y] + 1.2 * rng.normal(size=(len(y), 8)), y, 3000)
