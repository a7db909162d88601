"""`tunefree export`: a model as a file that other runtimes predict with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunefree.cli.options import ModelFile, check_outputs


def export(
    model: ModelFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write, such as people.onnx.")],
) -> None:
    """Write the prediction function to a file of ONNX, which other runtimes such as ONNX Runtime read.

    An input is a column: numbers, NaN where one is missing, or texts without white space around them, empty where one
    is missing. For instance:

    tunefree export people.model -o people.onnx
    """
    from tunefree.estimators.model_file import exported
    from tunefree.estimators.training import load

    check_outputs([output], [model])
    for line in exported(load(model), output):
        typer.echo(f"tunefree: {line}", err=True)
    typer.echo(f"{output}: {output.stat().st_size:,} bytes", err=True)
