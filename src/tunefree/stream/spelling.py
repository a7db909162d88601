"""Names that were meant, where others are written."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

MOST_NAMES = 1000  # among which one that is spelt alike is looked for
CLOSE = 0.75  # similarity of spellings


def alike(name: str, known: Sequence[str]) -> str | None:
    """The one of some names that is spelt most like another: the same but for case and white space, else by letters.

    Examples
    --------
    >>> alike("DIESEL", ["Diesel", "Petrol"]), alike("amout", ["age", "amount"]), alike("gas", ["Petrol"])
    ('Diesel', 'amount', None)
    """
    plain = _plain(name)
    same = next((other for other in known if _plain(other) == plain), None)
    close = get_close_matches(name, known[:MOST_NAMES], 1, CLOSE) if same is None else [same]
    return close[0] if close else None


def _plain(name: str) -> str:
    return "".join(name.split()).casefold()


def renamed(absent: Sequence[str], unknown: Sequence[str]) -> str:
    """Which of some unknown columns may be those that are absent, as a question; empty where none may be.

    Examples
    --------
    >>> renamed(["age", "amount"], ["amout", "day"]), renamed(["amount"], ["sum"]), renamed(["age", "amount"], ["day"])
    ("'amout' is not known: did you mean 'amount'?", "'sum' is not known: did you mean 'amount'?", '')
    """
    pairs = [(alike(name, unknown), name) for name in absent]
    if len(absent) == len(unknown) == 1:
        pairs = [(unknown[0], absent[0])]
    return ", ".join(f"{other!r} is not known: did you mean {name!r}?" for other, name in pairs if other is not None)
