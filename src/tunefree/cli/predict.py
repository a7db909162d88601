"""`tunefree predict`: predictions of a model as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunefree.cli.options import Files, ModelFile, check_outputs, tell_skipped


def predict(
    model: ModelFile,
    files: Files,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="CSV or Parquet file to write; - for CSV on standard output.")
    ] = Path("-"),
) -> None:
    """Predict rows: labels and probabilities, or numbers; those of standard input (-) as soon as they come."""
    from tunefree.stream import live
    from tunefree.workflows import model_files, prediction

    bad = files.bad_rows()
    check_outputs([output], [model, *files.data])
    trained = model_files.load(model)
    if files.data == ["-"]:
        live.answer_at_once()
    written = prediction.write(trained, files.source(), str(output), bad)
    tell_skipped(bad)
    if str(output) != "-":
        typer.echo(f"{written} predictions in {output}", err=True)
