"""Blocks on a terminal, and as a dict for JSON; :mod:`tunefree.report.page` makes pages of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
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
    if not block.rows_shown():
        return []
    grid = Grid(box=None, header_style="bold", pad_edge=False)
    for column in block.columns_shown():
        # names are folded rather than cut where the screen is narrow
        grid.add_column(column.title, justify="right" if column.is_numeric else "left", overflow="fold")
    for texts in block.texts():
        grid.add_row(*_words(*texts))
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


LISTS = {"plain": "notes", "note": "notes", "warning": "warnings"}  # by tone; fine print is about tables


def record(blocks: Iterable[Block]) -> dict[str, Any]:
    """All values of blocks by key, for JSON.

    Raises a ValueError if two blocks have the same key, and are no lists.

    >>> from tunefree.report.document import Column, Fact
    >>> from tunefree.report.formats import PERCENT
    >>> facts = Facts([Fact("rows", 7), Fact("error", Measure(0.5, 0.25, 0.75), PERCENT)])
    >>> table = Table("Ages", [Column("name"), Column("age")], [["Ann", 7.5], ["Bo", float("nan")]])
    >>> record([facts, table, Note("few rows", "warning")]) == {
    ...     "rows": 7,
    ...     "error": 0.5,
    ...     "intervals": {"error": [0.25, 0.75]},
    ...     "ages": [{"name": "Ann", "age": 7.5}, {"name": "Bo", "age": None}],
    ...     "warnings": ["few rows"],
    ... }
    True
    """
    whole: dict[str, Any] = {}
    for block in blocks:
        part = PARTS[type(block)](block)
        for key in part.keys() & whole.keys():
            if not isinstance(part[key], list):
                raise ValueError(f"two blocks have the key {key!r}")
            part[key] = [*whole[key], *part[key]]  # as of tables of one kind
        whole |= part
    return whole


def raw(value: Any) -> Any:
    """A value as JSON has it.

    >>> raw({1: np.array([1.0, np.inf]), "a": (np.int64(2), None)})
    {'1': [1.0, None], 'a': [2, None]}
    """
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, Measure):
        return raw(value.value)
    if hasattr(value, "_asdict"):
        return raw(value._asdict())
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


def _fact_values(block: Facts) -> dict[str, Any]:
    values = _with_intervals((key_of(fact, fact.name), fact.value) for fact in block.facts)
    return {block.key: values} if block.key else values


def _table_rows(block: Table) -> dict[str, Any]:
    keys = [key_of(column, column.title) for column in block.columns]
    return {key_of(block, block.title): [_with_intervals(zip(keys, row, strict=True)) for row in block.rows]}


PARTS: dict[type, Any] = {
    Facts: _fact_values,
    Table: _table_rows,
    Chart: lambda block: {} if block.data is None else {key_of(block, block.title): raw(block.data)},
    Note: lambda block: {LISTS[block.tone]: [as_options(block.text)]} if block.tone in LISTS else {},
    Code: lambda block: {"command": block.text},
    Data: lambda block: {block.key: raw(block.value)},
}
