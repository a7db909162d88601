"""What `tunefree inspect --file` prints: what a model file holds."""

from __future__ import annotations

import json
import os
from typing import Any

import typer

from tunefree.cli.display.common import show_blocks
from tunefree.core import storage
from tunefree.core.console import plain_console
from tunefree.report.document import Facts, Table


def show_file(path: str | os.PathLike[str], as_json: bool) -> None:
    """Print what a model file says of itself, and its arrays.

    Parameters
    ----------
    path : path
    as_json : bool
        The whole header, and the arrays, as JSON.

    Raises
    ------
    ModelError
        If it is no model file, or damaged.
    """
    arrays, header = storage.load(path)
    listed: list[dict[str, Any]] = [
        {"name": name, "type": str(array.dtype), "shape": list(array.shape), "bytes": array.nbytes}
        for name, array in sorted(arrays.items())
    ]
    if as_json:
        typer.echo(json.dumps({"header": header, "arrays": listed}))
        return
    rows = [
        [array["name"], array["type"], " x ".join(map(str, array["shape"])), f"{array['bytes']:,}"] for array in listed
    ]
    total = sum(array["bytes"] for array in listed)
    title = f"{len(listed):,} arrays, {total:,} bytes"
    show_blocks(
        plain_console(), [Facts(_facts(header)), Table(title, ["array", "type", "shape", "bytes"], rows, "", 2)]
    )


def _facts(header: dict[str, Any]) -> list[tuple[str, str]]:
    """What the header says, in short."""
    described = {"format": header["format"], "kind of model": header["kind"], "kind of rows": header["source"]}
    described |= {"estimator": header.get("estimator", {}).get("class", "that of the plan")}
    described |= {"plan": ", ".join(f"{name}={value!r}" for name, value in header["plan"].items() if value)}
    return [(name, str(value)) for name, value in described.items()]
