"""Errors that tell a user what is wrong, where, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches

# An option in a message, and the value that a remedy gives it; what stands in quotation marks is of the data.
OPTION = re.compile(
    r"""(?<![\w'"=-])--([a-z][a-z-]*)
    ((?:\ |=)(?:'[^']*'|\d+\b|(?:skip|classification|regression|early-stopping)\b))?""",
    re.VERBOSE,
)
# What options are called in Python, where it is not the same.
PARAMETERS = {
    "on-bad-row": "skip_bad_rows",
    "unlabelled": "skip_unlabelled",
    "set": "settings",
    "seed": "shuffle",
    "from": "learn_more",
    "kernel": "learner='kernel-pool'",
}


_PLAIN = "'0123456789"  # what values begin with that Python reads as they are


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


def nearest(name: object, names: Sequence[object], title: str, most: int = 12) -> str:
    """The remedy for a name that is unknown: the names that are most like it, or what there is.

    Parameters
    ----------
    name : str
    names : sequence of str
        Those that are known.
    title : str
        What they are, in the plural.
    most : int, default 12
        Names that are listed.

    Examples
    --------
    >>> nearest("amout", ["amount", "age"], "columns"), nearest("x", ["amount", "age"], "columns")
    ("did you mean 'amount'?", "the columns are 'amount', 'age'")
    """
    if close := get_close_matches(str(name), list(map(str, names)), 3, 0.5):
        return f"did you mean {' or '.join(map(repr, close))}?"
    return f"the {title} are {listed(names, most)}"


def listed(names: Sequence[object], most: int = 12) -> str:
    """The first names in quotation marks, and how many more there are.

    Examples
    --------
    >>> listed(["a", "b", "c"], 2)
    "'a', 'b' and 1 more"
    """
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def in_python(message: str, parameters: Mapping[str, str] = PARAMETERS, owner: str = "") -> str:
    """A message that names options of the command line, with the parameters that they are in Python.

    Parameters
    ----------
    message : str
    parameters : mapping of str to str, optional
        What options are called, where it is not the same.
    owner : str, optional
        What has the other parameters, where it is not the function that raises the error.

    Examples
    --------
    >>> in_python("the number is missing; pass --on-bad-row skip, or leave --na-values out")
    'the number is missing; pass skip_bad_rows=True, or leave na_values out'
    """

    def parameter(option: re.Match[str]) -> str:
        name, value = option[1], (option[2] or "")[1:]
        text = parameters.get(name, name.replace("-", "_"))
        if value:
            text += f"={True if value == 'skip' else value if value[0] in _PLAIN else repr(value)}"
        return text if name in parameters or not owner else f"{text} of {owner}"

    return OPTION.sub(parameter, message)


@contextmanager
def told_in_python(parameters: Mapping[str, str] = PARAMETERS, owner: str = "") -> Iterator[None]:
    """Where errors name parameters instead of options of the command line; see :func:`in_python`."""
    try:
        yield
    except TunefreeError as error:
        error.args = (in_python(str(error), parameters, owner),)
        raise


class DataWarning(UserWarning):
    """Something is odd about data that are used all the same."""
