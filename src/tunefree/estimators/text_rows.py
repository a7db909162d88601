"""Rows of models that learned lines of text: such lines, or of svmlight text matrices of the indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tunefree.core.errors import DataError
from tunefree.core.rows import sparse as sparse_rows
from tunefree.stream.batch import Chunk, Position, Refused
from tunefree.stream.svmlight import SvmlightEncoder

NAME = "X"  # what messages call the rows


def rows_of(encoder: Any, X: Any, learning: bool) -> Any:
    """A block of rows.

    ``X``: lines; or rows whose column j has the index j + 1, or j if indices are from 0.
    ``learning``: whether features that are new are learned; else they are left out.
    """
    if _are_lines(X):
        return _of_lines(encoder, X, learning)
    if isinstance(encoder, SvmlightEncoder):
        return _of_indices(encoder, X, learning)
    raise DataError("the model reads lines of text", NAME, remedy="pass them as strings, or predict files of them")


def _are_lines(X: Any) -> bool:
    """Whether X is a sequence of strings."""
    if sparse.issparse(X) or isinstance(X, (str, dict)) or hasattr(X, "columns"):
        return False
    return np.ndim(X) == 1 and len(X) > 0 and all(isinstance(line, str) for line in X)


def _of_lines(encoder: Any, X: Any, learning: bool) -> Any:
    lines = [line.rstrip("\r\n") for line in X]
    for row, line in enumerate(lines, 1):
        if not line.strip() or "\n" in line:
            raise DataError("each string must be one line of text, and not empty", NAME, row)
    text = np.frombuffer("\n".join(lines).encode(), np.uint8)
    return encoder.encode(Chunk(text, NAME, 1, Position()), learning, Refused(), False).rows


def _of_indices(encoder: SvmlightEncoder, X: Any, learning: bool) -> Any:
    matrix = sparse.csr_array(X, dtype=np.float64)
    matrix.check_format(full_check=True)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise DataError("a value is not finite", NAME, remedy="leave out features of unknown value")
    ids = encoder.ids_of(matrix.indices, learning)
    known = ids > 0
    pointers = np.append(0, np.cumsum(known))[matrix.indptr]
    return sparse_rows(pointers, ids[known], matrix.data[known])
