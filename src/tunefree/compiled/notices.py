"""Notices that code is about to be compiled, which takes seconds: one for each reason, to registered listeners.

It stands apart from the compiler, so that the command line can ask to be told without loading it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

listeners: list[Callable[[str], None]] = []
_reasons: set[str] = set()  # that were told


def begins(line: str, reason: str, is_usual: bool = False) -> None:
    """Notify listeners that code is compiled, or is not; without listeners, warn of unusual cases.

    >>> listeners.append(print)
    >>> begins("compiling code", "it is new")
    compiling code, since it is new
    >>> begins("compiling more code", "it is new")
    >>> listeners.remove(print)
    """
    if reason in _reasons:
        return
    _reasons.add(reason)
    for tell in listeners:
        tell(f"{line}, since {reason}")
    if not listeners and not is_usual:
        warnings.warn(f"{line}, since {reason}", RuntimeWarning, stacklevel=2)
