"""`tunefree predict`: predictions of a model as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunefree.cli.options import (
    NEW_ROWS,
    Files,
    Ids,
    ModelFile,
    RowsAsJson,
    TableFile,
    bad_rows_of,
    check_outputs,
    tell_of_table,
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
    output: TableFile = Path("-"),
    id: Ids = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Predict the second of two classes where its probability is at least P, instead of the more probable.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="The K most probable classes in their order, instead of the probabilities of all."
        ),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(
            metavar="PARTS",
            help="Intervals that hold so many of the targets, such as .9 or .8,.95: columns low[0.9] and high[0.9].",
        ),
    ] = None,
    quantiles: Annotated[
        str | None,
        typer.Option(metavar="LEVELS", help="Quantiles of the targets, such as .1,.5: columns quantile[0.1]."),
    ] = None,
    set_: Annotated[
        str | None,
        typer.Option(
            "--set",
            metavar="PARTS",
            help="Sets that have the right class for so many of the rows, such as .9: a column set[0.9].",
        ),
    ] = None,
    conditional: Annotated[
        str | None, typer.Option(metavar="class", help="With --set: for so many of the rows of each class.")
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
    from tunefree.workflows import prediction

    bad = bad_rows_of(plan)
    check_outputs([unless_standard(output)], [model, *files.data])
    asked = parts_of("interval", interval), parts_of("quantiles", quantiles), parts_of("set", set_)
    layout = prediction.OutputColumns(tuple(id or ()), threshold, top, *asked, conditional)
    trained = load(model, "linear" if contributions else None)
    beside = decomposition = None
    if contributions:
        from tunefree.workflows import explanation

        decomposition = explanation.decomposition_of(trained)
        beside = explanation.Explainer(trained, decomposition).beside
    source = files.source(plan, live=True, is_table=trained.kind == "table")
    written = prediction.write(trained, source, str(output), bad, layout, beside)
    tell_of_table("predictions", written, output, bad, json, decomposition)
