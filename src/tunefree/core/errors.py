"""Errors that state the problem, its location and a remedy."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from difflib import get_close_matches

MOST_NAMES = 1000  # at most, that are searched for a similar spelling
PASSED = {"tunefree", "sklearn", "joblib", "contextlib"}  # packages whose frames a warning skips
CLOSE, NEAR = 0.75, 0.65  # least similarity of two forms of one name, and of a suggested name


class TunefreeError(ValueError):
    """An error that a user can correct; the command line prints it and exits with status 2."""


class DataError(TunefreeError):
    """Unusable data: the problem, its location (rows are counted from 1, without the header), and a remedy.

    Examples
    --------
    >>> print(DataError("'abc' is not a number", "a.csv", 7, "age", "correct the row"))
    a.csv, row 7, column 'age': 'abc' is not a number; correct the row
    """

    def __init__(
        self,
        problem: str,
        file: str | None = None,
        row: int | None = None,
        column: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.problem, self.file, self.row, self.column, self.remedy = problem, file, row, column, remedy
        location = [file] if file else []
        location += [f"row {row}"] if row is not None else []
        location += [f"column {column!r}"] if column is not None else []
        prefix = ", ".join(location) + ": " if location else ""
        super().__init__(prefix + problem + (f"; {remedy}" if remedy else ""))


class ModelError(TunefreeError):
    """A model file that cannot be read, or a request that a model does not support."""


def nearest(name: object, names: Sequence[object], title: str, most: int = 12) -> str:
    """The remedy for an unknown name: the known name with the most similar spelling, else the first ``most`` names.

    >>> nearest("amout", ["amount", "age"], "columns"), nearest("x", ["amount", "age"], "columns")
    ("did you mean 'amount'?", "the columns are 'amount', 'age'")
    """
    match = alike(str(name), list(map(str, names)), NEAR)
    return f"the {title} are {listed(names, most)}" if match is None else f"did you mean {match!r}?"


def alike(name: str, known: Sequence[str], least: float = CLOSE) -> str | None:
    """The known name with the most similar spelling, ignoring case and white space; None if none is similar.

    >>> alike("DIESEL", ["Diesel", "Petrol"]), alike("amout", ["age", "amount"]), alike("target", ["age"], NEAR)
    ('Diesel', 'amount', None)
    """
    key, by_key = _plain(name), {_plain(other): other for other in reversed(known[:MOST_NAMES])}
    candidates = [other for other in by_key if len(key) < 2 * len(other) and len(other) < 2 * len(key)]
    matches = get_close_matches(key, candidates, 1, least)
    return by_key[matches[0]] if matches else None


def _plain(name: str) -> str:
    return "".join(name.split()).casefold()


def listed(names: Sequence[object], most: int = 12) -> str:
    """The first names in quotation marks, and the number of further names.

    >>> listed(["a", "b", "c"], 2)
    "'a', 'b' and 1 more"
    """
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


class DataWarning(UserWarning):
    """A warning about unusual data that are used nevertheless."""


def warn(message: str) -> None:
    """Issue a warning that points to the line of the user's code that called the package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in PASSED:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, DataWarning, stacklevel=level)
