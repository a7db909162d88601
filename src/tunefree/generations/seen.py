"""Which observations were seen before: a table of digests in bounded memory, where a later one takes an older's place.

A row that is a copy of an earlier one is no evidence: learners on leaves may remember that one, too.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from tunefree.core.kernels import kernel

PLACES = 2**18  # of digests; the place of one is its last bits
FREQUENT = 32  # rows of one observation, from which on one more is no copy to be remembered


@kernel
def _add(
    digests: Annotated[np.ndarray, "uint64[rows]"],
    weight: Annotated[np.ndarray, "float64[rows]"],
    most: int,
    table: Annotated[np.ndarray, "uint64[places]"],
    counts: Annotated[np.ndarray, "uint8[places]"],
    is_seen: Annotated[np.ndarray, "bool[rows]"],
) -> int:
    """Mark the rows whose observation was seen before, fewer than ``most`` times; see :meth:`Seen.add`.

    Returns how many observations became frequent.
    """
    n_frequent = 0
    for i in range(len(digests)):
        place = digests[i] & np.uint64(len(table) - 1)
        is_same = table[place] == digests[i] and counts[place] > 0
        is_seen[i] = is_same and counts[place] < most
        if weight[i] > 0.0:
            table[place] = digests[i]
            n_frequent += is_same and counts[place] == FREQUENT - 1
            counts[place] = min(counts[place] + 1, FREQUENT) if is_same else 1
    return n_frequent


def without_copies(keys: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of rows without copies of others, and their weights, to which those of the copies are added.

    Copies have the same key. Where there are FREQUENT of them or more, there are few values to observe, and each row
    counts for itself.

    Examples
    --------
    >>> without_copies(np.array([7, 8, 7]), np.array([1.0, 1.0, 2.0]))
    (array([0, 1]), array([3., 1.]))
    """
    _, first, place, counts = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    is_frequent = counts[place] >= FREQUENT
    kept = np.union1d(first, np.flatnonzero(is_frequent))
    return kept, np.where(is_frequent, weights, np.bincount(place, weights)[place])[kept]


class Seen:
    """The latest observations.

    Examples
    --------
    >>> Seen().add(np.array([5, 6, 5], np.uint64), np.ones(3))
    array([False, False,  True])
    """

    def __init__(self) -> None:
        self.table = np.zeros(0, np.uint64)  # (places,) digests; none before the first row
        self.counts = np.zeros(0, np.uint8)  # (places,) rows of each, at most FREQUENT; 0 where there is none
        self.n_frequent = 0  # observations that became frequent here

    def add(self, digests: np.ndarray, weight: np.ndarray, most: int = FREQUENT) -> np.ndarray:
        """Which rows (n,) have an observation that was seen before, but fewer than ``most`` times.

        Rows of a weight above 0 are seen from here on. Counts end at FREQUENT.
        """
        if not len(self.table):
            self.table, self.counts = np.zeros(PLACES, np.uint64), np.zeros(PLACES, np.uint8)
        is_seen = np.empty(len(digests), bool)
        self.n_frequent += _add(digests, weight, most, self.table, self.counts, is_seen)
        return is_seen

    def save_state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`restore` makes the same."""
        used = np.flatnonzero(self.counts)
        return {"seen.digests": self.table[used], "seen.counts": self.counts[used]}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`save_state` gave."""
        digests = np.array(arrays["seen.digests"], np.uint64)
        if not len(digests):
            return
        self.add(digests[:0], np.empty(0))
        places = (digests & np.uint64(PLACES - 1)).astype(np.int64)
        self.table[places], self.counts[places] = digests, arrays["seen.counts"]
