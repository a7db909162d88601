"""Sums of squares over rows as views show them.

No matrix is made of the rows: entries are read where members have just read them. Four numbers of a column are taken at
a time, in registers, since a loop over as few numbers takes four times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core import compiled
from tunefree.core.rows import entry, n_rows, row, size
from tunefree.model.batch_rows import LARGEST

LANES = 4  # numbers that are taken at a time


def padded(numbers: np.ndarray) -> np.ndarray:
    """Numbers (n, M) with as many columns of 0 as whole lanes take, in memory of their own.

    Examples
    --------
    >>> padded(np.array([[1.0, 2.0]]))
    array([[1., 2., 0., 0.]])
    """
    n, width = numbers.shape
    made = np.zeros((n, -(-width // LANES) * LANES), numbers.dtype)
    made[:, :width] = numbers
    return made


def add_squares(X: Any, factors: np.ndarray, sums: np.ndarray, largest: np.ndarray) -> None:
    """Add the squares of the entries of rows, times factors (n, M) of each row, to sums (d, M), both padded.

    ``largest`` (d,) is the largest absolute value of each column so far.

    Examples
    --------
    >>> from tunefree.core.rows import sparse
    >>> sums, largest = np.zeros((3, 4)), np.zeros(3)
    >>> add_squares(sparse([0, 1, 2], [1, 1], [-3.0, 2.0]), padded(np.array([[1.0], [10.0]])), sums, largest)
    >>> sums[:, 0], largest
    (array([11., 49.,  0.]), array([1., 3., 0.]))
    """
    _add_squares(X, factors, sums, largest)


@compiled.entry
def _add_squares(X, factors, sums, largest):
    for i in range(n_rows(X)):
        x = row(X, i)
        for e in range(size(x)):
            j, x_j = entry(x, e)
            if j < len(largest) and abs(x_j) > largest[j]:
                largest[j] = min(abs(x_j), LARGEST)
        for m in range(0, sums.shape[1], LANES):
            f0, f1, f2, f3 = factors[i, m], factors[i, m + 1], factors[i, m + 2], factors[i, m + 3]
            for e in range(size(x)):
                j, x_j = entry(x, e)
                if j < len(sums):
                    value = min(abs(x_j), LARGEST)
                    square = value * value
                    sums[j, m] += f0 * square
                    sums[j, m + 1] += f1 * square
                    sums[j, m + 2] += f2 * square
                    sums[j, m + 3] += f3 * square
