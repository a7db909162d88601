"""Consoles that print the names of columns, classes and files literally."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

LINE_SECONDS = 10.0  # between progress lines without a terminal


def plain_console(stderr: bool = False) -> Console:
    """A console that prints text literally: brackets are not markup, and ``:heart:`` is not an emoji.

    >>> console = plain_console()
    >>> with console.capture() as capture:
    ...     console.print("date[weekday=3], [/b] and :heart:")
    >>> print(capture.get(), end="")
    date[weekday=3], [/b] and :heart:
    """
    return Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


class ProgressLine:
    """The progress of a task: a bar on a terminal, otherwise a line every LINE_SECONDS."""

    def __init__(self, console: Console) -> None:
        self.console, self.last = console, time.monotonic()
        description = TextColumn("{task.description}", markup=False)
        columns = SpinnerColumn(), description, BarColumn(), TimeElapsedColumn()
        self.bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self.task = self.bar.add_task("reading", total=None)

    def show(self, line: str, done: float | None = None, total: float = 1.0) -> None:
        """Show a line and the completed part, which is None if unknown."""
        self.bar.update(self.task, description=line, total=None if done is None else total, completed=done or 0.0)
        if not self.console.is_terminal and time.monotonic() - self.last > LINE_SECONDS:
            self.last = time.monotonic()
            self.console.print(line)

    def close(self) -> None:
        """Remove the bar. Stopping a bar that was never shown would print a blank line."""
        if self.bar.live.is_started:
            self.bar.stop()  # this shows the cursor again
