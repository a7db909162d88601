"""`tunefree demo`: the census data, learned in one pass."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files it writes.")] = Path("demo"),
) -> None:
    """Learn the Adult census data in one pass, beside logistic regression tuned by cross-validation."""
    from tunefree.cli import demonstration

    demonstration.run(output)
