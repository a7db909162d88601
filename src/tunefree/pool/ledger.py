"""Rows that were learned wait to be recorded together, since much of what is done with rows takes as long for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tunefree.core.rows import Block, Rows, entries_together, together

TOGETHER = 64  # rows that are recorded at once


def joined(parts: Sequence[Any]) -> Any:
    """NamedTuples of rows as one; what are no rows or arrays is as in the first."""
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if isinstance(first, Block | Rows):
        return together([*parts]) if isinstance(first, Block) else entries_together(parts)
    return type(first)(*map(joined, zip(*parts, strict=True))) if hasattr(first, "_fields") else first


class Ledger:
    """Learned rows that wait to be recorded, which must not depend on how rows come in blocks.

    >>> from typing import NamedTuple
    >>> class Few(NamedTuple):
    ...     y: np.ndarray
    >>> ledger = Ledger()
    >>> [ledger.add(Few(np.array([number])), 1) for number in range(3)]
    [False, False, False]
    >>> ledger.take(), ledger.take()
    (Few(y=array([0, 1, 2])), None)
    """

    def __init__(self) -> None:
        self.waiting, self._n = list[Any](), 0

    def add(self, rows: Any, n: int) -> bool:
        """Add so many rows, to whose memory nobody else writes; whether there are enough to be recorded."""
        self.waiting.append(rows)
        self._n += n
        return self._n >= TOGETHER

    def take(self) -> Any:
        """The rows, which no longer wait; None if there are none."""
        rows, self.waiting, self._n = self.waiting, [], 0
        return None if not rows else rows[0] if len(rows) == 1 else joined(rows)
