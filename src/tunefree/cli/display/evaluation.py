"""What `tunefree evaluate` prints."""

from __future__ import annotations

import json
import math

import typer

from tunefree.cli.display.common import plain_table
from tunefree.report.console import plain_console
from tunefree.workflows.evaluation import Evaluation
from tunefree.workflows.prediction import Predictor


def show_evaluation(trained: Predictor, result: Evaluation, as_json: bool) -> None:
    """Print losses, errors and calibration on known targets.

    Parameters
    ----------
    trained : Trained or StoppedModel
    result : Evaluation
    as_json : bool
    """
    model, metrics = trained.model, result.metrics
    figures: dict[str, float] = {"rows": metrics.rows}
    if model.task == "classification":
        known = metrics.weight - result.unseen_weight
        if not model.loss_is_log_loss:
            figures["loss"] = metrics.loss / known if known else math.nan
        figures["log_loss"] = result.log_loss / known if known else math.nan
        figures["error"] = metrics.mean_error()
        figures["calibration_error"] = result.calibration_error
        if result.unseen:
            figures["rows_of_unseen_classes"] = result.unseen
    else:
        figures["loss"] = metrics.mean_loss()
        figures["mean_absolute_error"] = metrics.mean_error()
        figures["root_mean_squared_error"] = math.sqrt(result.squares / metrics.weight) if metrics.weight else 0.0
    if as_json:
        typer.echo(json.dumps(figures))
        return
    table = plain_table()
    for key, value in figures.items():
        shown = f"{100 * value:.2f} %" if key == "error" else f"{value:,}" if key.startswith("rows") else f"{value:.6g}"
        table.add_row(key.replace("_", " ").replace("log loss", "log-loss"), shown)
    plain_console().print(table)
