"""Consoles for tables and lines, which may hold names of columns, classes and files."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import TextColumn


def plain_console(stderr: bool = False) -> Console:
    """A console that prints every text as it is: brackets are no markup, and ``:heart:`` is no picture.

    Parameters
    ----------
    stderr : bool, default False
        Whether it prints to standard error.

    Returns
    -------
    rich.console.Console

    Examples
    --------
    >>> console = plain_console()
    >>> with console.capture() as capture:
    ...     console.print("date[weekday=3], [/b] and :heart:")
    >>> print(capture.get(), end="")
    date[weekday=3], [/b] and :heart:
    """
    return Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


def description_column(before: str = "") -> Any:
    """A column of a progress bar with the description of its task, as it is."""
    return TextColumn(f"{before}{{task.description}}", markup=False)
