"""Whoever watches a training: progress bars, tests."""

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
