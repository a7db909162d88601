"""Columns that were read as categories and look like something else, and the options that decide it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

from tunefree.stream.columns import OF_WORDS, RARE_WORD
from tunefree.stream.notation import EXACT, ZEROS
from tunefree.stream.tally import Reason

_DECISIONS = {
    ZEROS: "{numeric} reads numbers",
    EXACT: "{numeric} reads rounded numbers, {ignore} leaves it out",
    OF_WORDS: "{text} reads words, {categorical} keeps this",
    RARE_WORD: "{na_values} if it stands for a missing number, {categorical} keeps this",
}


def as_option(name: str, value: str) -> str:
    """An option with a value, on the command line.

    Examples
    --------
    >>> as_option("na_values", "not known"), as_argument("na_values", "not known")
    ("--na-values 'not known'", "na_values=['not known']")
    """
    return f"--{name.replace('_', '-')} {shlex.quote(value)}"


def as_argument(name: str, value: str) -> str:
    """The same in Python."""
    return f"{name}=[{value!r}]"


def doubts_of_columns(trained: Any, option: Callable[[str, str], str] = as_option) -> list[Reason]:
    """What lets columns of categories look like something else, each with the options that decide it.

    Parameters
    ----------
    trained : Trained
    option : callable, default as_option
        How an option is written, of its name and a value.

    Examples
    --------
    >>> from types import SimpleNamespace as Trained
    >>> from tunefree.stream.columns import Category
    >>> trained = Trained(encoder=Trained(columns=[Category("zip", doubt=(ZEROS, ""))]))
    >>> print(*doubts_of_columns(trained))
    column 'zip': leading zeros, read as categories; --numeric zip reads numbers
    """
    doubts = []
    for column in getattr(trained.encoder, "columns", []):
        if not getattr(column, "doubt", ()):
            continue
        kind, value = column.doubt
        options = {name: option(name, column.name) for name in ("numeric", "ignore", "text", "categorical")}
        decision = _DECISIONS[kind].format(**options, na_values=option("na_values", value))
        seen = f"{kind} {value!r}" if value else kind
        doubts.append(Reason(f"{seen}, read as categories", column.name, 0, "", 0, decision))
    return doubts
