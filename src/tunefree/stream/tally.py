"""Rows that could not be used, and rows that were used but are odd: how many, why, and where each reason was met first.

Memory is bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from tunefree.core.errors import DataError

MOST_MESSAGES = 5  # that are kept whole
MOST_REASONS = 20  # that are distinguished; rows of further ones are counted together
MOST_LETTERS = 200  # of a reason, and of a name in it
OTHER = "other reasons"
# What differs from row to row in a message: texts in quotation marks, also where they are cut; lists, objects, numbers.
_VALUES = re.compile(
    r"""b?'(?:[^'\\]|\\.)*' | b?"(?:[^"\\]|\\.)*" | ['"\[{].*?\.\.\. | \[.*?\] | \{.*?\} | [-+]?\b\d[\w.+-]*""",
    re.VERBOSE,
)


def reason_of(problem: str) -> str:
    """What messages about different values have in common."""
    return _VALUES.sub("…", problem)[:MOST_LETTERS]


def _cut(column: str | None) -> str:
    return (column or "")[:MOST_LETTERS]


@dataclass(frozen=True)
class Reason:
    """Why rows could not be used, or what is odd about rows that were used."""

    problem: str  # without what differs from row to row
    column: str  # empty where no column is to blame
    rows: int  # how many; 0 of what is odd about a file or a column as a whole
    file: str  # where the first of them is
    row: int  # its number in the file, counted from 1; 0 of lines that are no rows
    remedy: str = ""  # what decides it otherwise, such as an option

    @property
    def place(self) -> str:
        """Where the first row is."""
        column = f", column {self.column!r}" if self.column else ""
        return f"{self.file}, row {self.row}{column}"

    @property
    def counted(self) -> str:
        """The problem, with how many rows there are and where the first is."""
        unit = ("row" if self.row else "line") + ("" if self.rows == 1 else "s")
        first = f", the first: {self.file}, row {self.row}" if self.row else f" of {self.file}"
        return self.problem + (f" ({self.rows:,} {unit}{first})" if self.rows else "")

    def __str__(self) -> str:
        where = f"column {self.column!r}: " if self.column else ""
        return where + self.counted + (f"; {self.remedy}" if self.remedy else "")


@dataclass
class Tally:
    """Rows that could not be used, and rows that were used but are odd, in the order in which they were met."""

    count: int = 0
    unlabelled: int = 0  # rows that lacked a label and were left out for it; these are counted here only
    first: list[str] = field(default_factory=list)  # the messages of the first five
    by_reason: dict[tuple[str, str], Reason] = field(default_factory=dict)  # by problem and column
    by_oddity: dict[tuple[str, str], Reason] = field(default_factory=dict)  # likewise, of rows that were used

    def oddities(self) -> list[Reason]:
        """What is odd about rows that were used, the first met first."""
        return list(self.by_oddity.values())

    def note(self, oddity: Reason) -> None:
        """Count rows that are used although something about them is odd."""
        _merge(self.by_oddity, replace(oddity, column=_cut(oddity.column)))

    def reasons(self) -> list[Reason]:
        """The reasons, the first met first."""
        return list(self.by_reason.values())

    def is_new(self, error: DataError) -> bool:
        """Whether a row with this problem is reported with its row number."""
        return len(self.first) < MOST_MESSAGES or (reason_of(error.problem), _cut(error.column)) not in self.by_reason

    def add(self, error: DataError) -> None:
        """Count a row."""
        self.count += 1
        if len(self.first) < MOST_MESSAGES:
            self.first.append(str(error))
        reason = Reason(reason_of(error.problem), _cut(error.column), 1, str(error.file), int(error.row or 0))
        _merge(self.by_reason, reason)

    def add_all(self, other: Tally) -> None:
        """Count the rows of another tally, which come after these."""
        self.count, self.unlabelled = self.count + other.count, self.unlabelled + other.unlabelled
        self.first += other.first[: MOST_MESSAGES - len(self.first)]
        for reason in other.reasons():
            _merge(self.by_reason, reason)
        for oddity in other.oddities():
            _merge(self.by_oddity, oddity)

    def with_columns(self, earlier: Tally) -> Tally:
        """This tally with what an earlier pass over the same rows told of columns as a whole."""
        for oddity in earlier.oddities():
            if not oddity.rows and (oddity.problem, oddity.column) not in self.by_oddity:
                self.note(oddity)
        return self

    @classmethod
    def of(cls, count: int, unlabelled: int, reasons: list[Reason], oddities: list[Reason]) -> Tally:
        """One that goes on from what was kept of another."""
        by_reason, by_oddity = ({(each.problem, each.column): each for each in of} for of in (reasons, oddities))
        return cls(count, unlabelled, [], by_reason, by_oddity)

    def copy(self) -> Tally:
        """A tally that goes on by itself."""
        return Tally(self.count, self.unlabelled, list(self.first), dict(self.by_reason), dict(self.by_oddity))


def _merge(known: dict[tuple[str, str], Reason], reason: Reason) -> None:
    """Add the rows of a reason to those of the same reason that came before."""
    key = reason.problem, reason.column
    if key not in known and len(known) >= MOST_REASONS:
        key = OTHER, ""
        reason = replace(reason, problem=OTHER, column="")
    earlier = known.get(key)
    known[key] = reason if earlier is None else replace(earlier, rows=earlier.rows + reason.rows)
