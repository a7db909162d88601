"""Rendering of blocks on a terminal, and as a dict for JSON; :mod:`tunefree.report.page` renders them as HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from tunefree.core.parameters import as_options
from tunefree.report.document import Block, Chart, Code, Data, Facts, Note, Table, key_of
from tunefree.workflows.metrics import Measure


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
        for line in _lines(block):
            console.print(line)


def _lines(block: Block) -> list[Any]:
    """The terminal output of a block; empty for charts and data."""
    match block:
        case Facts():
            rows = [(fact.name, fact.text(), fact.interval()) for fact in block.facts]
            width = 3 if any(interval for *_, interval in rows) else 2
            grid = _grid([row[:width] for row in rows], show_header=False)
            grid.columns[0].style, grid.columns[0].no_wrap = "bold", True
            return [*_title(block.title), grid, *([block.note] if block.note else [])]
        case Table() if block.texts():
            grid = _grid(block.texts(), header_style="bold")
            for column, shown in zip(grid.columns, block.columns_shown(), strict=True):
                column.header, column.justify = shown.title, "right" if shown.is_numeric else "left"
            if block.note:
                grid.caption, grid.caption_justify = block.note, "left"
            return [*_title(block.title), grid]
        case Note(text, "warning"):
            return [Text(as_options(f"warning: {text}"), style="bold yellow")]
        case Note(text, tone):
            return [as_options(f"note: {text}" if tone == "note" else text)]
        case Code(text):
            return [text]
    return []


def _grid(rows: Sequence[Sequence[str]], **options: Any) -> Grid:
    """Texts in columns, which are folded, not truncated, on a narrow screen."""
    grid = Grid(box=None, pad_edge=False, **options)
    for _ in rows[0] if rows else ():
        grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*map(Text, row))
    return grid


def _title(title: str) -> list[Text]:
    return [Text(title, style="italic")] if title else []


def record(blocks: Iterable[Block]) -> dict[str, Any]:
    """All values of blocks by key, for JSON.

    Raises a ValueError if two blocks have the same key and values other than lists.
    """
    result: dict[str, Any] = {}
    for block in blocks:
        values = _values(block)
        for key in values.keys() & result.keys():
            if not isinstance(values[key], list):
                raise ValueError(f"two blocks have the key {key!r}")
            values[key] = [*result[key], *values[key]]  # such as several tables of one kind
        result |= values
    return result


def raw(value: Any) -> Any:
    """Convert a value to JSON types.

    >>> raw({1: np.array([1.0, np.inf]), "a": (np.int64(2), None)})
    {'1': [1.0, None], 'a': [2, None]}
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, Measure):
        return raw(value.value)
    if isinstance(value, dict):
        return {str(key): raw(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [raw(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _with_intervals(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Values by key, and the intervals of those that have one."""
    values = dict(pairs)
    measures = {key: value for key, value in values.items() if isinstance(value, Measure)}
    intervals = {key: [measure.low, measure.high] for key, measure in measures.items() if measure.low is not None}
    return raw(values | ({"intervals": intervals} if measures else {}))


def _values(block: Block) -> dict[str, Any]:
    """The values of a block for JSON, by key; fine print is left out."""
    match block:
        case Facts():
            values = _with_intervals((key_of(fact, fact.name), fact.value) for fact in block.facts)
            return {block.key: values} if block.key else values
        case Table():
            keys = [key_of(column, column.title) for column in block.columns]
            rows = [_with_intervals(zip(keys, row, strict=True)) for row in block.rows]
            return {key_of(block, block.title): rows}
        case Chart() if block.data is not None:
            return {key_of(block, block.title): raw(block.data)}
        case Note(text, tone) if tone != "fine":
            return {"warnings" if tone == "warning" else "notes": [as_options(text)]}
        case Code(text):
            return {"command": text}
        case Data(key, value):
            return {key: raw(value)}
    return {}
