"""Columns that were read as categories and look like something else, and the parameters that decide it."""

from __future__ import annotations

from typing import Any

from tunefree.stream.columns import OF_WORDS, RARE_WORD
from tunefree.stream.notation import EXACT, ZEROS
from tunefree.stream.tally import Reason

_DECISIONS = {
    ZEROS: "`numeric={name!r}` reads numbers",
    EXACT: "`numeric={name!r}` reads rounded numbers, `ignore={name!r}` leaves it out",
    OF_WORDS: "`text={name!r}` reads words, `categorical={name!r}` keeps this",
    RARE_WORD: "`na_values={value!r}` if it stands for a missing number, `categorical={name!r}` keeps this",
}


def doubts_of_columns(trained: Any) -> list[Reason]:
    """What lets columns of categories look like something else, each with the parameters that decide it.

    Parameters
    ----------
    trained : Trained

    Examples
    --------
    >>> from types import SimpleNamespace as Trained
    >>> from tunefree.stream.columns import Category
    >>> trained = Trained(encoder=Trained(columns=[Category("zip", doubt=(ZEROS, ""))]))
    >>> print(*doubts_of_columns(trained))
    column 'zip': leading zeros, read as categories; `numeric='zip'` reads numbers
    """
    doubts = []
    for column in getattr(trained.encoder, "columns", []):
        if not getattr(column, "doubt", ()):
            continue
        kind, value = column.doubt
        decision = _DECISIONS[kind].format(name=column.name, value=value)
        seen = f"{kind} {value!r}" if value else kind
        doubts.append(Reason(f"{seen}, read as categories", column.name, 0, "", 0, decision))
    return doubts
