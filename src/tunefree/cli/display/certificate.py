"""What `tunefree certify` prints."""

from __future__ import annotations

import json
from typing import Any

import typer

from tunefree.cli.display.common import show_blocks
from tunefree.core.console import plain_console
from tunefree.model_files.trained import Trained
from tunefree.report.guarantees import proved


def show_certificate(trained: Trained, certified: dict[str, Any], as_json: bool) -> None:
    """Print what :func:`tunefree.workflows.certification.findings` gives.

    Parameters
    ----------
    trained : Trained
    certified : dict
    as_json : bool
    """
    if as_json:
        typer.echo(json.dumps(certified))
        return
    show_blocks(plain_console(), proved(trained, certified))
