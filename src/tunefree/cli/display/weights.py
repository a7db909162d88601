"""What `tunefree inspect --weights` prints beside the file."""

from __future__ import annotations

from typing import Any

import typer

from tunefree.workflows import weights


def show_weights(trained: Any, output: str) -> None:
    """Write the weights of a model, and say so on standard error.

    Parameters
    ----------
    trained : Trained
    output : str
        As in :func:`tunefree.workflows.weights.write`.
    """
    written = weights.write(trained, output)
    typer.echo(f"{len(written.names):,} weights, in the units of the data: {output}", err=True)
