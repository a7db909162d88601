"""Whoever wants to know that code is about to be compiled, which takes seconds, is told once.

It stands apart from the compiler, so that the command line can ask to be told without loading it.
"""

from __future__ import annotations

from collections.abc import Callable

_waiting: list[Callable[[], None]] = []

NOTICE = "compiling code for this processor; it is kept on disk, and later runs load it"


def announce(tell: Callable[[], None]) -> None:
    """Call a function when code is first compiled that was not on disk; never if all of it is.

    Parameters
    ----------
    tell : function

    Examples
    --------
    >>> announce(lambda: print("it begins"))
    >>> begins()
    it begins
    >>> begins()
    """
    _waiting.append(tell)


def forget(tell: Callable[[], None]) -> None:
    """No longer call a function, if it was not called yet."""
    if tell in _waiting:
        _waiting.remove(tell)


def begins() -> None:
    """Code is compiled: tell those that wait for it."""
    while _waiting:
        _waiting.pop(0)()
