"""What `tunefree columns` prints."""

from __future__ import annotations

import json

import typer

from tunefree.cli.display.common import table_of
from tunefree.core.console import plain_console
from tunefree.report.document import Table
from tunefree.workflows.columns import HEADER, ColumnsView

HINT = "To read columns otherwise: --numeric, --categorical, --date, --text, --ignore COLUMN; --na-values, --decimal."


def show_columns(view: ColumnsView, as_json: bool) -> None:
    """Print what was seen of a source.

    Parameters
    ----------
    view : ColumnsView
    as_json : bool
        Whether to print JSON instead of a table.
    """
    if as_json:
        typer.echo(json.dumps(view.facts(), indent=2, default=str))
        return
    console = plain_console()
    console.print(view.head())
    console.print(table_of(Table("", HEADER, view.table(), numeric_from=len(HEADER))))
    for note in view.notes():
        console.print(f"note: {note}")
    console.print(HINT)
