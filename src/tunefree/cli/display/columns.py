"""What `tunefree columns` prints."""

from __future__ import annotations

import json

import typer

from tunefree.cli.display.common import note_of, table_of
from tunefree.core.console import plain_console
from tunefree.core.parameters import as_options
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
        notes = [as_options(note) for note in view.notes()]
        typer.echo(json.dumps(view.facts() | {"notes": notes}, indent=2, default=str))
        return
    console = plain_console()
    console.print(view.head())
    console.print(table_of(Table("", HEADER, view.table(), numeric_from=len(HEADER))))
    for note in view.notes():
        console.print(note_of(note))
    console.print(HINT)
