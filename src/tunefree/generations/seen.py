"""Which observations were seen before: a table of digests in bounded memory, where a later one takes an older's place.

A row that is a copy of an earlier one is no evidence: learners on leaves may remember that one, too. But where columns
have few values, rows are alike without being copies. Their targets tell: those of copies are equal, while those of
separate rows differ from one another nearly as often as from the targets of any other rows.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from tunefree.core.kernels import kernel

PLACES = 2**18  # of digests; the place of one is its last bits
FEWEST = 16  # repeats whose target differs from that of the row before, from which on targets tell
SHARE = 3  # rows are separate where their targets differ, and agree, a third as often as those of other rows, or more
FREQUENT = 32  # rows of an observation, on the average, from which on they are separate whatever their targets
ROWS, REPEATS, DIFFERING, EXPECTED = 0, 1, 2, 3  # places of numbers


def are_separate(numbers):
    """Whether rows that repeat earlier ones are no copies of these, by the numbers of :class:`Seen`."""
    rows, repeats, differing, expected = numbers[ROWS], numbers[REPEATS], numbers[DIFFERING], numbers[EXPECTED]
    differ, agree = SHARE * differing >= expected, SHARE * (repeats - differing) >= repeats - expected
    are_frequent = FREQUENT * (rows - repeats) <= rows
    return (expected >= FEWEST and differ and agree) or (rows > 0 and are_frequent)


@kernel
def _add(
    digests: Annotated[np.ndarray, "uint64[rows]"],
    targets: Annotated[np.ndarray, "float64[rows]"],
    weight: Annotated[np.ndarray, "float64[rows]"],
    table: Annotated[np.ndarray, "uint64[places]"],
    targets_before: Annotated[np.ndarray, "float64[places]"],
    latest: Annotated[np.ndarray, "float64[one]"],
    numbers: Annotated[np.ndarray, "int64[numbers]"],
    is_seen: Annotated[np.ndarray, "bool[rows]"],
    is_separate: Annotated[np.ndarray, "bool[rows]"],
) -> None:
    """Mark the rows whose observation was seen before, and those that are separate; see :meth:`Seen.add`."""
    for i in range(len(digests)):
        place = digests[i] & np.uint64(len(table) - 1)
        is_seen[i], is_separate[i] = table[place] == digests[i], are_separate(numbers)
        if weight[i] > 0.0:
            numbers[ROWS] += 1
            numbers[REPEATS] += is_seen[i]
            numbers[DIFFERING] += is_seen[i] and targets[i] != targets_before[place]
            numbers[EXPECTED] += is_seen[i] and targets[i] != latest[0]
            table[place], targets_before[place], latest[0] = digests[i], targets[i], targets[i]


def without_copies(keys: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The places of rows without copies of others, and their weights, to which those of the copies are added.

    Copies have the same key.

    Examples
    --------
    >>> without_copies(np.array([7, 8, 7]), np.array([1.0, 1.0, 2.0]))
    (array([0, 1]), array([3., 1.]))
    """
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    kept = np.sort(first)
    return kept, np.bincount(place, weights)[place[kept]]


class Seen:
    """The latest observations, and whether rows that repeat them are copies.

    Attributes
    ----------
    numbers : (4,) int64 array
        Rows; those that repeat earlier ones; of these, those whose target differs from the latest of their observation,
        and those whose target differs from that of the row before them.

    Examples
    --------
    >>> Seen().add(np.array([5, 6, 5], np.uint64), np.zeros(3), np.ones(3))
    (array([False, False,  True]), array([False, False, False]))
    """

    def __init__(self) -> None:
        self.table = np.zeros(0, np.uint64)  # (places,) digests; none before the first row
        self.targets = np.zeros(0)  # (places,) the latest of each
        self.latest, self.numbers = np.zeros(1), np.zeros(4, np.int64)  # latest: the target of the row before

    @property
    def are_separate(self) -> bool:
        """Whether rows to come that repeat earlier ones are no copies."""
        return bool(are_separate(self.numbers))

    @property
    def n_repeats(self) -> int:
        """Rows that repeat earlier ones."""
        return int(self.numbers[REPEATS])

    def add(self, digests: np.ndarray, targets: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which rows (n,) have an observation that was seen before, and which would be separate if they have one.

        Rows of a weight above 0 are seen from here on.
        """
        if not len(self.table):
            self.table, self.targets = np.zeros(PLACES, np.uint64), np.zeros(PLACES)
        is_seen, is_separate = np.empty(len(digests), bool), np.empty(len(digests), bool)
        _add(digests, targets, weight, self.table, self.targets, self.latest, self.numbers, is_seen, is_separate)
        return is_seen, is_separate

    def save_state(self) -> dict[str, np.ndarray]:
        """Arrays from which :meth:`restore` makes the same."""
        used = np.flatnonzero(self.table)
        arrays = {"digests": self.table[used], "targets": self.targets[used]}
        arrays |= {"latest": self.latest.copy(), "numbers": self.numbers.copy()}
        return {f"seen.{name}": array for name, array in arrays.items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over what :meth:`save_state` gave."""
        digests = np.array(arrays["seen.digests"], np.uint64)
        self.latest, self.numbers = np.array(arrays["seen.latest"]), np.array(arrays["seen.numbers"])
        if len(digests):
            self.table, self.targets = np.zeros(PLACES, np.uint64), np.zeros(PLACES)
            places = (digests & np.uint64(PLACES - 1)).astype(np.int64)
            self.table[places], self.targets[places] = digests, arrays["seen.targets"]
