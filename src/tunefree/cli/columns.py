"""`tunefree columns`: how a training would read a file, before it does."""

from __future__ import annotations

from typing import Annotated

import typer

from tunefree.cli.options import Files, Json, Problem, given, refuse

NO_EFFECT = {"loss", "hash-bits", "on-bad-row", "unlabelled"}  # on how columns are read


def columns(
    problem: Problem,
    files: Files,
    group: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of groups, as in `tunefree train`.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """How `tunefree train` would read each column and why, and what columns may be; without training.

    It looks at rows all over the files, and takes the options by which columns are read, so that their effect can be
    seen. For instance:

    tunefree columns people.csv --target income

    tunefree columns people.csv --target income --categorical zip --json
    """
    from tunefree.cli.display.columns import show_columns
    from tunefree.workflows.columns import view_of

    said = [*given(problem), *given(files)]
    refuse([name for name in said if name in NO_EFFECT], "has no effect on how columns are read; leave it out")
    show_columns(view_of(files.source(), problem.plan(files, group=group)), json)
