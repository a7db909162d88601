"""Columns as they come: heavy tails, constants, copies, numbers of rows, gaps, units."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from tests.situations.situation import Case
from tests.situations.truths import TEST, cut, labels, mixed, mixed_numbers


def table(X: np.ndarray) -> pd.DataFrame:
    """A table with these columns, whose gaps are missing values."""
    return pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])


def with_columns(case: Case, change: Callable[[np.ndarray], Any]) -> Case:
    """Training rows and test rows with other columns."""
    return case._replace(
        train=case.train._replace(X=change(case.train.X)), test=case.test._replace(X=change(case.test.X))
    )


def heavy_columns(seed: int) -> Case:
    """Columns without a variance, as sums of money are."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(1.2, size=(2000 + TEST, 8))
    return cut(X, labels(np.arcsinh(X[:, 0]) - np.arcsinh(X[:, 1]) + (X[:, 2] > 0), rng), 2000)


def heavy_columns_of_numbers(seed: int) -> Case:
    """Log-normal columns, and numbers that follow their logarithms."""
    rng = np.random.default_rng(seed)
    logarithms = rng.normal(size=(2000 + TEST, 6))
    y = logarithms @ rng.normal(size=6) + rng.normal(size=len(logarithms))
    return cut(np.exp(3 * logarithms), y, 2000, "square")


def constant_columns(seed: int) -> Case:
    """Columns that never vary say nothing."""
    return with_columns(mixed(seed), lambda X: np.hstack([X, np.full((len(X), 5), 7e5), np.zeros((len(X), 5))]))


def copied_columns(seed: int) -> Case:
    """One column ten times: linear models must not learn it ten times as fast, nor trees see nothing else."""
    return with_columns(mixed(seed), lambda X: np.hstack([X, np.repeat(X[:, :1], 10, axis=1)]))


def row_numbers(seed: int) -> Case:
    """A number of each row, large and of no meaning."""
    case = mixed(seed)
    numbers = 1e7 + np.random.default_rng(seed).permutation(len(case.train.y) + len(case.test.y))
    first, last = numbers[: len(case.train.y), None], numbers[len(case.train.y) :, None]
    return case._replace(
        train=case.train._replace(X=np.hstack([first, case.train.X])),
        test=case.test._replace(X=np.hstack([last, case.test.X])),
    )


def missing_at_random(seed: int) -> Case:
    """A fifth of the values of a table is missing."""
    rng = np.random.default_rng(seed)
    return with_columns(mixed(seed), lambda X: table(np.where(rng.random(X.shape) < 0.2, np.nan, X)))


def missing_where_large(seed: int) -> Case:
    """Large values of a table are missing, so that a gap says something."""
    return with_columns(mixed_numbers(seed), lambda X: table(np.where(X > 0.8, np.nan, X)))


def large_offsets(seed: int) -> Case:
    """Columns far from zero, as years and coordinates are."""
    case = mixed_numbers(seed)
    return with_columns(case, lambda X: X + np.array([2000, 1e6, -1e6, 1e4, 50, 1e5, 0, 1e3]))


def few_values(seed: int, values: int) -> Case:
    """Columns of few values, so that many rows are alike; an effect of each cell is added to those of its values."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, values, (2000 + TEST, 3))
    effects = sum(rng.normal(size=values)[X[:, j]] for j in range(3)) + 0.7 * rng.normal(size=(values,) * 3)[tuple(X.T)]
    return cut(X.astype(float), labels(effects, rng), 2000)


def few_values_of_numbers(seed: int) -> Case:
    """Numbers of 216 cells, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, (2000 + TEST, 3))
    return cut(X.astype(float), rng.normal(size=(6, 6, 6))[tuple(X.T)] + rng.normal(size=len(X)), 2000, "square")


def tiny_scales(seed: int) -> Case:
    """Columns of the size of 1e-9: units are nobody's business."""
    return with_columns(mixed(seed), lambda X: 1e-9 * X)


def unlike_scales(seed: int) -> Case:
    """Each column is a thousand times larger than the one before."""
    return with_columns(mixed(seed), lambda X: X * 1000.0 ** np.arange(-4, X.shape[1] - 4))


def correlated_columns(seed: int) -> Case:
    """Columns that are nearly equal, and their small differences are what matters."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1500 + TEST, 1)) + 0.1 * rng.normal(size=(1500 + TEST, 6))
    return cut(X, labels(10 * (X[:, 0] - X[:, 1]) + 10 * (X[:, 2] - X[:, 3]), rng), 1500)
