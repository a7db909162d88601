"""Groups: dependent rows, such as rows of one patient, which resemble each other more than they resemble future rows.

All rows in a run of one group are predicted before any of them is learned, and rows of a known group are no evidence.
So all evidence is from new groups, like future rows. The mixture learns one row of a run: other rows would repeat the
same group. Short runs are taken together, as long as they are few compared with the rows learned before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from tunefree.pool.rows import PIECE

TOGETHER = 64  # runs predicted together have up to 1 / TOGETHER of the number of rows learned before


def digests(labels: Any) -> np.ndarray:
    """A 64-bit digest of each of the labels (n,), the same in each call; equal numbers have equal digests.

    >>> first, second, third = digests(["ann", "bob", "ann"]).tolist()
    >>> first == third, first == second, bool(digests([1])[0] == digests([1.0])[0])
    (True, False, True)
    """
    labels = np.asarray(labels)
    distinct, places = np.unique(labels.astype(str) if labels.dtype == object else labels, return_inverse=True)
    names = [np.format_float_positional(x, trim="-") if distinct.dtype.kind == "f" else str(x) for x in distinct]
    hashes = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names]
    return np.frombuffer(b"".join(hashes), np.uint64)[places]


def starts_of_runs(groups: np.ndarray) -> np.ndarray:
    """The index of the first row of each run of rows of one group.

    >>> starts_of_runs(np.array([7, 7, 5, 7]))
    array([0, 2, 3])
    """
    return np.flatnonzero(np.append(True, groups[1:] != groups[:-1])) if len(groups) else np.empty(0, np.int64)


def weights_of_one_row(groups: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights (n,) that keep one row of each run, the middle one of its rows of a weight above 0; 0 for other rows.

    >>> weights_of_one_row(np.array([7, 7, 7, 5]), np.ones(4))
    array([0., 1., 0., 1.])
    """
    weighted = np.flatnonzero(weights > 0.0)
    starts = starts_of_runs(groups[weighted])
    middles = weighted[(starts + np.append(starts[1:], len(weighted)) - 1) // 2]
    alone = np.zeros(len(weights))
    alone[middles] = weights[middles]
    return alone


def chunks(groups: np.ndarray, weights: np.ndarray, rows: int) -> Iterator[tuple[int, int]]:
    """Bounds of chunks of rows, cut between runs, after ``rows`` learned rows; longer than PIECE only for a run.

    >>> groups, weights = np.array([7, 7, 5, 5, 6]), np.ones(5)
    >>> list(chunks(groups, weights, 0)), list(chunks(groups, weights, 300))
    ([(0, 2), (2, 4), (4, 5)], [(0, 4), (4, 5)])
    """
    edges, start = np.append(starts_of_runs(groups), len(groups)), 0
    learned = rows + np.append(0, np.cumsum(weights > 0.0))
    while start < len(groups):
        least = min(start + min(max(int(learned[start]) // TOGETHER, 1), PIECE), len(groups))
        stop = int(edges[np.searchsorted(edges, least)])
        yield start, stop
        start = stop
