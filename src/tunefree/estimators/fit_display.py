"""What a long ``fit`` shows while it learns: lines, and on a terminal a progress bar."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from tunefree.compiled import notices
from tunefree.training.callbacks import Callback, Step


class FitDisplay(Callback):
    """Lines, each with the seconds so far, and a bar for a pass over some rows; nothing unless verbose.

    >>> with FitDisplay("Example", 10, verbose=True) as display:
    ...     display.say("10 rows learned")  # doctest: +ELLIPSIS
    [Example]     ... s  10 rows learned
    """

    def __init__(self, name: str, rows: int, verbose: bool) -> None:
        self.name, self.rows, self.began = name, rows, time.perf_counter()
        self._progress: Any = None
        if verbose:
            from tunefree.core.console import ProgressLine, plain_console

            self._progress = ProgressLine(plain_console())

    def __enter__(self) -> FitDisplay:
        if self._progress is not None:
            notices.listeners.append(self.say)
            description = f"a pass over {self.rows:,} rows"
            self._progress.bar.update(self._progress.task, description=description, total=self.rows)
            self._progress.bar.start()
        return self

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._progress is not None:
            notices.listeners.remove(self.say)
            self._progress.close()

    def say(self, text: str) -> None:
        """Print a line."""
        if self._progress is not None:
            self._progress.console.print(f"[{self.name}] {time.perf_counter() - self.began:7.1f} s  {text}")

    def step(self, trained: Any, step: Step) -> None:
        """Further rows of the pass are learned."""
        if self._progress is not None:
            self._progress.bar.advance(self._progress.task, len(step.row_losses))
