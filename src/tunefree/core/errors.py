"""Errors that tell a user what is wrong, where, and what to do about it."""

from __future__ import annotations


class TunefreeError(ValueError):
    """Anything a user can mend; the command line prints it and exits with status 2."""


class DataError(TunefreeError):
    """Data that cannot be used.

    Parameters
    ----------
    problem : str
        What is wrong.
    file, row, column : optional
        Where: name of the file or stream, row counted from 1 (a header is not a row), name of the column.
    remedy : str, optional
        What the user can do.

    Examples
    --------
    >>> print(DataError("'abc' is not a number", "a.csv", 7, "age", "correct the row, or pass --on-bad-row skip"))
    a.csv, row 7, column 'age': 'abc' is not a number; correct the row, or pass --on-bad-row skip
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
        place = [file] if file else []
        place += [f"row {row}"] if row is not None else []
        place += [f"column {column!r}"] if column is not None else []
        where = ", ".join(place) + ": " if place else ""
        super().__init__(where + problem + (f"; {remedy}" if remedy else ""))


class ModelError(TunefreeError):
    """A model file that cannot be read, or that does not fit what is asked of it."""


class DataWarning(UserWarning):
    """Something is odd about data that are used all the same."""
