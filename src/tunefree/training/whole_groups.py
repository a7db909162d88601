"""Rows of one group are learned together: those wait to whose run, or with whose short runs, others may still come.

A run of rows of one group is predicted before any of it is learned, and short runs are taken together
(:mod:`tunefree.pool.groups`). So the latest rows wait for those that follow, and nothing depends on where batches are
cut. A checkpoint holds the rows that wait. Runs end where a file ends, and after ``MOST`` rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tunefree.core.errors import DataError
from tunefree.pool.groups import chunks, starts_of_runs
from tunefree.pool.pool import PIECE

MOST = 100_000  # rows of a run that wait


def n_complete(model: Any, y: Any, weight: np.ndarray, groups: np.ndarray, edges: Sequence[int]) -> int:
    """How many of some rows can be learned, whatever rows follow.

    Parameters
    ----------
    model : Model
    y : Labels or (n,) array
    weight : (n,) array
    groups : (n,) uint64 array
        Digests.
    edges : sequence of int
        Places from 0 on where the rows are cut in any case, as they are before a label that is new.

    Examples
    --------
    >>> from tunefree.pool.model import Model
    >>> n_complete(Model("regression"), np.zeros(5), np.ones(5), np.array([7, 7, 5, 6, 6]), [0])
    3
    """
    if not len(weight):
        return 0
    new = model.codes(y)[1] if model.task == "classification" else []
    start = max([*edges, *(row for row, _ in new)])
    rows = model.pool.rows + np.count_nonzero(weight[:start] > 0.0)
    *_, (first, _) = chunks(groups[start:], weight[start:], rows, PIECE)
    return start + first


def within_runs(groups: np.ndarray) -> list[int]:
    """Where runs are cut that are longer than ``MOST``."""
    edges = [*starts_of_runs(groups).tolist(), len(groups)]
    return [place for start, stop in pairwise(edges) for place in range(start + MOST, stop, MOST)]


def check_several(groups: np.ndarray, file: str, column: str | None, is_all: bool) -> None:
    """Raise an error if the first rows are of one single group, and all or many."""
    if not len(groups) or (groups != groups[0]).any() or not (is_all or len(groups) >= MOST):
        return
    which = "all rows" if is_all else f"the first {MOST:,} rows"
    remedy = "name a column of several groups, or leave `group` out"
    raise DataError(f"{which} are of one group, {groups[0]!r}", file, column=column, remedy=remedy)
