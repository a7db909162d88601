"""What the tables and lines of several commands have in common."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from tunefree.model.model import Model
from tunefree.model.targets import MOST_SUMMED, RunningMetrics
from tunefree.workflows.prediction import Predictor


def plain_table() -> Table:
    """A table of names and values, without a header."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    return table


def table_of_names(title: str) -> Table:
    """A table with a column for names, which are folded rather than cut where the screen is narrow."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column(title, overflow="fold")
    return table


def listed(names: list[Any], most: int) -> str:
    """The first names, separated by commas."""
    return ", ".join(map(str, names[:most])) + (", ..." if len(names) > most else "")


def goal_of(trained: Predictor, so_far: str = "") -> str:
    """The task, the target, and its classes."""
    model, target = trained.model, trained.plan.target
    goal = f"'{target}'" if target else "the label"
    if model.task == "regression":
        return f"regression of {goal}"
    return f"classification of {goal} ({len(model.classes)} classes{so_far}: {listed(model.classes, 4)})"


def losses_of(model: Model, metrics: RunningMetrics) -> dict[str, str]:
    """Mean loss and error as texts, with their titles."""
    if model.task == "classification":
        default = "log-loss" if model.loss_is_log_loss else "loss"
        return {default: f"{metrics.mean_loss():.4f}", "error": f"{100 * metrics.mean_error():.2f} %"}
    loss, error = (
        f"{'over ' if total >= MOST_SUMMED else ''}{mean:.6g}"
        for total, mean in ((metrics.loss, metrics.mean_loss()), (metrics.errors, metrics.mean_error()))
    )
    return {"loss": loss, "absolute error": error}
