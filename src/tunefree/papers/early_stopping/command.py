"""`tunefree path`: the regularization path of data, or of a model that was stopped early."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from tunefree.cli.options import Files, Json, check_outputs
from tunefree.core.errors import ModelError
from tunefree.core.parameters import option
from tunefree.model_files.plan import PROBLEM, Plan
from tunefree.papers.early_stopping import EARLY_STOPPING

ITERATIONS = 500


@dataclass(frozen=True)
class FilesOrModel(Files):
    """Where rows come from, or a model."""

    data: Annotated[
        list[str],
        typer.Argument(
            help="Data as for `tunefree train`, or a model that `tunefree train --learner early-stopping` wrote."
        ),
    ]


def path(
    plan: Annotated[Plan, (*PROBLEM, "kernel"), {"learner": EARLY_STOPPING}],
    files: FilesOrModel,
    iterations: Annotated[int, typer.Option(help="Length of the path.")] = ITERATIONS,
    at: Annotated[int | None, typer.Option(help="Stop at this iteration, whatever rows held out say.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write the model to, as it is stopped.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw losses, errors and norms: a .png, .svg or .pdf file.")] = None,
    json: Json = False,
) -> None:
    """The regularization path: iterations of the subgradient method, and where rows held out say to stop.

    All rows are read into memory; a tenth of them is held out. A model made so has its path in its file, and nothing
    is learned anew. For instance:

    tunefree path people.csv --target income --plot path.png

    tunefree path people.model --at 30 --output earlier.model
    """
    from tunefree.cli.display import show
    from tunefree.core import storage
    from tunefree.model_files.trained import load
    from tunefree.papers.early_stopping import report, training
    from tunefree.plotting import files as pictures

    if plot:
        pictures.check(plot)
    check_outputs([output, plot], files.data)
    if len(files.data) == 1 and storage.is_model(files.data[0]):
        asked = {
            **plan.changed(),
            **files.changed(),
            **({} if iterations == ITERATIONS else {"iterations": iterations}),
        }
        for name in asked.keys() - {"learner"}:
            why = "is for data, and this is a model that has been made"
            raise ModelError(f"{option(name)} {why}; leave it out, or give the data")
        stopped = load(files.data[0], "path")
    else:
        stopped = training.descend(files.source(is_table=plan.target is not None), plan, iterations)
    if at is not None:
        stopped = replace(stopped, model=stopped.model.at(at))
    if output:
        stopped.save(output)
    show(report.path(stopped), json)
    if plot:
        chart = report.chart_of_path(stopped)
        pictures.save(chart.draw, chart.inches, plot)
