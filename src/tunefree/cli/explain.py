"""`tunefree explain`: what columns contribute to each prediction, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunefree.cli.options import (
    NEW_ROWS,
    ClassOf,
    Files,
    ModelFile,
    RowsAsJson,
    TableFile,
    bad_rows_of,
    check_outputs,
    tell_of_table,
    unless_standard,
)
from tunefree.model_files.plan import Plan
from tunefree.workflows.output_columns import OutputColumns


def explain(
    model: ModelFile,
    plan: Annotated[Plan, NEW_ROWS],
    files: Files,
    layout: Annotated[OutputColumns, ("ids",)],
    output: TableFile = Path("-"),
    top: Annotated[
        int | None, typer.Option(help="Columns for the strongest terms only; the others are added up.")
    ] = None,
    class_: ClassOf = None,
    json: RowsAsJson = False,
) -> None:
    """Explain predictions: what each column contributes to a row's log-odds or number.

    Contributions add up to the column `margin`, which is what the model predicts. With more than two classes it is the
    log-probability of the predicted one, or of the one asked for, minus the mean over the classes. For instance:

    tunefree explain people.model new.csv --id name --top 10 -o why.csv
    """
    from tunefree.model_files.trained import load
    from tunefree.workflows import explanation

    bad = bad_rows_of(plan)
    check_outputs([unless_standard(output)], [model, *files.data])
    trained = load(model, "linear")
    source = files.source(plan, is_table=trained.kind == "table")
    rows, decomposition = explanation.write(trained, source, str(output), bad, class_, top, layout.ids)
    tell_of_table("explanations", rows, output, bad, json, decomposition)
