"""`tunefree predict`: predictions of a model as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from tunefree.cli.options import NEW_ROWS, Files, ModelFile, RowsAsJson, TableFile, write_table
from tunefree.model_files.plan import Plan
from tunefree.workflows.output_columns import OutputColumns


def predict(
    model: ModelFile,
    plan: Annotated[Plan, NEW_ROWS],
    files: Files,
    layout: OutputColumns,
    output: TableFile = Path("-"),
    json: RowsAsJson = False,
) -> None:
    """Predict rows: labels and probabilities, or numbers. Rows of standard input (-) are predicted as they come.

    For instance:

    tunefree predict people.model new.csv --id name --top 3 -o predictions.csv

    Rows that differ from those learned are predicted, and told of: categories never seen, numbers far outside, columns
    that are missing more often or distributed otherwise.
    """
    from tunefree.workflows import prediction

    def write(trained: Any, source: Any, bad: Any) -> tuple[int, str]:
        return prediction.write(trained, source, str(output), bad, layout), ""

    write_table("predictions", model, plan, files, output, json, write, live=True)
