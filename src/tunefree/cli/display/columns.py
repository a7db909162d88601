"""What is printed of the columns of a table: what each became, and why."""

from __future__ import annotations

from rich.table import Table

from tunefree.cli.display.common import table_of_names
from tunefree.report.told_columns import facts_of_columns
from tunefree.workflows.prediction import Predictor


def table_of_columns(trained: Predictor, top: int) -> list[Table]:
    """The same for people: the first columns as a table."""
    known = facts_of_columns(trained).get("columns", [])
    table = table_of_names("column")
    table.add_column("learned as")
    table.add_column("because of", overflow="fold")
    for own in known[: top or None]:
        table.add_row(own["name"], own["kind"], own["why"])
    if top and len(known) > top:
        table.caption, table.caption_justify = f"and {len(known) - top:,} more; --top 0 lists all", "left"
    return [table] if known else []
