"""`tunefree learners`: single learners and the pool on one pass."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunefree.cli.options import Files, Json, check_outputs
from tunefree.model_files.plan import PROBLEM, Plan


def learners(
    plan: Annotated[Plan, (*PROBLEM, "exposure")],
    files: Files,
    learner: Annotated[
        list[str] | None, typer.Option(help="Learner to compare, or pool; by default all. May be repeated.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Plot progressive losses to a .png, .svg or .pdf file.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write an HTML report.")] = None,
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Compare single learners and the pool on one pass over the rows: progressive losses, and the cost of a search.

    All predict each row before any learns it. For instance:

    tunefree learners people.csv --target income

    tunefree learners people.csv --target income --learner scinol2 --learner pool --plot people.png
    """
    from tunefree.cli.display import show
    from tunefree.papers.learner_comparison import one_pass
    from tunefree.papers.learner_comparison import report as reporting
    from tunefree.plotting import files as pictures

    if plot:
        pictures.check(plot)
    check_outputs([plot, report], files.data)
    source = files.source(is_table=plan.target is not None)
    comparison = one_pass.compare(source, plan, learner, None if quiet else reporting.Display())
    page = reporting.page(comparison)
    show([block for section in page.sections for block in section.blocks], json)
    if plot:
        chart = reporting.chart_of_losses(comparison)
        pictures.save(chart.draw, chart.inches, plot)
    if report:
        page.save(report)
