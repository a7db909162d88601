"""Columns in words, for what commands print and for reports: what each became, and why."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.model_files.trained import Trained
from tunefree.report.told import listed
from tunefree.stream.late import Late
from tunefree.workflows.columns import why_of

PLURALS = {
    "number": "numbers",
    "category": "categories",
    "boolean": "true or false",
    "moment": "dates",
    "time": "times of day",
    "text": "texts",
    "bag": "lists of words",
    "vector": "lists of numbers",
}
MOST_NAMED = 8
FEWEST_NAMED = 100  # rows, before columns are said to name them


def lines_of_kinds(trained: Trained) -> list[tuple[str, str]]:
    """The columns of each kind, those in a format that is not the usual one first; nothing unless of a table."""
    kinds: dict[str, list[Any]] = {}
    for column in getattr(trained.encoder, "columns", []):
        kinds.setdefault(column.kind, []).append(column)
    lines = []
    for kind, columns in kinds.items():
        columns = sorted(columns, key=lambda column: not column.told())
        names = [f"{column.name} ({column.told()})" if column.told() else column.name for column in columns]
        count = f"{len(names):,}: " if len(names) > MOST_NAMED else ""
        lines.append((PLURALS.get(kind, kind), count + listed(names, MOST_NAMED)))
    return lines + _lines_of_late(trained)


def _lines_of_late(trained: Trained) -> list[tuple[str, str]]:
    """The columns that came later, and from which row on they are features."""
    columns = getattr(trained.encoder, "columns", [])
    late = [f"{column.name} (from row {column.since:,} on)" for column in columns if isinstance(column, Late)]
    further = getattr(trained.encoder, "further", None)
    left_out = [f"{name} ({type})" for name, type in further.left_out.items()] if further else []
    lines = [("new columns", late), ("new columns of no use", left_out)]
    return [(title, listed(names, MOST_NAMED)) for title, names in lines if names]


def facts_of_columns(trained: Trained) -> dict[str, Any]:
    """What each column became, for JSON; nothing unless rows are of a table."""
    columns = getattr(trained.encoder, "columns", [])
    shown = [
        {"name": column.name, "kind": column.kind, "notation": column.told(), "why": why_of(trained.plan, column)}
        | ({"since": column.since} if isinstance(column, Late) else {})
        for column in columns
    ]
    return {"columns": shown} if shown else {}


def naming_columns(trained: Trained) -> list[tuple[str, int]]:
    """Categorical columns with more distinct values than half of the rows, and how many: they may name the rows."""
    rows = trained.progress.progressive[0].rows
    if trained.kind != "table" or rows < FEWEST_NAMED:
        return []
    columns = trained.encoder.columns
    places = trained.encoder.column_of()
    counts = np.bincount(places[places >= 0], minlength=len(columns)).tolist()
    pairs = zip(columns, counts, strict=True)
    return [(column.name, count) for column, count in pairs if column.kind == "category" and 2 * count > rows]
