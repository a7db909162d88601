"""The rows to which predictions are compared: a contribution is relative to its mean over these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree.core.rows import Block, dense, n_rows, rows_at, table
from tunefree.generations.columns import Columns
from tunefree.pool.model import Model

MOST_ROWS = 1024  # of a reference


class Reference(NamedTuple):
    """Rows in the two ways in which members see them."""

    rows: Block | None  # None where there are none
    matrix: np.ndarray  # (r, c) under the keys of the columns that trees see; one row of which nothing is known if none

    @classmethod
    def of(cls, model: Model, of_table: bool, rows: Block | None = None) -> Reference:
        """Some rows, at most 1,024 of them, evenly spaced; else those that a pool keeps for growing, if it does.

        Words are in no rows that a pool keeps: there, and where there are no rows at all, words and numbers of linear
        members are compared to none, and to the centre of their column. ``of_table`` tells whether rows come from a
        table, and not from an array.
        """
        growth = None if model.pool is None else model.pool.members.growth
        columns = Columns() if growth is None else growth.columns
        if rows is None and growth is not None and growth.whole.rows:
            kept = columns.features(growth.whole.kept()["columns"])
            kept = kept[evenly_spaced(len(kept))]
            matrix = columns.completed(kept)
            return cls(_block(columns, matrix, bool(model.is_sparse), of_table), matrix)
        if rows is None or not n_rows(rows):
            return cls(None, np.full((1, len(columns.keys)), np.nan))
        rows = rows_at(rows, evenly_spaced(n_rows(rows)))
        return cls(rows, columns.matrix(rows))


def evenly_spaced(n: int, most: int = MOST_ROWS) -> np.ndarray:
    """The places of at most so many of n rows.

    >>> evenly_spaced(9, 3), evenly_spaced(2, 3)
    (array([0, 4, 8]), array([0, 1]))
    """
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def _block(columns: Columns, matrix: np.ndarray, is_sparse: bool, of_table: bool) -> Block:
    """Rows (r, c) under the keys of columns as the block of rows that they came from."""
    keys, known = np.array(columns.keys, np.int64), np.nan_to_num(matrix)
    if of_table:
        codes = np.flatnonzero(keys < 0)
        codes = codes[np.argsort(-1 - keys[codes])]
        numbers = np.flatnonzero((keys > 0) & np.isnan(columns.fills))
        of_codes = known[:, codes], columns.words_of(matrix), -1 - keys[codes]
        return table(known[:, numbers], keys[numbers], *of_codes)
    return columns.words_of(matrix) if is_sparse else dense(known[:, np.argsort(keys)])
