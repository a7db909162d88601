"""What a long ``fit`` shows while it learns: lines, and on a terminal a progress bar."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from tunefree.core import compilation


class FitDisplay:
    """Lines, each with the seconds so far, and a bar for the pass; nothing unless verbose.

    >>> with FitDisplay("Example", verbose=True) as display:
    ...     display.begins("a pass over 10 rows", 10)
    ...     display.advance(5)
    ...     display.say("10 rows learned")  # doctest: +ELLIPSIS
    [Example]     ... s  10 rows learned
    """

    def __init__(self, name: str, verbose: bool) -> None:
        self.name, self.verbose, self.began = name, verbose, time.perf_counter()
        self._console: Any = None
        self._progress: Any = None

    def __enter__(self) -> FitDisplay:
        if self.verbose:
            from tunefree.core.console import plain_console

            self._console = plain_console()
            compilation.announce(self._compiles)
        return self

    def __exit__(self, *error: type[BaseException] | BaseException | TracebackType | None) -> None:
        compilation.forget(self._compiles)
        if self._progress is not None:
            self._progress.close()

    def _compiles(self) -> None:
        self.say(compilation.NOTICE)

    def say(self, text: str) -> None:
        """Print a line."""
        if self._console is not None:
            self._console.print(f"[{self.name}] {time.perf_counter() - self.began:7.1f} s  {text}")

    def begins(self, text: str, rows: int) -> None:
        """A pass over so many rows begins, of which the bar shows the share that is done."""
        if self._console is not None and self._console.is_terminal:
            from tunefree.core.console import ProgressLine

            self._progress = ProgressLine(self._console)
            self._progress.bar.start()
            self._progress.show(text, 0.0, rows)

    def advance(self, rows: int) -> None:
        """So many further rows of the pass are learned."""
        if self._progress is not None:
            self._progress.bar.advance(self._progress.task, rows)
