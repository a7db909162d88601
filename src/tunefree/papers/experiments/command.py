"""`tunefree reproduce`: figures and tables of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Which; none for a list.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes: seconds instead of minutes.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for what comes out.")] = Path("reproduction"),
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data files; by default what TUNEFREE_DATA names.")
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes to compute in.")] = 1,
    afresh: Annotated[bool, typer.Option("--afresh", help="Compute again what an earlier run has left.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Compute figures and tables of the papers anew: pictures, numbers, and what differs.

    Parts are kept in OUTPUT/parts as they are done: a run that was stopped goes on where it was. For instance:

    tunefree reproduce scinol-fig1 --quick
    """
    from tunefree.papers.experiments import running

    running.from_command_line(names or [], everything, running.Request(output, data, quick, jobs), afresh, quiet)
