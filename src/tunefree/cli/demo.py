"""`tunefree demo`: commands on the Adult census data."""

from __future__ import annotations

import shlex
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

TARGET = "income"


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write the files to.")] = Path("demo"),
) -> None:
    """Learn the Adult census data in one pass, predict, and compare with a tuned logistic regression and trees."""
    from tunefree.cli.app import COMMANDS, command_of
    from tunefree.core.console import plain_console

    console = plain_console()
    train_file, test_file = map(str, write_data(output))
    model, predictions, report = (str(output / name) for name in ("adult.model", "predictions.csv", "report.html"))
    for words in (
        ["train", train_file, "--target", TARGET, "-o", model],
        ["evaluate", model, test_file],
        ["predict", model, test_file, "-o", predictions],
        ["report", model, test_file, "-o", report],
        ["compare", model, test_file, "--train", train_file],
    ):
        console.print(f"$ tunefree {shlex.join(words)}", style="bold")
        command_of(words[0], COMMANDS[words[0]]).main(words[1:], standalone_mode=False)


def write_data(folder: Path) -> list[Path]:
    """Write the packaged data to two files: the training rows, shuffled like a stream, and the test rows."""
    import numpy as np
    from pyarrow import compute, parquet

    from tunefree.core.storage import make_folder

    make_folder(folder)
    with as_file(files("tunefree") / "data" / "adult.parquet") as path:
        table = parquet.read_table(path)
    paths = []
    for part in ("train", "test"):
        rows = table.filter(compute.equal(table["split"], part)).drop_columns("split")
        if part == "train":
            rows = rows.take(np.random.default_rng(0).permutation(len(rows)))
        paths.append(folder / f"adult-{part}.parquet")
        parquet.write_table(rows, paths[-1])
    return paths
