"""The commands on a model without data: `tunefree inspect`, `certify` and `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunefree.cli.options import ClassOf, Json, ModelFile, check_outputs
from tunefree.core.errors import ModelError

BRIEF, TOP = 5, 20  # number of columns and features in a summary, and in JSON


def inspect(
    model: ModelFile,
    top: Annotated[
        int | None,
        typer.Option(min=0, help="Number of columns, features and members to list, 0 for all; by default a summary."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot how predictions depend on columns, to a .png, .svg or .pdf file.")
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            help="Write the feature weights of a single linear learner, in the units of the data, to a .csv or "
            ".parquet file, or to standard output (-)."
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
        raise ModelError(f"--{name} has no effect on the weights of --weights; leave one of them out")
    if plot:
        pictures.check(plot)
    if plot or weights:
        check_outputs([plot, weights], [model], standard_output=True)
    trained = load(model, "linear" if plot or class_ is not None else None)
    if class_ is not None:
        output_of(trained.model.classes, trained.model.n_outputs, class_)  # raises an error for an unknown class
    if weights:
        from tunefree.workflows.prediction import write_weights

        written = write_weights(trained, str(weights))
        typer.echo(f"{written:,} weights, in the units of the data: {weights}", err=True)
        return
    decomposition = explanation.terms_of(trained)
    is_brief = top is None and not json
    most = top if top is not None else BRIEF if is_brief else TOP
    blocks = learned.blocks_of_model(trained, decomposition, most, class_, is_brief)
    if plot:
        from tunefree.estimators.displays import CurveDisplay

        display = CurveDisplay(picture=explanation.picture_of(trained, decomposition, class_))
        pictures.save(lambda figure: display.plot(figure=figure), display.inches, plot)
    show(blocks, json)


def certify(
    model: ModelFile,
    weights: Annotated[
        Path | None, typer.Option(help="CSV file with a linear model to compare: columns feature and weight.")
    ] = None,
    json: Json = False,
) -> None:
    """Bound how much better any linear model could have predicted the training rows."""
    from tunefree.cli.display import show
    from tunefree.model_files.trained import Trained
    from tunefree.report.guarantees import certificates

    trained = Trained.load(model)
    show(certificates(trained, weights), json)


def export(
    model: ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="ONNX file to write, such as people.onnx.")],
) -> None:
    """Export the prediction function to an ONNX file, for other runtimes such as ONNX Runtime.

    Each column is an input: numbers, with NaN for missing values; or strings without surrounding white space, empty if
    missing. For instance:

    tunefree export people.model -o people.onnx
    """
    from tunefree.estimators.model_file import exported
    from tunefree.estimators.training import load

    check_outputs([output], [model])
    for line in exported(load(model), output):
        typer.echo(f"tunefree: {line}", err=True)
    typer.echo(f"{output}: {output.stat().st_size:,} bytes", err=True)
