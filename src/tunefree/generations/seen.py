"""Learned observations: a hash table of digests in bounded memory, where later digests replace earlier ones.

A row whose observation was learned before is *known*: trees and learners on their leaves may remember its target. All
other rows are *new*. The pool evaluates its members separately on the two (:mod:`tunefree.pool.contexts`).
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.core.part import LEARNED, Part, array, scratch

PLACES = 2**18  # slots of digests; the last bits of a digest are its slot
FEWEST = 2**6  # entries of the smallest table


def entry_of(digest, table):
    """The place in a table of a digest, or of free space for it: as long as it is small, behind its entry."""
    entry = digest & np.uint64(len(table) - 1)
    while table[entry] != np.uint64(0) and (table[entry] ^ digest) & np.uint64(PLACES - 1) != np.uint64(0):
        entry = (entry + np.uint64(1)) & np.uint64(len(table) - 1)
    return entry


@compiled
def _add(
    digests: Annotated[np.ndarray, "uint64[rows]"],
    weight: Annotated[np.ndarray, "float64[rows]"],
    table: Annotated[np.ndarray, "uint64[entries]"],
    is_known: Annotated[np.ndarray, "bool[rows]"],
) -> None:
    """Mark the rows whose observation is in the table, and add rows of weight above 0, one after the other."""
    for i in range(len(digests)):
        entry = entry_of(digests[i], table)
        is_known[i] = table[entry] == digests[i]
        if weight[i] > 0.0:
            table[entry] = digests[i]


class Seen(Part):
    """The latest learned observations: a hash table of digests, with 0 for empty entries.

    The table grows so that at most half of its entries are used, until there is an entry for each slot.

    >>> seen = Seen()
    >>> seen.add(np.array([5, 6, 5], np.uint64), np.ones(3)), seen.knows(np.array([6, 7], np.uint64))
    (array([False, False,  True]), array([ True, False]))
    """

    table = array("uint64", (None,), LEARNED, read=lambda seen: seen.digests, write=lambda seen, of: seen.put(of))
    _room = scratch(lambda seen: 0)  # digests that can be added at least before they have to be counted

    def __init__(self) -> None:
        self.put(np.zeros(0, np.uint64))

    def add(self, digests: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """A mask (n,) of the rows whose observation was learned before; rows of weight above 0 are added."""
        if len(digests) > self._room and len(self.table) < PLACES:
            self.put(self.digests, len(digests))
        self._room -= len(digests)
        is_known = np.empty(len(digests), bool)
        _add(digests, weight, self.table, is_known)
        return is_known

    def knows(self, digests: np.ndarray) -> np.ndarray:
        """A mask (n,) of the rows whose observation was learned."""
        is_known = np.empty(len(digests), bool)
        _add(digests, np.zeros(len(digests)), self.table, is_known)
        return is_known

    @property
    def digests(self) -> np.ndarray:
        """All digests in the table, in the order of their slots."""
        digests = self.table[np.flatnonzero(self.table)]
        return digests[np.argsort(digests & np.uint64(PLACES - 1))]

    def put(self, digests: np.ndarray, n_more: int = 0) -> None:
        """Replace the table by one with these digests, and room for more."""
        half = max(len(digests) + n_more, FEWEST // 2)
        self.table = np.zeros(min(2 ** (2 * half - 1).bit_length(), PLACES), np.uint64)
        self._room = len(self.table) // 2 - len(digests)
        _add(digests, np.ones(len(digests)), self.table, np.empty(len(digests), bool))
