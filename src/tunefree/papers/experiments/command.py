"""`tunefree reproduce`: figures and tables of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="ID...", help="Names of the results; none for a list.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Compute all results.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Use smaller sizes: seconds instead of minutes.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the results.")] = Path("reproduction"),
    data: Annotated[Path | None, typer.Option(help="Folder of the data files; by default $TUNEFREE_DATA.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of processes.")] = 1,
    afresh: Annotated[bool, typer.Option("--afresh", help="Do not reuse results of earlier runs.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Compute figures and tables of the papers: pictures, numbers, and differences from the papers.

    Finished parts are saved in OUTPUT/parts, so that an interrupted run can be continued. For instance:

    tunefree reproduce scinol-fig1 --quick
    """
    from tunefree.papers.experiments import running

    running.from_command_line(names or [], everything, running.Request(output, data, quick, jobs), afresh, quiet)
