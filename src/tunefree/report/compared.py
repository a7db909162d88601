"""A comparison of learners on one pass over the same rows."""

from __future__ import annotations

import math
import os
from typing import Any

from tunefree.model_files.plan import POOL
from tunefree.plotting.charts import Series, draw_lines
from tunefree.plotting.style import LEADER, OTHERS, SERIES, SOFT
from tunefree.report.document import Block, Chart, Column, Document, Fact, Facts, Section, Table, known, on_axes
from tunefree.report.findings import notes_of
from tunefree.report.formats import COUNT, FIGURES, PERCENT, memory
from tunefree.report.words import weights_named
from tunefree.workflows.comparison import RATES, Comparison, Contestant, has_rate
from tunefree.workflows.findings import oddity_findings

INCHES, INCHES_OF_PAGE = (7.2, 4.2), (6.0, 3.9)  # of a picture in a file, and in a page
NAMED = 4  # contestants besides the pool that have labels, where there are more than colours
WIDE = 8.0  # ratio of the highest to the lowest loss from which on the axis is logarithmic
DEEP = 1e-4  # least loss shown, as a part of the highest
FAR = 10.0  # a contestant whose loss is so many times the best one's has no label
CAPTION = "Means over all rows so far. Grey: the other learners; lines may leave the picture above."


def compared(comparison: Comparison) -> Document:
    """The losses and the costs of a comparison."""
    goal = f"{comparison.task} of '{comparison.plan.target}'" if comparison.plan.target else comparison.task
    best = comparison.ranked[0]
    sections = [
        Section("losses", "Who predicts best", losses(comparison)),
        Section("costs", "What it took", costs(comparison)),
    ]
    summary = [
        Fact("rows", comparison.rows, COUNT),
        Fact("learners", len(comparison.ranked), COUNT),
        Fact("the best", best.name),
        Fact(f"its {comparison.loss_name}", best.metrics.mean_loss(), FIGURES),
    ]
    return Document(f"{goal}: tunefree comparison", f"Comparison of learners: {goal}", summary, sections)


def losses(comparison: Comparison) -> list[Block]:
    """The learners by progressive loss, and their losses along the stream."""
    error = Column("absolute error", FIGURES, "mean_absolute_error")
    if comparison.task == "classification":
        error = Column("error", PERCENT, "error")
    key = "log_loss" if comparison.loss == "logistic" else "loss"
    columns = [
        Column("learner"),
        Column(f"progressive {comparison.loss_name}", FIGURES, key),
        error,
        Column("seconds", "{:.3f}".format),
        Column("bytes", COUNT, is_shown=False),
    ]
    rows = [
        [one.name, one.metrics.mean_loss(), one.metrics.mean_error(), one.seconds, one.bytes]
        for one in comparison.ranked
    ]
    note = "Each row is predicted by all learners before any of them learns it."
    table = Table("Learners by progressive loss", columns, rows, note, "learners", marked=POOL)
    return [table, chart_of_losses(comparison)]


def costs(comparison: Comparison) -> list[Block]:
    """Rows, memory, seconds, and what a sweep would have cost."""
    leaders = comparison.leaders()
    first = ", ".join(f"{name} {100 * share:.1f} %" for name, share in list(leaders.items())[:4])
    facts = [
        *(Fact("task", comparison.task), Fact("loss", comparison.loss), Fact("rows", comparison.rows, COUNT)),
        *known(Fact("weighted by", weights_named(comparison.plan))),
        Fact("rows skipped", comparison.skipped, COUNT, "skipped"),
        Fact("memory of the models", comparison.bytes, memory, "bytes"),
        *known(Fact("weights in the pool at the end", leaders, lambda _: first, "pool")),
        Fact("seconds of reading and encoding", comparison.reading, "{:.2f}".format, "seconds_of_reading"),
    ]
    rates = sum(has_rate(one.name) for one in comparison.contestants if one.name != POOL)
    ways = {"learners": "each learner once", "learners_and_rates": f"{RATES} rates for the {rates} that have one"}
    way = Column("way", (ways | {POOL: "the pool"}).__getitem__, has_words=True)
    columns = [way, Column("passes", COUNT), Column("seconds", "{:.2f}".format)]
    sweeps = [[way, *sweep] for way, sweep in comparison.sweeps().items() if sweep[0]]
    count = os.cpu_count() or 1
    note = f"Seconds of learning alone. The pool has {count} processor{'s' * (count > 1)}, a learner one."
    left_out = list(comparison.left_out.items())
    return [
        Facts(facts),
        Table("What it costs to choose a learner", columns, sweeps, note, "sweep"),
        Table("Left out", [Column("learner"), Column("because")], left_out),
        *notes_of(oddity_findings(comparison.oddities)),
    ]


def chart_of_losses(comparison: Comparison) -> Chart:
    """Progressive losses against rows."""
    leader = comparison.pool or comparison.ranked[0]
    labelled = [leader, *(one for one in named(comparison) if one is not leader)]
    ends = [f"{one.name} {FIGURES(one.curve[-1].loss)}" for one in labelled]
    data = {one.name: [point._asdict() for point in one.curve] for one in comparison.ranked}
    title, described = "Progressive loss against rows", f"At the end: {'; '.join(ends)}."
    return Chart(title, described, on_axes(draw_losses, comparison), CAPTION, INCHES_OF_PAGE, "curves", data)


def draw_losses(axes: Any, comparison: Comparison) -> None:
    """Draw progressive losses: the pool in black, the best few learners in colours with labels, the others grey."""
    leader, best = comparison.pool or comparison.ranked[0], named(comparison)
    styles = [(one, {"linewidth": 1.5, **style}) for one, style in zip(best, SERIES, strict=False)]
    styles += [(comparison.pool, LEADER)] if comparison.pool else []
    others = [one for one in comparison.ranked if all(one is not drawn for drawn, _ in styles)]
    lines = [
        Series(label, [point.rows for point in one.curve], [point.loss for point in one.curve], style)
        for one, style, label in [
            *((one, OTHERS, "") for one in others),
            *((one, style, f"{one.name}  {FIGURES(one.curve[-1].loss)}") for one, style in styles),
        ]
    ]
    shown = [*(point.loss for point in leader.curve), *(one.curve[-1].loss for one, _ in styles)]
    low = min(point.loss for one, _ in styles for point in one.curve)
    high = 1.05 * max(*shown, _uniform_loss(comparison), 1e-300)
    is_log = high > WIDE * low
    y_range = (max(low, DEEP * high) / 1.1, high) if is_log else (low - 0.06 * (high - low), high)
    unit = " (nats per row)" if comparison.loss == "logistic" else " per row"
    draw_lines(axes, lines, ("rows", f"progressive {comparison.loss_name}{unit}"), y_range, is_log=is_log)
    axes.set_title(f"{len(others)} others in grey" if others else "", loc="right", fontsize=8.5, color=SOFT)


def named(comparison: Comparison) -> list[Contestant]:
    """The contestants besides the pool that have labels.

    Where they are many, these are the best few, unless their losses are far from the best.
    """
    ranked = comparison.ranked
    others = [one for one in ranked if one.name != POOL]
    if len(others) <= len(SERIES):
        return others
    bearable = max(FAR * ranked[0].curve[-1].loss, _uniform_loss(comparison))
    return [one for one in others if one.curve[-1].loss <= bearable][:NAMED]


def _uniform_loss(comparison: Comparison) -> float:
    """The log-loss of equal probabilities of all classes; 0 for other losses."""
    return math.log(len(comparison.contestants[0].model.classes)) if comparison.loss == "logistic" else 0.0
