"""Tables of every kind for the tests of additive features, and their features by definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.additive.features import AdditiveFeatures
from tunefree.core.rows import Sparse, Table, read_only, sparse, table

FIRST_CODE = 100  # features below are dense columns


def table_of(
    numbers: np.ndarray,
    codes: np.ndarray | None = None,
    code_columns: Any = None,
    words: Sparse | None = None,
) -> Table:
    """Rows of numbers, whose codes count from 1; the features of codes and words do not meet those of numbers."""
    n, p = numbers.shape
    codes = np.zeros((n, 0), int) if codes is None else np.where(codes > 0, FIRST_CODE + codes, 0)
    return table(numbers, np.arange(1, p + 1), codes, words, code_columns)


def altered(rows: Table, **fields: Any) -> Table:
    """The rows with other numbers or codes, in memory of the kind that rows have, so that nothing is compiled anew."""
    return rows._replace(**{name: read_only(value, getattr(rows, name).dtype) for name, value in fields.items()})


def words_of(rng: np.random.Generator, n: int, most: int, vocabulary: int) -> Sparse:
    """Up to so many words a row, from features 1000 on."""
    picked = [np.sort(rng.permutation(vocabulary)[: rng.integers(0, most + 1)]) for _ in range(n)]
    pointers = np.concatenate([[0], np.cumsum([len(row) for row in picked])])
    places = np.concatenate([np.zeros(0, int), *picked])
    return sparse(pointers, 1000 + places, rng.normal(size=len(places)))


def features_of(rows: Table, n_outputs: int = 1) -> AdditiveFeatures:
    """Features that all rows fixed, and that know all of their codes and words."""
    features = AdditiveFeatures(rows, np.arange(len(rows.numbers)), n_outputs)
    features.meet(rows, np.ones(len(rows.numbers)))
    return features


def dense_of(X: Sparse, n_features: int) -> np.ndarray:
    """Sparse rows (n, d) with all their zeros; no row has a feature twice."""
    made = np.zeros((len(X.pointers) - 1, n_features))
    row = np.repeat(np.arange(len(made)), np.diff(X.pointers))
    assert len(set(zip(row.tolist(), X.features.tolist(), strict=True))) == len(row)
    made[row, X.features] = X.values
    return made


def hats(knots: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The functions of level 0 (n, m), by interpolation of unit vectors; of two knots only the second has one."""
    if len(knots) == 1:
        return np.zeros((len(numbers), 1))
    values = np.stack([np.interp(numbers, knots, unit) for unit in np.eye(len(knots))], axis=1)
    return values * [0.0, 1.0] if len(knots) == 2 else values
