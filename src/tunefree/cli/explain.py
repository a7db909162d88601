"""`tunefree explain`: contributions of columns to each prediction, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tunefree.cli.options import NEW_ROWS, ClassOf, Files, ModelFile, RowsAsJson, TableFile, write_table
from tunefree.model_files.plan import Plan
from tunefree.workflows.output_columns import OutputColumns


def explain(
    model: ModelFile,
    plan: Annotated[Plan, NEW_ROWS],
    files: Files,
    layout: Annotated[OutputColumns, ("ids",)],
    output: TableFile = Path("-"),
    top: Annotated[
        int | None, typer.Option(min=0, help="Columns for the strongest terms only; the others are added up.")
    ] = None,
    class_: ClassOf = None,
    json: RowsAsJson = False,
) -> None:
    """Explain predictions: what each column contributes to a row's log-odds or number.

    Contributions add up to the column `margin`, which is what the model predicts. With more than two classes it is the
    log-probability of the predicted one, or of the one asked for, minus the mean over the classes. For instance:

    tunefree explain people.model new.csv --id name --top 10 -o why.csv
    """
    from tunefree.explanation.importance import describe_reference
    from tunefree.workflows import explanation

    def write(trained: Any, source: Any, bad: Any) -> tuple[int, str]:
        rows, decomposition = explanation.write(trained, source, str(output), bad, class_, top, layout.ids)
        return rows, describe_reference(decomposition)

    write_table("explanations", model, plan, files, output, json, write, "linear")
