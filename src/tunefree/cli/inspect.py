"""`tunefree inspect`: what a model has learned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunefree.cli.options import ClassOf, Json, ModelFile, check_outputs
from tunefree.core.errors import ModelError


def inspect(
    model: ModelFile,
    top: Annotated[int, typer.Option(help="How many terms and features to list; 0 for all.")] = 20,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw curves of columns and maps of pairs: a .png, .svg or .pdf file.", show_default=False),
    ] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(
            help="Data over which columns and pairs are compared, by default a sample of the rows that were learned; "
            "may be given again.",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="Write the weight of each feature, of all classes, in the units of the data: a .csv or .parquet file, "
            "or - for standard output.",
            show_default=False,
        ),
    ] = None,
    decay: Annotated[
        Path | None,
        typer.Option(
            help="Draw the loss to expect of a model that stands still, by the rows since the end: a .png, .svg or "
            ".pdf file.",
            show_default=False,
        ),
    ] = None,
    class_: ClassOf = None,
    json: Json = False,
) -> None:
    """What a model has learned: its columns, pairs of columns and features by importance.

    Importance does not depend on the scale of a feature. For instance:

    tunefree inspect people.model --plot curves.png

    tunefree inspect people.model --weights weights.csv
    """
    from tunefree.cli.display.model import show_model
    from tunefree.cli.display.weights import show_weights
    from tunefree.report.told import expectation_of
    from tunefree.workflows import explanation, model_files

    if plot or decay:
        from tunefree.report import pictures

        for picture in filter(None, (plot, decay)):
            pictures.check(picture)
        check_outputs([plot, decay], [model, *(rows or [])])
    trained = model_files.load(model, "linear" if plot or decay or rows or class_ is not None else None, whole=True)
    if weights:
        show_weights(trained, weights)
        return
    found = explanation.terms_of(trained, rows)
    show_model(trained, found, top, json, class_)
    if plot:
        pictures.draw_curves(explanation.picture_of(trained, found, class_), plot)
    if decay:
        expected = expectation_of(trained)
        if expected is None:
            longer = "with --learner pool" if trained.model.options.has_generations else "a pool of classes longer"
            raise ModelError(f"{decay}: nothing is known of this model after its end; train {longer}")
        pictures.draw_decay(expected, decay)
