"""Observations that were learned: a table of digests in bounded memory, where a later one takes an older's place.

A row whose observation was learned before is *known*: trees and learners on their leaves may remember its target. All
other rows are *new*. The pool judges its members on both kinds apart (:mod:`tunefree.pool.contexts`).
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.core.part import LEARNED, Part, array

PLACES = 2**18  # of digests; the place of one is its last bits


@compiled
def _add(
    digests: Annotated[np.ndarray, "uint64[rows]"],
    weight: Annotated[np.ndarray, "float64[rows]"],
    table: Annotated[np.ndarray, "uint64[places]"],
    is_known: Annotated[np.ndarray, "bool[rows]"],
) -> None:
    """Mark the rows whose observation is in the table, and add rows of weight above 0, one after the other."""
    for i in range(len(digests)):
        place = digests[i] & np.uint64(len(table) - 1)
        is_known[i] = table[place] == digests[i]
        if weight[i] > 0.0:
            table[place] = digests[i]


class Seen(Part):
    """The latest observations that were learned: a table of digests, 0 where there is none.

    >>> seen = Seen()
    >>> seen.add(np.array([5, 6, 5], np.uint64), np.ones(3)), seen.knows(np.array([6, 7], np.uint64))
    (array([False, False,  True]), array([ True, False]))
    """

    table = array("uint64", (None,), LEARNED, read=lambda seen: seen.digests, write=lambda seen, of: seen.put(of))

    def __init__(self) -> None:
        self.table = np.zeros(0, np.uint64)

    def add(self, digests: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """A mask (n,) of the rows whose observation was learned before; rows of weight above 0 are added."""
        if not len(self.table):
            self.table = np.zeros(PLACES, np.uint64)
        is_known = np.empty(len(digests), bool)
        _add(digests, weight, self.table, is_known)
        return is_known

    def knows(self, digests: np.ndarray) -> np.ndarray:
        """Which rows (n,) to come have an observation that was learned."""
        if not len(self.table):
            return np.zeros(len(digests), bool)
        is_known: np.ndarray = self.table[_places(digests)] == digests
        return is_known

    @property
    def digests(self) -> np.ndarray:
        """All observations in the table."""
        return self.table[np.flatnonzero(self.table)]

    def put(self, digests: np.ndarray) -> None:
        """Begin with a table of these."""
        self.table = np.zeros(PLACES if len(digests) else 0, np.uint64)
        self.table[_places(digests)] = digests


def _places(digests: np.ndarray) -> np.ndarray:
    return (digests & np.uint64(PLACES - 1)).astype(np.int64)
