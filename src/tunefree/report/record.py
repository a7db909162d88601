"""Blocks as a dict for JSON: all values as they are, under the keys of facts, columns and tables.

Facts stand for themselves or under the key of their block, a table is a list of rows, a chart the data that it draws.
Tables of the same key are one list.
``notes`` and ``warnings`` are lists of texts. What has an interval is its value, and beside it ``intervals`` has the
two ends under its key. What is undefined is null.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from tunefree.core.parameters import as_options
from tunefree.report.document import Block, Chart, Code, Data, Facts, Note, Table, key_of
from tunefree.workflows.metrics import Measure

LISTS = {"plain": "notes", "note": "notes", "warning": "warnings"}  # by tone; fine print is about tables


def record(blocks: Iterable[Block]) -> dict[str, Any]:
    """All values of blocks.

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


def _of_facts(block: Facts) -> dict[str, Any]:
    values = _with_intervals((key_of(fact, fact.name), fact.value) for fact in block.facts)
    return {block.key: values} if block.key else values


def _of_table(block: Table) -> dict[str, Any]:
    keys = [key_of(column, column.title) for column in block.columns]
    return {key_of(block, block.title): [_with_intervals(zip(keys, row, strict=True)) for row in block.rows]}


def _of_chart(block: Chart) -> dict[str, Any]:
    return {} if block.data is None else {key_of(block, block.title): raw(block.data)}


def _of_note(block: Note) -> dict[str, Any]:
    return {LISTS[block.tone]: [as_options(block.text)]} if block.tone in LISTS else {}


PARTS: dict[type, Any] = {
    Facts: _of_facts,
    Table: _of_table,
    Chart: _of_chart,
    Note: _of_note,
    Code: lambda block: {"command": block.text},
    Data: lambda block: {block.key: raw(block.value)},
}
