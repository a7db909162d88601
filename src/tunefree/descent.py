"""The regularization path of a source: all of it is read into memory, and the subgradient method descends once.

Rows are encoded as for online learning, without their constant, which the estimator has itself.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from tunefree.errors import DataError, ModelError
from tunefree.estimators.path import IterativeRegularizationClassifier, IterativeRegularizationRegressor
from tunefree.kernel.kernels import Polynomial
from tunefree.kernel.points import as_matrix, points
from tunefree.rows import Dense, n_rows
from tunefree.stream.batch import BadRows, Batch
from tunefree.stream.source import Source
from tunefree.training import Plan, ahead, begin, target_of

DENSE_BYTES = 2**30  # rows of a table are laid out as an array up to so many bytes: only then are columns centred
KERNELS = ("linear", "rbf", "laplacian", "poly")
MOST_SHOWN = 24  # iterations in a table, the chosen one apart


@dataclass
class Descended:
    """A path, and what it is of."""

    estimator: Any
    plan: Plan
    task: str
    rows: int
    skipped: int
    seconds: float

    @property
    def path(self) -> Any:
        """A record for each iteration."""
        return self.estimator.path_

    @property
    def stop(self) -> int:
        """The iteration chosen."""
        return int(self.estimator.n_iter_)

    def shown(self) -> list[int]:
        """Iterations for a table: as if evenly spaced on a logarithmic scale, and the chosen one."""
        spaced = np.geomspace(1, len(self.path), min(MOST_SHOWN, len(self.path)))
        return sorted({*np.round(spaced).astype(int).tolist(), self.stop})


def descend(source: Source, plan: Plan, kernel: str | None = None, iterations: int = 500) -> Descended:
    """Read a source and compute its path, which is stopped where rows held out are predicted best.

    Parameters
    ----------
    source : Source
    plan : Plan
        Of it what tells how to read, the task and the loss.
    kernel : {"linear", "rbf", "laplacian", "poly"}, optional
        None for weights of the features.
    iterations : int, default 500
        Length of the path.

    Raises
    ------
    DataError, ModelError
        If a row cannot be used, or rows and loss make no problem that can be learned.

    Examples
    --------
    >>> from tunefree.stream.source import open_source
    >>> table = {"age": list(range(20, 70)) * 4, "rich": (["no"] * 25 + ["yes"] * 25) * 4}
    >>> found = descend(open_source(table), Plan(target="rich"), iterations=20)
    >>> found.rows, len(found.path), bool(found.path.training_error[-1] < 0.05)
    (200, 20, True)
    """
    if kernel not in (None, *KERNELS):
        raise ModelError(f"unknown kernel {kernel!r}; choose one of {', '.join(KERNELS)}")
    if iterations < 1:
        raise ModelError(f"the number of iterations must be at least 1, not {iterations}")
    bad = BadRows(plan.skip_bad_rows)
    task, _, _, batches = begin(source, plan, bad)
    read = list(ahead(batches))
    weight = np.concatenate([batch.weight for batch in read])
    if not weight.any():
        raise DataError("no row could be used", source.name, remedy="see the messages about skipped rows")
    chosen: dict[str, Any] = {} if plan.loss is None else {"loss": plan.loss}
    kind: Any = IterativeRegularizationClassifier if task == "classification" else IterativeRegularizationRegressor
    estimator = kind(kernel=kernel, max_iter=int(iterations), **chosen)
    started = time.perf_counter()
    try:
        estimator.fit(matrix([batch.rows for batch in read]), _targets(task, read), sample_weight=weight)
    except ValueError as error:
        raise ModelError(str(error)) from None
    return Descended(estimator, plan, task, len(weight), bad.count, time.perf_counter() - started)


def matrix(blocks: list[Any]) -> Any:
    """Blocks of rows as one array or sparse matrix, without the constant."""
    linear = Polynomial(1, 1.0, 0.0)
    found = [as_matrix(points(X, linear, np.float64)) for X in blocks]
    if all(isinstance(part, np.ndarray) for part in found):
        return np.concatenate(found)
    parts = [_scattered(X, part) for X, part in zip(blocks, found, strict=True)]
    width = max(part.shape[1] for part in parts)
    for part in parts:
        part.resize((part.shape[0], width))
    whole = sparse.vstack(parts, format="csr")[:, 1:]
    return whole.toarray() if whole.shape[0] * whole.shape[1] * 8 <= DENSE_BYTES else whole


def _scattered(X: Any, part: Any) -> Any:
    """A block's rows as a sparse matrix in which feature 0 is the constant."""
    if sparse.issparse(part):
        return part
    columns = np.arange(1, part.shape[1] + 1) if isinstance(X, Dense) else X.columns
    pointers = np.arange(n_rows(X) + 1) * len(columns)
    shape = (n_rows(X), 1 + int(columns.max(initial=0)))
    return sparse.csr_array((part.reshape(-1), np.tile(columns, n_rows(X)), pointers), shape=shape)


def _targets(task: str, read: list[Batch]) -> np.ndarray:
    """Numbers, or codes of the classes in the order in which they come."""
    found = [target_of(task, batch) for batch in read]
    if task == "regression":
        return np.concatenate(found)
    numbers: dict[Any, int] = {}
    codes = []
    for labels in found:
        own = np.array([numbers.setdefault(value, len(numbers)) for value in labels.values], np.int64)
        codes.append(own[labels.codes])
    return np.concatenate(codes)
