"""A comparison for people and programs: predictions, cost, losses along the stream, and progress."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from tunefree.core.console import ProgressLine, plain_console
from tunefree.learners import POOL
from tunefree.papers.learner_comparison.one_pass import RATES, Comparison, Contestant
from tunefree.plotting.charts import Series, draw_lines
from tunefree.plotting.style import LEADER, OTHERS, SERIES, SOFT, plain_numbers
from tunefree.pool.targets import RunningMetrics
from tunefree.report.document import Block, Chart, Column, Fact, Facts, Section, Table, known, on_axes
from tunefree.report.findings import notes_of
from tunefree.report.formats import COUNT, FIGURES, PERCENT, weights_named
from tunefree.report.page import Page
from tunefree.training.callbacks import Callback
from tunefree.workflows.findings import oddity_findings

INCHES = (7.2, 4.2)
WIDE = 8.0  # ratio of the highest to the lowest loss from which on the axis is logarithmic
DEEP = 1e-4  # least loss shown, as a part of the highest
CAPTION = "Means over all rows so far. Grey: the other learners; lines may leave the picture above."
WAYS = {"learners": "each learner once", "learners_and_rates": f"{RATES} rates for those that have one"}
WAYS |= {POOL: "the pool"}


def page(comparison: Comparison) -> Page:
    """A page of the losses and the costs."""
    goal = f"{comparison.task} of '{comparison.plan.target}'" if comparison.plan.target else comparison.task
    best = comparison.ranked[0]
    sections = [
        Section("losses", "Who predicts best", losses(comparison)),
        Section("costs", "Cost", costs(comparison)),
    ]
    summary = [
        Fact("rows", comparison.rows, COUNT),
        Fact("learners", len(comparison.ranked), COUNT),
        Fact("the best", best.name),
        Fact(f"its {loss_name(comparison)}", best.metrics.mean_loss(), FIGURES),
    ]
    return Page(f"{goal}: tunefree learners", f"Comparison of learners: {goal}", summary, sections)


def losses(comparison: Comparison) -> list[Block]:
    """The learners by progressive loss, and their losses along the stream."""
    error = Column("absolute error", FIGURES, "mean_absolute_error")
    if comparison.task == "classification":
        error = Column("error", PERCENT, "error")
    key = "log_loss" if comparison.loss == "logistic" else "loss"
    columns = [
        Column("learner"),
        Column(f"progressive {loss_name(comparison)}", FIGURES, key),
        error,
        Column("seconds", "{:.3f}".format),
        Column("bytes", COUNT, is_shown=False),
    ]
    rows = [
        [one.name, one.metrics.mean_loss(), one.metrics.mean_error(), one.seconds, one.bytes]
        for one in comparison.ranked
    ]
    note = "Each row is predicted by all learners before any of them learns it."
    table = Table("Learners by progressive loss", columns, rows, note, "learners")
    return [table, chart_of_losses(comparison)]


def costs(comparison: Comparison) -> list[Block]:
    """Rows, memory, seconds, and the cost of a sweep."""
    shares = comparison.pool.model.predictor.shares() if comparison.pool else {}
    shares = dict(sorted(shares.items(), key=lambda item: -item[1]))
    largest = ", ".join(f"{name} {100 * share:.1f} %" for name, share in list(shares.items())[:4])
    facts = [
        *(Fact("task", comparison.task), Fact("loss", comparison.loss), Fact("rows", comparison.rows, COUNT)),
        *known(Fact("weighted by", weights_named(comparison.plan))),
        Fact("rows skipped", comparison.skipped, COUNT, "skipped"),
        Fact("memory of the models", comparison.bytes, memory, "bytes"),
        *known(Fact("weights in the pool at the end", shares, lambda _: largest, "pool")),
        Fact("seconds of reading and encoding", comparison.reading, "{:.2f}".format, "seconds_of_reading"),
    ]
    way = Column("way", WAYS.__getitem__, has_words=True)
    columns = [way, Column("passes", COUNT), Column("seconds", "{:.2f}".format)]
    sweeps = [[way, *sweep] for way, sweep in comparison.sweeps().items()]
    note = "Seconds of learning alone. The pool uses all processors, a learner one."
    return [
        Facts(facts),
        Table("The cost of choosing a learner", columns, sweeps, note, "sweep"),
        Table("Left out", [Column("learner"), Column("because")], list(comparison.left_out.items())),
        *notes_of(oddity_findings(comparison.oddities)),
    ]


def chart_of_losses(comparison: Comparison) -> Chart:
    """Progressive losses against rows."""
    ends = [f"{one.name} {FIGURES(one.metrics.mean_loss())}" for one in comparison.ranked[: len(SERIES)]]
    curves = {}
    for one in comparison.ranked:
        pairs = pairwise([RunningMetrics(), *one.trained.progress.points()])
        curves[one.name] = [
            {"rows": now.rows, "loss": now.mean_loss(), "recent": _loss_between(before, now)} for before, now in pairs
        ]
    described = f"At the end: {'; '.join(ends)}."
    draw = on_axes(draw_losses, comparison)
    return Chart("Progressive loss against rows", described, draw, CAPTION, INCHES, "curves", curves)


def _loss_between(before: RunningMetrics, now: RunningMetrics) -> float:
    """The mean loss of the rows added in between; NaN if none was predicted."""
    weight = now.weight - before.weight
    return (now.loss - before.loss) / weight if weight > 0.0 else math.nan


def draw_losses(axes: Any, comparison: Comparison) -> None:
    """Draw progressive losses: the pool in black, the best learners in colours with labels, the others grey."""
    alone = [one for one in comparison.ranked if one.name != POOL]
    best, others = alone[: len(SERIES)], alone[len(SERIES) :]
    named = [line(one, style) for one, style in zip(best, SERIES, strict=False)]
    if comparison.pool:
        named.append(line(comparison.pool, LEADER))
    ends = [one.y[-1] for one in named]
    high = 1.05 * max(*named[-1].y, *ends, 1e-300)
    low = min(min(one.y) for one in named)
    is_log = high > WIDE * low
    y_range = (max(low, DEEP * high) / 1.1, high) if is_log else (low - 0.06 * (high - low), high)
    lines = [*(line(one, OTHERS)._replace(name="") for one in others), *named]
    unit = " (nats per row)" if comparison.loss == "logistic" else " per row"
    draw_lines(axes, lines, ("rows", f"progressive {loss_name(comparison)}{unit}"), y_range)
    if is_log:
        axes.set_yscale("log")
        plain_numbers(axes.yaxis, y_range)
    axes.set_title(f"{len(others)} others in grey" if others else "", loc="right", fontsize=8.5, color=SOFT)


def line(one: Contestant, style: dict[str, Any]) -> Series:
    """The progressive loss of a contestant, with its name and its loss at the end."""
    points = one.trained.progress.points()
    means = [point.mean_loss() for point in points]
    name = f"{one.name}  {FIGURES(means[-1])}"
    return Series(name, [point.rows for point in points], means, {"linewidth": 1.5, **style})


def memory(size: float) -> str:
    """A number of bytes in the largest fitting unit, as text.

    >>> memory(512), memory(3 * 2**20)
    ('512 bytes', '3 MiB')
    """
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1000.0:
            return f"{size:.3g} {unit}"
        size /= 2**10
    return f"{size:.3g} GiB"


def loss_name(comparison: Comparison) -> str:
    """The name of the loss for people."""
    return "log-loss" if comparison.loss == "logistic" else f"{comparison.loss} loss"


class Display(Callback):
    """A progress bar with rows, the best learner so far and the memory of all models."""

    def begin(self, comparison: Comparison, source: Any) -> None:
        console, goal = plain_console(stderr=True), comparison.plan.target
        of = f"'{goal}'" if goal else "the label"
        console.print(f"{comparison.task} of {of}; loss {comparison.loss}; {len(comparison.contestants)} learners")
        self.progress, self.share = ProgressLine(console), source.progress()
        self.progress.bar.start()
        self.progress.show("preparing the learners (compiled the first time)")

    def step(self, comparison: Comparison, batch: Any) -> None:
        best = comparison.ranked[0]
        line = f"{comparison.rows:,} rows, {best.name} leads with {FIGURES(best.metrics.mean_loss())}"
        self.progress.show(f"{line}, models take {memory(comparison.bytes)}", self.share(batch.position))

    def end(self, comparison: Comparison) -> None:
        self.progress.close()
