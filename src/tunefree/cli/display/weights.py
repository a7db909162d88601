"""What `tunefree inspect --weights` prints beside the file."""

from __future__ import annotations

from typing import Any

import typer

from tunefree.explanation.told import percent
from tunefree.workflows import weights


def show_weights(trained: Any, output: str) -> None:
    """Write the weights of a model, and say on standard error what they are worth.

    Parameters
    ----------
    trained : Trained or StoppedModel
    output : str
        As in :func:`tunefree.workflows.weights.write`.
    """
    found = weights.write(trained, output)
    typer.echo(f"{len(found.names):,} weights, in the units of the data: {output}", err=True)
    if found.fidelity is not None:
        typer.echo(
            f"this linear function explains {percent(found.fidelity.explained)} of the variance of the model's own"
            f" margins over {found.fidelity.rows:,} rows; curves are lines in it, and pairs of columns are left out",
            err=True,
        )
