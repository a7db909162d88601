"""Features of lines that are predicted and that training never saw: they are left out, which is told of many."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tunefree.stream.batch import BadRows

MOST_TOLD = 3  # features by name
FEWEST_OF_ENTRIES = 0.1  # texts have a few new words, too


class UnknownFeatures:
    """Counts what is unknown in rows that are predicted.

    Parameters
    ----------
    names : list of str
        Of the known features, by id.

    Examples
    --------
    >>> unknown, bad = UnknownFeatures(["(constant)", "1", "2"]), BadRows()
    >>> unknown.add(np.array([0, 1, 0, 1]), np.array([2, 4]), "a.svm", np.array([1, 2]), lambda entry: "0")
    >>> unknown.note(bad)
    >>> print(*bad.tally.oddities(), sep="; ")
    features that training never saw, such as 0, and none of 2 (2 rows, the first: a.svm, row 1)
    """

    def __init__(self, names: list[str]) -> None:
        self.names, self.is_seen = names, np.zeros(len(names), bool)
        self.entries, self.unknown, self.examples = 0, 0, dict[str, None]()
        # How many rows have unknown features, and how many nothing else; where the first is.
        self.rows = dict[bool, tuple[int, str, int]]()

    def add(
        self, ids: np.ndarray, ends: np.ndarray, file: str, numbers: np.ndarray, name_of: Callable[[int], str]
    ) -> None:
        """Add rows.

        Parameters
        ----------
        ids : (entries,) array
            Features; 0 for unknown ones.
        ends : (n,) array
            Where the entries of each row end.
        file : str
        numbers : (n,) array
            Of the rows in the file.
        name_of : callable
            From an entry to the name of its feature.
        """
        unknown = np.flatnonzero(ids == 0)
        self.entries, self.unknown = self.entries + len(ids), self.unknown + len(unknown)
        self.is_seen[ids] = True
        for entry in unknown[: MOST_TOLD + 1].tolist() if len(self.examples) <= MOST_TOLD else ():
            self.examples.setdefault(name_of(entry))
        sizes = np.diff(ends, prepend=0)
        counts = np.bincount(np.searchsorted(ends, unknown, side="right"), minlength=len(ends))
        for alone, rows in ((False, counts > 0), (True, (counts == sizes) & (sizes > 0))):
            if rows.any():
                count, first_file, first = self.rows.get(alone, (0, file, int(numbers[rows.argmax()])))
                self.rows[alone] = count + int(rows.sum()), first_file, first

    def note(self, bad: BadRows) -> None:
        """Note what is odd about all rows."""
        if self.unknown > FEWEST_OF_ENTRIES * self.entries:
            examples, absent = list(self.examples), np.flatnonzero(~self.is_seen[1:]) + 1
            problem = f"features that training never saw, such as {', '.join(examples[:MOST_TOLD])}"
            if 0 < len(absent) <= MOST_TOLD:
                problem += f", and none of {', '.join(self.names[place] for place in absent.tolist())}"
            count, file, row = self.rows[False]
            bad.note(problem, file, row, rows=count)
        if True in self.rows:
            count, file, row = self.rows[True]
            bad.note("no feature is known: all such rows have the same prediction", file, row, rows=count)
