"""`tunefree inspect`: what a model has learned."""

from __future__ import annotations

from typing import Annotated

import typer

from tunefree.cli.options import Json, ModelFile


def inspect(
    model: ModelFile,
    top: Annotated[int, typer.Option(help="How many features to list; 0 for all.")] = 20,
    json: Json = False,
) -> None:
    """What a model has learned: its features by importance, which does not depend on their scale."""
    from tunefree.cli.display.model import show_model
    from tunefree.workflows import model_files

    show_model(model_files.load(model), top, json)
