"""The ledger: learned rows wait to be recorded together, since recording one row takes as long as recording many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import Block, Rows, entries_together, rows_at, together
from tunefree.intervals.conformal_record import Units
from tunefree.intervals.sets import draws_of

TOGETHER = 64  # rows that are recorded at once


def joined(parts: Sequence[Any]) -> Any:
    """Concatenate NamedTuples of rows; fields that are not arrays or rows are taken from the first one."""
    first = parts[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(parts)
    if isinstance(first, Block | Rows):
        return together([*parts]) if isinstance(first, Block) else entries_together(parts)
    return type(first)(*map(joined, zip(*parts, strict=True))) if hasattr(first, "_fields") else first


class LearnedRows(NamedTuple):
    """Rows that were predicted, and then learned by members and mixture."""

    members: Any  # tunefree.pool.members.Members that learned them
    X: Any  # block of rows
    matrix: np.ndarray  # (n, c) values in the columns of generations so far
    digests: np.ndarray  # (n,) uint64 digests of the observations, or of the groups
    predictions: np.ndarray  # (n, M, K) of the members
    mixed: np.ndarray  # (n, K) predictions of the mixture
    y: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)
    relative: np.ndarray  # (n,) weights relative to earlier ones in the row's context
    judging: np.ndarray  # (n,) relative weights of rows that judge the mixture, one row in a run of a group; else 0
    numbers: np.ndarray  # (n,) number of learned rows up to and including each
    contexts: np.ndarray  # (n,) uint8, see tunefree.pool.contexts
    groups: np.ndarray | None  # (n,) digests of their groups
    units: list[Units]  # units of the scores in each context

    def at(self, rows: np.ndarray) -> LearnedRows:
        """Some of the rows, without ``matrix`` and ``predictions``."""
        arrays = {name: value[rows] for name, value in self._asdict().items() if isinstance(value, np.ndarray)}
        return self._replace(X=rows_at(self.X, rows), **arrays | {"matrix": None, "predictions": None})

    def judging_in(self, context: int) -> LearnedRows:
        """The rows, with weights 0 for rows of other contexts."""
        is_of_it = self.contexts == context
        relative, judging = (np.where(is_of_it, weights, 0.0) for weights in (self.relative, self.judging))
        return self._replace(relative=relative, judging=judging)

    @property
    def draws(self) -> np.ndarray:
        """Random numbers (n,) of the rows, for scores of classes."""
        return draws_of(self.X) if self.members.loss is None else np.zeros(len(self.y))


class Ledger:
    """Learned rows that wait to be recorded; records must not depend on the blocks in which rows arrive.

    >>> class Few(NamedTuple):
    ...     y: np.ndarray
    >>> ledger = Ledger()
    >>> [ledger.add(Few(np.array([number]))) for number in range(3)]
    [False, False, False]
    >>> ledger.flush(print)
    Few(y=array([0, 1, 2]))
    >>> ledger.flush(print)
    """

    def __init__(self) -> None:
        self.waiting, self._n = list[Any](), 0

    def add(self, rows: Any) -> bool:
        """Add rows, whose arrays must not be written to later; returns whether there are enough to be recorded."""
        self.waiting.append(rows)
        self._n += len(rows.y)
        return self._n >= TOGETHER

    def flush(self, *observers: Callable[[Any], None]) -> None:
        """Pass the waiting rows to each observer in turn, and empty the ledger."""
        waiting, self.waiting, self._n = self.waiting, [], 0
        if waiting:
            rows = waiting[0] if len(waiting) == 1 else joined(waiting)
            for observe in observers:
                observe(rows)
