"""Blocks on a terminal. Charts are left out: pages show them, and `--plot` writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from tunefree.core.parameters import as_options
from tunefree.report.document import Block, Chart, Code, Data, Facts, Note, Table


def show(console: Console, blocks: Iterable[Block]) -> None:
    """Print blocks.

    >>> from tunefree.core.console import plain_console
    >>> from tunefree.report.document import Column
    >>> show(plain_console(), [Table("Ages", [Column("name"), Column("age", str)], [["Ann", 7]]), Note("two")])
    Ages
    name  age
    Ann     7
    two
    """
    for block in blocks:
        for line in LINES[type(block)](block):
            console.print(line)


def _facts(block: Facts) -> list[Any]:
    has_intervals = any(fact.interval() for fact in block.facts)
    grid = Grid(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    for _ in range(1 + has_intervals):
        grid.add_column(overflow="fold")
    for fact in block.facts:
        grid.add_row(*_words(fact.name, fact.text(), *([fact.interval()] if has_intervals else [])))
    return [*_title(block.title), grid, *([block.note] if block.note else [])]


def _table(block: Table) -> list[Any]:
    rows = block.rows_shown()
    if not rows:
        return []
    grid = Grid(box=None, header_style="bold", pad_edge=False)
    for column in block.columns_shown():
        # names are folded rather than cut where the screen is narrow
        grid.add_column(column.title, justify="right" if column.is_numeric else "left", overflow="fold")
    for row, texts in zip(rows, block.texts(), strict=True):
        is_marked = block.marked is not None and row[0] == block.marked
        grid.add_row(*_words(*texts), style="bold cyan" if is_marked else None)
    if block.note:
        grid.caption, grid.caption_justify = block.note, "left"
    return [*_title(block.title), grid]


def _title(title: str) -> list[Text]:
    return [Text(title, style="italic")] if title else []


def _words(*texts: str) -> list[Text]:
    return [Text(text) for text in texts]


def _note(block: Note) -> list[Any]:
    if block.tone == "warning":
        return [Text(as_options(f"warning: {block.text}"), style="bold yellow")]
    return [as_options(f"note: {block.text}" if block.tone == "note" else block.text)]


LINES: dict[type, Any] = {
    Facts: _facts,
    Table: _table,
    Chart: lambda block: [],
    Note: _note,
    Code: lambda block: [block.text],
    Data: lambda block: [],
}
