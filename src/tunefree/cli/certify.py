"""`tunefree certify`: bounds on the loss of linear models, proved by one pass."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunefree.cli.options import Json, ModelFile


def certify(
    model: ModelFile,
    weights: Annotated[
        Path | None, typer.Option(help="CSV of a linear model to compare with: columns feature and weight.")
    ] = None,
    json: Json = False,
) -> None:
    """Bound how much better any linear model could have been on the rows learned."""
    from tunefree.cli.display import show
    from tunefree.model_files.trained import Trained
    from tunefree.report.guarantees import certificates

    trained = Trained.load(model)
    show(certificates(trained, weights), json)
