"""What `tunefree path` prints, and `tunefree train` of a model that was stopped early."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from tunefree.cli.display.common import note_of, plain_table
from tunefree.core.console import plain_console
from tunefree.core.parameters import as_options
from tunefree.model_files.trained import Trained
from tunefree.report.told import listed, oddities_told
from tunefree.report.told_columns import lines_of_kinds
from tunefree.workflows.comparison import in_figures

WATCHED = ("training_loss", "validation_loss", "training_error", "validation_error", "norm")  # of a path


def show_path(trained: Trained, as_json: bool) -> None:
    """Print a regularization path: losses, errors and norms, with the chosen iteration marked.

    Parameters
    ----------
    trained : Trained
    as_json : bool
    """
    model, progress = trained.model, trained.progress
    if as_json:
        records = [
            {"iteration": int(record["iteration"])} | {name: number(record[name]) for name in WATCHED}
            for record in model.path
        ]
        figures: dict[str, Any] = {
            "task": model.task,
            "rows": progress.rows,
            "skipped": progress.skipped,
            "stop": model.stop,
            "notes": [as_options(str(oddity)) for oddity in progress.oddities],
        }
        figures |= {} if model.seconds is None else {"seconds": model.seconds}
        typer.echo(json.dumps(figures | {"path": records}))
        return
    table = Table("iteration", box=None, header_style="bold", pad_edge=False)
    for title in ("loss learned", "held out", "error learned", "held out", "norm", ""):
        table.add_column(title, justify="right")
    for t in model.shown():
        record, is_chosen = model.path[t - 1], t == model.stop
        shown = ["" if math.isnan(record[name]) else in_figures(float(record[name])) for name in WATCHED]
        table.add_row(f"{t:,}", *shown, "<- stop" if is_chosen else "", style="bold cyan" if is_chosen else None)
    console = plain_console()
    console.print(table)
    skipped = f", {progress.skipped:,} skipped" if progress.skipped else ""
    seconds = "" if model.seconds is None else f" in {model.seconds:.2f} s"
    console.print(f"{model.task}, {progress.rows:,} rows{skipped}; {len(model.path):,} iterations{seconds}")
    for line in oddities_told(progress.oddities):
        console.print(note_of(line))


def show_stopped(trained: Trained, output: Path) -> None:
    """Print the end of training by early stopping: rows, losses and the file of the model.

    Parameters
    ----------
    trained : Trained
    output : Path
        The file.
    """
    model, progress, table = trained.model, trained.progress, plain_table()
    table.add_row("rows", f"{progress.rows:,}")
    if progress.skipped:
        table.add_row("rows skipped", f"{progress.skipped:,}")
    table.add_row("features", f"{model.n_features:,}")
    if model.task == "classification":
        table.add_row("classes", listed(model.classes, 12))
    for title, names in lines_of_kinds(trained):
        table.add_row(title, names)
    table.add_row("stopped at", f"iteration {model.stop:,} of {len(model.path):,}")
    for title, value in losses_at_stop(trained).items():
        table.add_row(title, value)
    table.add_row("model", str(output))
    console = plain_console()
    console.print(table)
    for line in oddities_told(progress.oddities):
        console.print(note_of(line))
    if model.stop == len(model.path) and not math.isnan(model.path.validation_loss[-1]):
        console.print("hint: rows held out were best predicted at the end; tunefree path --iterations makes it longer")


def losses_at_stop(trained: Trained) -> dict[str, str]:
    """Losses and errors at the chosen iteration as texts, with their titles; of rows held out too if there are any."""
    model = trained.model
    record, classes = model.path[model.stop - 1], model.task == "classification"
    shown = {}
    for title, kind in (("training", "training"), ("held-out", "validation")):
        loss, error = float(record[f"{kind}_loss"]), float(record[f"{kind}_error"])
        if not math.isnan(loss):
            shown[f"{title} {'log-loss' if model.loss_is_log_loss else 'loss'}"] = in_figures(loss)
            shown[f"{title} {'error' if classes else 'absolute error'}"] = (
                f"{100 * error:.2f} %" if classes else in_figures(error)
            )
    return shown


def number(value: float) -> float | None:
    """A number as JSON has it: None if it is not finite."""
    return float(value) if math.isfinite(value) else None
