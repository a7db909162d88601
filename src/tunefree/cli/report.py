"""`tunefree report`: performance, importance and guarantees of a model, as a page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tunefree.cli.options import (
    NEW_ROWS,
    Cost,
    Decided,
    EvaluationFiles,
    ModelFile,
    bad_rows_of,
    check_outputs,
    tell_of_rows,
)
from tunefree.core.errors import ModelError
from tunefree.core.parameters import option
from tunefree.model_files.plan import Plan


def report(
    model: ModelFile,
    plan: Annotated[Plan, NEW_ROWS],
    test: EvaluationFiles,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file to write.")] = Path("report.html"),
    train: Annotated[
        list[str] | None, typer.Option(metavar="DATA", help="Rows that the model has learned: peers learn these, too.")
    ] = None,
    cost: Cost = None,
    class_: Decided = None,
) -> None:
    """Report on a model in one HTML file, which opens without a network.

    How well it predicts, in a sentence and in numbers; beside others, which is a constant, and with --train also a
    logistic or ridge regression, a random forest and gradient boosting; what matters, where it is unsure, what looks
    wrong with the data, who learned, what is guaranteed, and how to make the model again. For instance:

    tunefree report people.model test.csv -o people.html

    tunefree report people.model test.csv --train people.csv
    """
    from tunefree.core import storage
    from tunefree.model_files.trained import Trained
    from tunefree.plotting import files
    from tunefree.report import page
    from tunefree.report.decisions import Costs

    costs = None if cost is None else Costs.parsed(cost)
    decided = [name for name, value in (("cost", cost), ("class", class_), ("train", train)) if value is not None]
    for name in [*plan.changed(), *test.changed(), *decided] if not test.data else ():
        raise ModelError(f"{option(name)} is for data on which the model is judged; leave it out, or give some")
    bad = bad_rows_of(plan)
    check_outputs([output], [model, *test.data, *(train or [])])
    if output.suffix.lower() not in {".html", ".htm"}:
        raise ModelError(f"{output}: reports are written as .html; name the file so")
    trained = Trained.load(model)
    source = test.source(plan, is_table=trained.kind == "table") if test.data else None
    learned = replace(test, data=train).source(plan, is_table=True) if train else None
    document = page.report(trained, source, bad, storage.digest_of(model), costs, class_, learned)
    tell_of_rows(bad)
    page.write(document, output)
    if not files.is_installed():
        typer.echo(page.NO_CHARTS, err=True)
    typer.echo(f"report in {output}", err=True)
