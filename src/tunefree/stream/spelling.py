"""Names that were meant, where others are written."""

from __future__ import annotations

from collections.abc import Sequence

from tunefree.core.errors import alike


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
