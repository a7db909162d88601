"""`tunefree report`: what is known of a model, as a page."""

from __future__ import annotations

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
    cost: Cost = None,
    class_: Decided = None,
) -> None:
    """What is known of a model, as one HTML file that opens without a network.

    What was learned and how well, who learned it, what matters, what is guaranteed, what looks wrong with the data, and
    how to make the model again. For instance:

    tunefree report people.model test.csv -o people.html
    """
    from tunefree.core import storage
    from tunefree.model_files.trained import Trained
    from tunefree.report import page
    from tunefree.workflows.decisions import Costs

    costs = None if cost is None else Costs.parsed(cost)
    decided = [name for name, value in (("cost", cost), ("class", class_)) if value is not None]
    for name in [*plan.changed(), *test.changed(), *decided] if not test.data else ():
        raise ModelError(f"{option(name)} is for data on which the model is judged; leave it out, or give some")
    bad = bad_rows_of(plan)
    check_outputs([output], [model, *test.data])
    if output.suffix.lower() not in {".html", ".htm"}:
        raise ModelError(f"{output}: reports are written as .html; name the file so")
    trained = Trained.load(model)
    source = test.source(plan, is_table=trained.kind == "table") if test.data else None
    document = page.report(trained, source, bad, storage.digest_of(model), costs, class_)
    tell_of_rows(bad)
    page.write(document, output)
    typer.echo(f"report in {output}", err=True)
