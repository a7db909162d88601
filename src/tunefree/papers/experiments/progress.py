"""Progress of experiments on standard error: a bar on a terminal, otherwise occasional lines."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tunefree.core.console import description_column, plain_console

_LINE_SECONDS = 10.0


class Display:
    """Shows the current experiment, its progress and the files written; nothing if it is quiet."""

    def __init__(self, quiet: bool = False) -> None:
        self.console = plain_console(stderr=True)
        self.console.quiet = quiet
        self.bar: Progress | None = None
        self.task: Any = None
        self.began = self.shown = 0.0

    def begin(self, name: str, title: str) -> None:
        """An experiment starts."""
        self.console.print(f"{name}: {title}")
        self.began = self.shown = time.monotonic()
        if self.console.is_terminal and not self.console.quiet:
            columns = TextColumn("  parts"), BarColumn(), MofNCompleteColumn()
            times = TimeElapsedColumn(), TimeRemainingColumn(), description_column("left ")
            self.bar = Progress(*columns, *times, console=self.console, transient=True)
            self.task = self.bar.add_task("", total=None)
            self.bar.start()

    def progress(self, done: int, total: int, kept: int) -> None:
        """Show how many parts are finished, and how many of them in an earlier run."""
        description = f"({kept} from an earlier run)" if kept else ""
        if self.bar is not None:
            self.bar.update(self.task, completed=done, total=total, description=description)
        elif time.monotonic() - self.shown > _LINE_SECONDS:
            self.shown = time.monotonic()
            self.console.print(f"  {done} of {total} parts done {description}".rstrip())

    def end(self, files: list[Path]) -> None:
        """An experiment is finished, and its files are written."""
        self.stop()
        for file in files:
            self.console.print(f"  {file}")
        self.console.print(f"  in {time.monotonic() - self.began:.1f} s")

    def stop(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.stop()
            self.bar = None
