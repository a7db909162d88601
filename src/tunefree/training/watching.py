"""Whoever watches a training: progress bars, live reports, tests."""

from __future__ import annotations

import warnings
from typing import Any

from tunefree.core.errors import DataWarning
from tunefree.training.pieces import Step


class Watcher:
    """Is told how training goes. This one does nothing; the command line draws a progress bar with one of its own."""

    def begin(self, trained: Any, source: Any) -> None:
        """Training begins, or is resumed, with this model."""

    def step(self, trained: Any, step: Step) -> None:
        """A batch was learned."""

    def wants_copy(self) -> bool:
        """Whether :meth:`copy` is to be called after a batch; asked in the thread that reads."""
        return False

    def copy(self, trained: Any, encoder: Any) -> None:
        """A batch was learned; ``encoder`` is the saved state of the encoder after it."""

    def saved(self, path: Any, rows: int) -> None:
        """The training was saved to a file on the way, after so many rows."""

    def end(self, trained: Any) -> None:
        """Training has ended."""

    def tell(self, message: str) -> None:
        """Something that the user should know."""
        warnings.warn(message, DataWarning, stacklevel=4)

    def close(self) -> None:
        """Nothing more is to be watched, whether training has ended or failed."""


class SilentWatcher(Watcher):
    """Tells nothing; errors are raised all the same."""

    def tell(self, message: str) -> None:
        """Nobody is told."""


def _of_each(name: str) -> Any:
    """The method of this name of several watchers: it is called of each, and one may say yes."""

    def method(self: Watchers, *arguments: Any) -> bool:
        answers = [getattr(watcher, name)(*arguments) for watcher in self.watchers]
        return any(answers)

    return method


class Watchers(Watcher):
    """Several watchers, each of which is told everything.

    Parameters
    ----------
    watchers : list of Watcher
        The first of them tells the user.
    """

    begin, step, wants_copy, copy = map(_of_each, ("begin", "step", "wants_copy", "copy"))
    saved, end, close = map(_of_each, ("saved", "end", "close"))

    def __init__(self, watchers: list[Watcher]) -> None:
        self.watchers = watchers

    def tell(self, message: str) -> None:
        self.watchers[0].tell(message)
