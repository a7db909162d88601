"""What the tables and lines of several commands have in common."""

from __future__ import annotations

from rich.table import Table


def plain_table() -> Table:
    """A table of names and values, without a header."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def table_of_names(title: str) -> Table:
    """A table with a column for names, which are folded rather than cut where the screen is narrow."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column(title, overflow="fold")
    return table
