"""Features of lines that are predicted and that training never saw: they are left out, which is told of many."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tunefree.stream.batch import BadRows
from tunefree.stream.tally import Reason, Tally

MOST_TOLD = 3  # features by name
FEWEST_OF_ENTRIES = 0.1  # texts have a few new words, too
SOME, NOTHING = "features that training never saw, such as {}", "no feature is known: such rows are predicted alike"


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
        self.rows = Tally()  # with unknown features, and with nothing else

    def add(
        self, ids: np.ndarray, ends: np.ndarray, file: str, numbers: np.ndarray, name_of: Callable[[int], str]
    ) -> None:
        """Add rows of these features, 0 for unknown ones; ``ends`` has where those of each row end."""
        unknown, sizes = np.flatnonzero(ids == 0), np.diff(ends, prepend=0)
        self.entries, self.unknown = self.entries + len(ids), self.unknown + len(unknown)
        self.is_seen[ids] = True
        for entry in unknown[: MOST_TOLD + 1].tolist() if len(self.examples) <= MOST_TOLD else ():
            self.examples.setdefault(name_of(entry))
        counts = np.bincount(np.searchsorted(ends, unknown, side="right"), minlength=len(ends))
        for problem, rows in ((SOME, counts > 0), (NOTHING, (counts == sizes) & (sizes > 0))):
            if rows.any():
                self.rows.note(Reason(problem, "", int(rows.sum()), file, int(numbers[rows.argmax()])))

    def note(self, bad: BadRows) -> None:
        """Note what is odd about all rows."""
        examples, absent = list(self.examples)[:MOST_TOLD], np.flatnonzero(~self.is_seen[1:]) + 1
        some = SOME.format(", ".join(examples))
        if 0 < len(absent) <= MOST_TOLD:
            some += f", and none of {', '.join(self.names[place] for place in absent.tolist())}"
        for reason in self.rows.oddities():
            if reason.problem == NOTHING:
                bad.note(NOTHING, reason.file, reason.row, rows=reason.rows)
            elif self.unknown > FEWEST_OF_ENTRIES * self.entries:
                bad.note(some, reason.file, reason.row, rows=reason.rows)
