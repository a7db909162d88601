"""Random streams: dense and sparse, repeated rows, zeros, huge and tiny scales."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from tunefree import losses
from tunefree.core import rows
from tunefree.losses.objectives import Objective


class Stream(NamedTuple):
    """A stream of labelled rows and the objective it is for."""

    X: np.ndarray  # (n, d)
    y: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)
    n_outputs: int
    objective: object


# Few, since each is compiled for each learner and kind of row.
OBJECTIVES = {
    "logistic": Objective("classification", losses.Logistic()),
    "smoothed": Objective("classification", losses.SmoothedHinge()),
    "multinomial": Objective("classification"),
    "against": Objective("classification", losses.Hinge()),
}


def _blocks(draw, scales):
    n, d = draw(st.integers(1, 40)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < draw(st.sampled_from([0.2, 0.7, 1.0])))
    if draw(st.booleans()):  # rows that come again
        X = X[rng.integers(0, max(1, n // 3), n)]
    exponents = rng.integers(-scales, scales + 1, d) if scales else np.zeros(d, int)
    return rng, np.ldexp(X, exponents)


@st.composite
def streams(draw, scales=20, weighted=True, kinds=tuple(OBJECTIVES)):
    """A stream whose features are scaled by up to 2**scales either way."""
    rng, X = _blocks(draw, scales)
    n = len(X)
    kind = draw(st.sampled_from(kinds))
    n_outputs = 1 if kind in ("logistic", "smoothed") else draw(st.integers(2, 4))
    y = rng.choice([-1.0, 1.0], n) if n_outputs == 1 else rng.integers(0, n_outputs, n).astype(float)
    objective = OBJECTIVES[kind]
    weight = 10.0 ** rng.uniform(-3, 3, n) if weighted and draw(st.booleans()) else np.ones(n)
    return Stream(X, y, weight, n_outputs, objective)


def as_dense(X):
    """The rows as a dense block, without a constant."""
    return rows.dense(X, intercept=False)


def words(X, first=1):
    """The non-zeros as sparse rows, whose features begin with ``first``."""
    i, j = np.nonzero(X)
    return rows.sparse(np.searchsorted(i, np.arange(len(X) + 1)), j + first, X[i, j])


def as_sparse(X):
    """The rows as a sparse block of their non-zeros, without a constant."""
    return words(X)._replace(constant=0.0)


def one_hot(features, d):
    """Columns (n, d) of zeros and ones that say which features, from 1 on, each row has; 0 stands for none."""
    return (features[:, :, None] == 1 + np.arange(d)).any(axis=1).astype(float)


def as_table(X):
    """The rows as a table: the first half of the columns as numbers, the rest as words."""
    half = X.shape[1] // 2
    block = rows.table(X[:, :half], np.arange(half) + 1, np.zeros((len(X), 0)), words(X[:, half:], half + 1))
    return block._replace(constant=0.0)


KINDS = {"dense": as_dense, "sparse": as_sparse, "table": as_table}
