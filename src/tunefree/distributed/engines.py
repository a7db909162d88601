"""Engines: who calls functions for each shard, and adds up what they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

FAN_IN = 8  # sums that one task adds


class Engine:
    """Calls functions in this process, one after the other.

    Functions depend on their arguments alone. A handle stands for what one of them returns; here it is that.

    Examples
    --------
    >>> Engine().total("sum", lambda *parts: "(" + " ".join(parts) + ")", list("abcdefghij"))
    '((a b c d e f g h) (i j))'
    """

    def each(self, stage: str, function: Callable[..., Any], items: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Handles of what a function returns for each of some tuples of arguments, which may be handles."""
        return [function(*item) for item in items]

    def one(self, stage: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """The handle of what a function returns for some arguments, which may be handles."""
        return self.each(stage, function, [arguments])[0]

    def hold(self, stage: str, value: Any) -> Any:
        """The handle of a value that many calls take."""
        return value

    def values(self, handles: Sequence[Any]) -> list[Any]:
        """What several handles stand for."""
        return list(handles)

    def value(self, handle: Any) -> Any:
        """What a handle stands for."""
        return self.values([handle])[0]

    def total(self, stage: str, plus: Callable[..., Any], handles: Sequence[Any]) -> Any:
        """The handle of a sum, added by a tree that depends on the number of handles alone."""
        level, left = 0, list(handles)
        while len(left) > 1 or level == 0:
            groups = [tuple(left[start : start + FAN_IN]) for start in range(0, len(left), FAN_IN)]
            left = self.each(f"{stage}-sum{level}", plus, groups)
            level += 1
        return left[0]

    def sent(self) -> int:
        """Bytes that were sent between processes so far."""
        return 0
