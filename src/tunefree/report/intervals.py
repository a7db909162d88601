"""Whether intervals hold as many targets as asked for, in tables and charts."""

from __future__ import annotations

from typing import Any

from tunefree.plotting import charts
from tunefree.report.document import Block, Chart, Column, Table
from tunefree.report.formats import COUNT, SIX, THREE, Format
from tunefree.workflows.evaluation import Evaluation
from tunefree.workflows.interval_metrics import Covered, tenths_of

CAPTION = (
    "Rows that intervals hold, less those asked for. Grey: what chance explains in 95 % of samples of so many"
    " independent rows; above it intervals are too wide, and below too narrow."
)
OF_WIDTHS = (
    "By tenth of the rows, in the order of the widths of their intervals: coverage should be as asked for in each."
)
PARTS = [
    Column("coverage asked for", Format("g"), "asked"),
    Column("covered", THREE),
    Column("chance explains from", THREE, "low"),
    Column("to", THREE, "high"),
]
TENTHS = [
    Column("mean width", SIX, "width"),
    Column("rows", COUNT),
    Column("covered", THREE),
    Column("95 % interval", lambda ends: f"{ends[0]:.3f} to {ends[1]:.3f}", "interval"),
]


def intervals(tested: Evaluation) -> list[Block]:
    """Coverage against what was asked for, and by width; none where no intervals were measured."""
    if not tested.covered:
        return []
    tenths = [[tenth.width, tenth.rows, tenth.covered, [tenth.low, tenth.high]] for tenth in tenths_of(tested.scored)]
    return [
        _chart(tested.covered),
        Table("Coverage of intervals", PARTS, [list(part) for part in tested.covered], key="coverage_of_intervals"),
        Table("Intervals by width", TENTHS, tenths, OF_WIDTHS, "intervals_by_width"),
    ]


def _chart(covered: list[Covered]) -> Chart:
    worst = max(covered, key=lambda part: abs(part.covered - part.asked))
    described = f"Coverage is off most at {worst.asked:g}: {worst.covered:.3f}."

    def draw(figure: Any) -> None:
        charts.draw_coverage(figure.subplots(), *map(list, zip(*covered, strict=True)))

    return Chart("Coverage against what was asked for", described, draw, CAPTION)
