"""Columns: what each became, and why."""

from __future__ import annotations

from typing import Any

from tunefree.model_files.trained import Trained
from tunefree.report.document import Block, Column, Fact, Facts, Note, Table
from tunefree.report.formats import COUNT, TENTHS_OF_PERCENT, first
from tunefree.workflows.columns import ColumnsView, kind_of, why_of
from tunefree.workflows.findings import missing_shares

MOST_NAMED = 8
OPEN = 24  # columns of a table that is shown at once
HINT = "To read columns otherwise: --numeric, --categorical, --date, --text, --ignore COLUMN; --na-values, --decimal."


def facts_of_columns(trained: Trained) -> list[Fact]:
    """The columns of each kind, those in a format that is not the usual one first; nothing unless of a table."""
    kinds: dict[str, list[Any]] = {}
    for column in _columns(trained):
        kinds.setdefault(column.kind, []).append(column)
    facts = []
    for kind, columns in kinds.items():
        columns = sorted(columns, key=lambda column: not column.description())
        names = [
            f"{column.name} ({column.description()})" if column.description() else column.name for column in columns
        ]
        facts.append(Fact(kind_of(columns[0]).plural, names, _counted, f"{kind}_columns"))
    late = [f"{column.name} (from row {column.since:,} on)" for column in _columns(trained) if column.since]
    further = getattr(trained.encoder, "further", None)
    left_out = [f"{name} ({type})" for name, type in further.left_out.items()] if further else []
    new = [("new columns", late), ("new columns of no use", left_out)]
    return facts + [Fact(title, names, first(MOST_NAMED)) for title, names in new if names]


def _columns(trained: Trained) -> list[Any]:
    return list(getattr(trained.encoder, "columns", []))


def _counted(names: list[str]) -> str:
    """Names of columns, and how many there are if not all are written."""
    return (f"{len(names):,}: " if len(names) > MOST_NAMED else "") + first(MOST_NAMED)(names)


def table_of_columns(trained: Trained, most: int) -> list[Table]:
    """What the columns became, and the share of the rows kept in which each is missing; empty without columns.

    ``most``: columns that people see; 0 for all.
    """
    columns = _columns(trained)
    if not columns:
        return []
    missing, has_late = missing_shares(trained), any(column.since for column in columns)
    header = [Column("column", key="name"), Column("learned as", key="kind"), Column("because of", key="why")]
    header += [Column("from row", COUNT, "since")] if has_late else []
    header += [Column("missing", TENTHS_OF_PERCENT)] if missing else []
    rows = [
        [column.name, column.kind, why_of(trained.plan, column)]
        + ([column.since or None] if has_late else [])
        + ([missing[column.name]] if missing else [])
        for column in columns
    ]
    notes = [f"The first {most:,} of {len(columns):,} columns."] if 0 < most < len(columns) else []
    notes += ["Missing: share of the rows that are kept for growing trees."] if missing else []
    shown = range(most) if most else None
    title = f"{len(columns):,} columns"
    return [Table(title, header, rows, " ".join(notes), "columns", shown, len(columns) <= OPEN, True)]


def blocks_of_view(view: ColumnsView) -> list[Block]:
    """How a training would read the columns of a source."""
    facts = [Fact("source", view.name), Fact("rows", view.rows, COUNT), Fact("sample", view.where)]
    facts += [Fact("task", view.task, lambda task: task or "no target is named")]
    facts += [Fact("why", view.why)] if view.why else []
    columns = [
        Column("column", key="name"),
        Column("read as", key="kind"),
        Column("why"),
        Column("missing", TENTHS_OF_PERCENT),
        Column("different", COUNT),
        Column("values"),
        *(Column(name, is_shown=False) for name in ("range", "examples", "options", "findings")),
    ]
    found = [column["findings"] for column in view.facts()["columns"]]
    rows = [[*one[:5], one.values, *one[5:], of_one] for one, of_one in zip(view.columns, found, strict=True)]
    table = Table(f"{len(rows):,} columns", columns, rows, key="columns")
    return [Facts(facts), table, *(Note(line, "note") for line in view.notes()), Note(HINT, "fine")]
