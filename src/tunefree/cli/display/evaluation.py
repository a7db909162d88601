"""What `tunefree evaluate` prints."""

from __future__ import annotations

import json
import math
from typing import Any

import typer
from rich.table import Table

from tunefree.cli.display.common import plain_table, show_blocks, table_of_names
from tunefree.core.console import plain_console
from tunefree.report.told import weighed_by
from tunefree.report.told_metrics import INTERVALS, in_unit, shown, title_of
from tunefree.report.told_reliability import reliability_blocks
from tunefree.workflows.evaluation import Evaluation
from tunefree.workflows.metrics import Measure
from tunefree.model_files.trained import Trained

MOST_CLASSES = 12  # of a confusion matrix that is printed
OF_SLICES = ("error", "log_loss", "auc", "mean_absolute_error", "root_mean_squared_error", "coverage")
OF_SLICES_OF_COUNTS = ("deviance", "d2", "actual_over_expected", "gini")
BRIEF_TITLES = {"auc": "ROC area", "mean_absolute_error": "absolute error", "root_mean_squared_error": "RMSE"}


def show_evaluation(
    trained: Trained, result: Evaluation, of_rows: dict[str, Any] | None = None, by: str | None = None
) -> None:
    """Print losses, errors and calibration on known targets.

    Parameters
    ----------
    trained : Trained
    result : Evaluation
    of_rows : dict, optional
        Print JSON, and in it what is said of rows that were skipped or odd.
    by : str, optional
        The column that makes the slices.
    """
    if of_rows is not None:
        typer.echo(json.dumps(_figures(trained, result, by) | of_rows))
        return
    console = plain_console()
    table = plain_table()
    table.add_column()
    table.add_row("rows", f"{result.metrics.rows:,}")
    if column := weighed_by(trained.plan, result.scored.weight):
        table.add_row("weighted by", column)
    for name, measure in result.measures.items():
        table.add_row(title_of(name), *shown(name, measure))
    if result.confusion is not None:
        table.add_row("calibration error", f"{result.calibration_error:.6g}")
    if result.unseen:
        table.add_row("rows of unseen classes", f"{result.unseen:,}")
    console.print(table)
    if any(measure.low is not None for measure in result.measures.values()):
        console.print(INTERVALS)
    if result.confusion is not None and len(trained.model.classes) <= MOST_CLASSES:
        console.print(_confusion(trained.model.classes, result))
    show_blocks(console, reliability_blocks(result, trained.model.classes))
    if result.lift:
        console.print(_lift(result))
    if by is not None:
        console.print(_slices(result, by))


def _figures(trained: Trained, result: Evaluation, by: str | None) -> dict[str, Any]:
    """All of it for JSON; what is undefined is null."""
    figures: dict[str, Any] = {"rows": result.metrics.rows} | _values(result.measures)
    if weighed_by(trained.plan, result.scored.weight):
        figures["weight"] = {"column": trained.plan.weight, "sum": result.metrics.weight}
    if result.confusion is not None:
        figures["calibration_error"] = result.calibration_error
        if result.unseen:
            figures["rows_of_unseen_classes"] = result.unseen
    figures["intervals"] = _intervals(result.measures)
    if result.confusion is not None:
        counts = result.confusion if result.unseen else result.confusion[:-1]
        figures["confusion"] = {"classes": trained.model.classes, "rows_by_class": counts.tolist()}
        figures["reliability"] = [
            {"class": known.label, "share": known.share, "mean_probability": known.probability}
            | {"actual_over_expected": known.ratio, "relative_calibration_error": known.error}
            | {"is_predicted": known.is_predicted, "tenths": [tenth._asdict() for tenth in known.tenths]}
            for known in result.classes
        ]
    if result.lift:
        figures["lift"] = [decile._asdict() for decile in result.lift]
    if by is not None:
        slices = [
            {
                "value": one_slice.value,
                "rows": one_slice.rows,
                **_values(one_slice.measures),
                "intervals": _intervals(one_slice.measures),
            }
            for one_slice in result.slices
        ]
        figures["by"] = {"column": by, "slices": slices}
    return figures


def _values(measures: dict[str, Measure]) -> dict[str, float | None]:
    return {name: None if math.isnan(measure.value) else measure.value for name, measure in measures.items()}


def _intervals(measures: dict[str, Measure]) -> dict[str, list[float | None]]:
    return {name: [measure.low, measure.high] for name, measure in measures.items() if measure.low is not None}


def _in_brief(name: str, measure: Measure) -> str:
    """A metric, and half the width of its interval."""
    if math.isnan(measure.value):
        return "-"
    value = in_unit(name, measure.value, ".4g")
    if measure.low is None or measure.high is None:
        return value
    return f"{value.removesuffix(' %')} ± {in_unit(name, (measure.high - measure.low) / 2, '.2g')}"


def _confusion(classes: list[Any], result: Evaluation) -> Table:
    """The rows of each class by the class predicted."""
    table = table_of_names("class \\ predicted")
    for label in classes:
        table.add_column(str(label), justify="right", overflow="fold")
    rows = [*classes, "(unseen)"] if result.unseen else classes
    for label, counts in zip(rows, result.confusion if result.confusion is not None else [], strict=False):
        table.add_row(str(label), *(f"{count:,.6g}" if count % 1 else f"{count:,.0f}" for count in counts.tolist()))
    return table


def _lift(result: Evaluation) -> Table:
    """What was predicted and what happened, by decile of the predicted rate."""
    table = table_of_names("decile")
    for name in ("exposure", "predicted", "actual", "actual / expected"):
        table.add_column(name, justify="right")
    for number, decile in enumerate(result.lift, 1):
        table.add_row(str(number), *(f"{figure:,.4g}" for figure in decile))
    return table


def _slices(result: Evaluation, by: str) -> Table:
    """The main metrics of each slice, with their intervals."""
    table = table_of_names(by)
    table.add_column("rows", justify="right")
    shown_names = OF_SLICES if result.scored.rated is None else OF_SLICES_OF_COUNTS
    names = [name for name in shown_names if name in result.measures]
    for name in names:
        table.add_column(BRIEF_TITLES.get(name) or title_of(name), justify="right")
    for one_slice in result.slices:
        figures = (_in_brief(name, one_slice.measures[name]) if name in one_slice.measures else "-" for name in names)
        table.add_row("(missing)" if one_slice.value is None else one_slice.value, f"{one_slice.rows:,}", *figures)
    return table
