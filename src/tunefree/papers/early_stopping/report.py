"""The path of iterative regularization: losses, errors and norms of iterations."""

from __future__ import annotations

from typing import Any

from tunefree.model_files.trained import Trained
from tunefree.papers.early_stopping.path_display import PathDisplay
from tunefree.report.document import Block, Chart, Column, Fact, Facts, Table
from tunefree.report.formats import ABSENT, COUNT, is_absent
from tunefree.report.learned import PATH, facts_of_stop
from tunefree.report.rows import notes_of, oddity_lines
from tunefree.workflows.comparison import in_figures

INCHES = 7.2, 6.4
TITLES = ("loss learned", "held out", "error learned", "held out", "norm")


def path(trained: Trained) -> list[Block]:
    """A path, with the chosen iteration marked; people see some iterations."""
    model, progress = trained.model, trained.progress
    columns = [Column("iteration", COUNT), *map(Column, TITLES, [_figures] * len(TITLES), PATH)]
    columns.append(Column("", lambda is_stop: "<- stop" if is_stop else "", "is_stop"))
    rows = [[t, *(float(record[name]) for name in PATH), t == model.stop] for t, record in enumerate(model.path, 1)]
    facts = [Fact("task", model.task), Fact("rows", progress.rows, COUNT)]
    facts += [Fact("rows skipped", progress.skipped, COUNT, "skipped")] if progress.skipped else []
    facts += facts_of_stop(model)
    facts += [] if model.seconds is None else [Fact("seconds", model.seconds, "{:.2f}".format)]
    shown = [t - 1 for t in model.shown()]
    table = Table("Path", columns, rows, shown=shown, marked=model.stop)
    return [table, chart_of_path(trained), Facts(facts), *notes_of(oddity_lines(progress.oddities))]


def chart_of_path(trained: Trained) -> Chart:
    """Losses, errors and norms against iterations, with the chosen one."""
    model = trained.model

    def draw(figure: Any) -> None:
        axes = figure.subplots(3, 1, sharex=True, height_ratios=(3, 3, 2))
        PathDisplay.from_estimator(model.estimator, axes=axes)

    described = f"Stopped at iteration {model.stop:,} of {len(model.path):,}."
    return Chart("Path", described, draw, "Dotted: where it is stopped.", INCHES)


def _figures(value: float) -> str:
    return ABSENT if is_absent(value) else in_figures(value)
