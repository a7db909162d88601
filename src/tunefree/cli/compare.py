"""`tunefree compare`: every learner and the pool on one pass over the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunefree.cli.options import Files, Json, check_outputs
from tunefree.model_files.plan import PROBLEM, Plan


def compare(
    plan: Annotated[Plan, PROBLEM],
    files: Files,
    learner: Annotated[
        list[str] | None, typer.Option(help="A learner, or pool; may be given again. All of them by default.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw progressive loss against rows: a .png, .svg or .pdf file.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write the comparison as an HTML file too.")] = None,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Train every learner and the pool on one pass: who predicts best, and what a sweep would have cost.

    Each row is predicted by all before any learns it. For instance:

    tunefree compare people.csv --target income --plot people.png
    """
    from tunefree.cli.display import ComparisonDisplay, show
    from tunefree.plotting import files as pictures
    from tunefree.report.compared import INCHES, chart_of_losses, costs, losses
    from tunefree.workflows import comparison

    if plot:
        pictures.check(plot)
    check_outputs([plot, report], files.data)
    callback = None if quiet else ComparisonDisplay()
    compared = comparison.compare(files.source(is_table=plan.target is not None), plan, learner, callback)
    show([*losses(compared), *costs(compared)], json)
    if plot:
        pictures.save(chart_of_losses(compared).draw, INCHES, plot)
    if report:
        from tunefree.report import page
        from tunefree.report.compared import compared as report_of

        page.write(report_of(compared), report)
