"""What several commands print: tables of names and values, warnings, and blocks of reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tunefree.core.parameters import as_options
from tunefree.model_files.trained import Trained
from tunefree.report import document
from tunefree.report.told import order_warning


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


def table_of(block: document.Table, marked: str | None = None) -> Table:
    """A table of a report for a terminal; the row named ``marked`` stands out."""
    table = table_of_names(block.header[0])
    for place, title in enumerate(block.header[1:], 1):
        table.add_column(title, justify="right" if place >= block.numeric_from else "left", overflow="fold")
    for row in block.rows:
        table.add_row(*row, style="bold cyan" if row[0] == marked else None)
    if block.note:
        table.caption, table.caption_justify = block.note, "left"
    return table


def show_blocks(console: Console, blocks: list[Any]) -> None:
    """Print facts, tables and notes of a report.

    Parameters
    ----------
    console : Console
    blocks : list of Facts, Table and Note

    Examples
    --------
    >>> from tunefree.core.console import plain_console
    >>> show_blocks(plain_console(), [document.Table("Ages", ["name", "age"], [["Ann", "7"]]), document.Note("two")])
    Ages
    name  age
    Ann     7
    two
    """
    for block in blocks:
        for printed in PRINTED[block.kind](block):
            console.print(printed)


def warning_of(text: str) -> Text:
    """A warning as it is printed."""
    return Text(as_options(f"warning: {text}"), style="bold yellow")


def note_of(text: str) -> str:
    """A note as it is printed."""
    return as_options(f"note: {text}")


def order_told(trained: Trained) -> list[Text]:
    """A warning, if the targets depend on the order of the rows."""
    warning = order_warning(trained)
    return [] if warning is None else [warning_of(warning)]


def _of_facts(block: document.Facts) -> list[Any]:
    table = plain_table()
    for name, value in block.rows:
        table.add_row(name, value)
    return [table]


def _of_table(block: document.Table) -> list[Any]:
    return [Text(block.caption, style="italic"), table_of(block)]


def _of_note(block: document.Note) -> list[Any]:
    return [warning_of(block.text) if block.tone == "warning" else as_options(block.text)]


PRINTED: dict[str, Callable[[Any], list[Any]]] = {"facts": _of_facts, "table": _of_table, "note": _of_note}
