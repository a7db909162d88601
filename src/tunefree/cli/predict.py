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
from tunefree.core.errors import ModelError
from tunefree.model_files.plan import Plan


def parts_of(name: str, text: str | None) -> tuple[float, ...]:
    """Numbers of an option, between commas; none if it is not there.

    Examples
    --------
    >>> parts_of("interval", ".5,.9"), parts_of("interval", None)
    ((0.5, 0.9), ())
    """
    try:
        return () if text is None else tuple(float(part) for part in text.split(","))
    except ValueError:
        raise ModelError(f"`{name}` takes numbers with commas between them, such as .5,.9, not {text!r}") from None


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
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="PARTS",
            help="Intervals that hold so many of the targets, such as .9 or .8,.95: columns low[0.9] and high[0.9].",
            show_default=False,
        ),
    ] = None,
    quantiles: Annotated[
        str | None,
        typer.Option(
            metavar="LEVELS",
            help="Quantiles of the targets, such as .1,.5: columns quantile[0.1].",
            show_default=False,
        ),
    ] = None,
    set_: Annotated[
        str | None,
        typer.Option(
            "--set",
            metavar="PARTS",
            help="Sets that have the right class for so many of the rows, such as .9: a column set[0.9].",
            show_default=False,
        ),
    ] = None,
    conditional: Annotated[
        str | None,
        typer.Option(metavar="class", help="With --set: for so many of the rows of each class.", show_default=False),
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
    from tunefree.workflows import prediction

    bad = bad_rows_of(plan)
    check_outputs([unless_standard(output)], [model, *files.data])
    asked = parts_of("interval", interval), parts_of("quantiles", quantiles), parts_of("set", set_)
    layout = prediction.OutputColumns(tuple(id or ()), threshold, top, *asked, conditional)
    trained = load(model, "linear" if contributions else None)
    explainer = None
    if contributions:
        from tunefree.workflows import explanation

        explainer = explanation.Explainer(trained, explanation.decomposition_of(trained))
    beside = None if explainer is None else explainer.beside
    source = files.source(plan, live=True)
    written = prediction.write(trained, source, str(output), bad, layout, beside)
    if json:
        typer.echo(dumps({"rows": written, **record(rows_of(bad))}), err=str(output) == "-")
        return
    tell_of_rows(bad)
    if explainer is not None:
        from tunefree.explanation.importance import describe_reference

        typer.echo(describe_reference(explainer.decomposition), err=True)
    if unless_standard(output):
        typer.echo(f"{written} predictions in {output}", err=True)
