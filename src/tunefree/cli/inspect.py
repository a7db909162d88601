"""`tunefree inspect`: members of a model, importance of its columns, and weights."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunefree.cli.options import ClassOf, Json, ModelFile, check_outputs
from tunefree.core.errors import ModelError

BRIEF, TOP = 5, 20  # columns and features that are listed in a summary, and for programs


def inspect(
    model: ModelFile,
    top: Annotated[
        int | None,
        typer.Option(min=0, help="List so many columns, features and members, 0 for all, instead of a summary."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw how predictions depend on columns: a .png, .svg or .pdf file.")
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            help="Write the weights of features of a single linear learner, in the units of the data: a .csv or "
            ".parquet file, or - for standard output."
        ),
    ] = None,
    class_: ClassOf = None,
    json: Json = False,
) -> None:
    """List the members of a model, and its columns and features by importance.

    Importance does not depend on the scale of a feature. For instance:

    tunefree inspect people.model --plot curves.png

    tunefree inspect linear.model --weights weights.csv
    """
    from tunefree.cli.display import show
    from tunefree.explanation.decomposition import output_of
    from tunefree.model_files.trained import load
    from tunefree.plotting import files as pictures
    from tunefree.report import learned
    from tunefree.workflows import explanation

    others = {"top": top is not None, "plot": plot, "class": class_ is not None, "json": json}
    for name in [name for name, value in others.items() if value and weights]:
        raise ModelError(f"--{name} has no effect on what --weights lists; leave one of them out")
    if plot:
        pictures.check(plot)
    if plot or weights:
        check_outputs([plot, weights], [model], standard_output=True)
    trained = load(model, "linear" if plot or class_ is not None else None)
    if class_ is not None:
        output_of(trained.model.classes, trained.model.n_outputs, class_)  # an error for one that there is not
    if weights:
        from tunefree.workflows.prediction import write_weights

        written = write_weights(trained, str(weights))
        typer.echo(f"{len(written.names):,} weights, in the units of the data: {weights}", err=True)
        return
    decomposition = explanation.terms_of(trained)
    is_brief = top is None and not json
    most = top if top is not None else BRIEF if is_brief else TOP
    show(learned.blocks_of_model(trained, decomposition, most, class_, is_brief), json)
    if plot:
        from tunefree.estimators.displays import CurveDisplay

        display = CurveDisplay(picture=explanation.picture_of(trained, decomposition, class_))
        pictures.save(lambda figure: display.plot(figure=figure), display.inches, plot)
