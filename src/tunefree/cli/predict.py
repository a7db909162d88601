"""`tunefree predict`: predictions of a model as a file."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from tunefree.cli.options import (
    NEW_ROWS,
    Files,
    Ids,
    ModelFile,
    RowsAsJson,
    bad_rows_of,
    check_outputs,
    tell_of_rows,
    unless_standard,
)
from tunefree.model_files.plan import Plan


def predict(
    model: ModelFile,
    plan: Annotated[Plan, NEW_ROWS],
    files: Files,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="CSV or Parquet file to write; - for CSV on standard output.")
    ] = Path("-"),
    id: Ids = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Predict the second of two classes where its probability is at least P, instead of the more probable.",
            show_default=False,
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="The K most probable classes in their order, instead of the probabilities of all.",
            show_default=False,
        ),
    ] = None,
    contributions: Annotated[
        bool,
        typer.Option(
            "--contributions", help="What each column contributes to the margin, as `tunefree explain` writes it."
        ),
    ] = False,
    json: RowsAsJson = False,
) -> None:
    """Predict rows: labels and probabilities, or numbers. Rows of standard input (-) are predicted as they come.

    For instance:

    tunefree predict people.model new.csv --id name --top 3 -o predictions.csv

    Rows that differ from those learned are predicted, and told of: categories never seen, numbers far outside, columns
    that are missing more often or distributed otherwise.
    """
    from tunefree.model_files.trained import load
    from tunefree.report.record import record
    from tunefree.report.rows import rows_of
    from tunefree.stream import live
    from tunefree.workflows import prediction

    bad = bad_rows_of(plan)
    check_outputs([unless_standard(output)], [model, *files.data])
    layout = prediction.OutputColumns(tuple(id or ()), threshold, top)
    trained = load(model, "linear" if contributions else None)
    explainer = None
    if contributions:
        from tunefree.workflows import explanation

        explainer = explanation.Explainer(trained, explanation.decomposition_of(trained))
    beside = None if explainer is None else explainer.beside
    if files.data == ["-"]:
        live.answer_at_once()
    written = prediction.write(trained, files.source(plan), str(output), bad, layout, beside)
    if json:
        typer.echo(dumps({"rows": written, **record(rows_of(bad))}), err=str(output) == "-")
        return
    tell_of_rows(bad)
    if explainer is not None:
        from tunefree.explanation.words import describe_reference

        typer.echo(describe_reference(explainer.decomposition), err=True)
    if unless_standard(output):
        typer.echo(f"{written} predictions in {output}", err=True)
