"""What commands print: progress on standard error, results on standard output."""

from __future__ import annotations

import json
from collections.abc import Iterable

import typer

from tunefree.core.console import plain_console
from tunefree.report import terminal
from tunefree.report.document import Block
from tunefree.report.record import record


def show(blocks: Iterable[Block], as_json: bool = False) -> None:
    """Print blocks of a report on standard output.

    ``as_json``: all values, for programs.

    >>> from tunefree.report.document import Fact, Facts
    >>> show([Facts([Fact("rows", 1200, "{:,}".format)])], as_json=True)
    {"rows": 1200}
    """
    if as_json:
        typer.echo(json.dumps(record(blocks)))
        return
    terminal.show(plain_console(), blocks)
