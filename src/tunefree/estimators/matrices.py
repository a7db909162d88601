"""Blocks of rows as one array or sparse matrix, for estimators that need all rows at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tunefree.core.rows import Block, compressed, n_rows, reach

DENSE_BYTES = 2**30  # rows that take at most this are stored as an array; columns of a sparse matrix are not centred


def matrix(blocks: list[Block], n_features: int, is_dense: bool | None = None) -> Any:
    """Blocks of rows as one array or sparse matrix, without the constant.

    ``n_features``: features of the model, the constant included; other features are left out.
    ``is_dense``: whether to make an array of sparse rows; by default if it takes at most ``DENSE_BYTES``.
    """
    if all(X.numbers.shape[1] and not X.is_table for X in blocks):
        return np.concatenate([X.numbers for X in blocks])
    whole = sparse.vstack([_as_sparse(X, n_features) for X in blocks], format="csr")[:, 1:]
    is_dense = whole.shape[0] * whole.shape[1] * 8 <= DENSE_BYTES if is_dense is None else is_dense
    return whole.toarray() if is_dense else whole


def _as_sparse(X: Block, n_features: int) -> sparse.csr_array:
    """A block's rows as a sparse matrix, whose column 0, of the constant, is empty."""
    pointers, features, values = compressed(X)
    rows = sparse.csr_array((values, features, pointers), shape=(n_rows(X), reach(X)))
    rows.resize((n_rows(X), n_features))
    return rows
