"""Blocks of rows as one array or sparse matrix, for estimators that need all rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tunefree.core.rows import Block
from tunefree.kernel.points import as_matrix, points
from tunefree.kernel.polynomial import LINEAR

DENSE_BYTES = 2**30  # rows that take at most this are stored as an array; columns of a sparse matrix are not centred


def matrix(blocks: list[Block], n_features: int, is_dense: bool | None = None) -> Any:
    """Blocks of rows as one array or sparse matrix, without the constant.

    Parameters
    ----------
    blocks : list of blocks of rows
    n_features : int
        Features of the model, the constant included; other features are left out.
    is_dense : bool, optional
        Whether to make an array of sparse rows; by default if it takes at most ``DENSE_BYTES``.

    Returns
    -------
    ndarray or csr_array of shape (n_rows, n_features - 1)
    """
    found = [as_matrix(points(X, LINEAR, np.float64)) for X in blocks]
    if all(isinstance(rows, np.ndarray) for rows in found):
        return np.concatenate(found)
    found = [_as_sparse(X, rows) for X, rows in zip(blocks, found, strict=True)]
    for rows in found:
        rows.resize((rows.shape[0], n_features))
    whole = sparse.vstack(found, format="csr")[:, 1:]
    is_dense = whole.shape[0] * whole.shape[1] * 8 <= DENSE_BYTES if is_dense is None else is_dense
    return whole.toarray() if is_dense else whole


def _as_sparse(X: Block, rows: Any) -> Any:
    """A block's rows as a sparse matrix in which feature 0 is the constant."""
    if sparse.issparse(rows):
        return rows
    n, d = rows.shape
    return sparse.csr_array((rows.reshape(-1), np.tile(X.columns, n), np.arange(n + 1) * d), shape=(n, 1 + d))
