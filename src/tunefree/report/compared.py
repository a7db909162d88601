"""A report of a comparison of learners on one pass over the same rows."""

from __future__ import annotations

from tunefree.model_files.plan import POOL
from tunefree.report import charts
from tunefree.report.charts import COLOURS, Series
from tunefree.report.document import Document, Figure, Note, Section
from tunefree.report.performance import EARLY
from tunefree.report.pictures import named
from tunefree.report.scales import LOG, Scale
from tunefree.report.told_comparison import remarks, table_of_losses
from tunefree.workflows.comparison import Comparison, in_figures


def compared(comparison: Comparison) -> Document:
    """The losses and the costs of a comparison.

    Parameters
    ----------
    comparison : Comparison

    Returns
    -------
    Document
    """
    goal = f"{comparison.task} of '{comparison.plan.target}'" if comparison.plan.target else comparison.task
    ranked = comparison.ranked
    sections = [
        Section("losses", "Who predicts best", [table_of_losses(comparison), _figure(comparison)]),
        Section("costs", "What it took", [Note(f"{line[0].upper()}{line[1:]}.") for line in remarks(comparison)]),
    ]
    summary = [
        ("rows", f"{comparison.rows:,}"),
        ("learners", f"{len(ranked)}"),
        ("the best", ranked[0].name),
        (f"its {comparison.loss_name}", in_figures(ranked[0].metrics.mean_loss())),
    ]
    return Document(f"{goal}: tunefree comparison", f"Comparison of learners: {goal}", summary, sections)


def _figure(comparison: Comparison) -> Figure:
    """Progressive losses against rows: the pool in black, the best few in colours."""
    best = named(comparison)[: COLOURS - 1]
    colours = {contestant.name: 1 + k for k, contestant in enumerate(best)} | {POOL: 0}
    series = [
        Series(one.name, [p.rows for p in one.curve], [p.loss for p in one.curve], colours.get(one.name))
        for one in comparison.ranked
    ]
    leader = comparison.pool or comparison.ranked[0]
    last = max(one.curve[-1].loss for one in (leader, *best))
    losses = [point.loss for one in (leader, *best) for point in one.curve]
    high = 1.05 * min(max(losses), EARLY * last)
    low = max(0.0, min(losses) - 0.06 * (high - min(losses)))
    first = comparison.contestants[0].curve[0].rows
    axes = Scale(min(first, comparison.rows / 2), comparison.rows, LOG), Scale(low, max(high, low + 1e-300))
    described = "; ".join(f"{one.name} {in_figures(one.curve[-1].loss)}" for one in (leader, *best))
    titles = "rows", f"progressive {comparison.loss_name}"
    chart = charts.lines("Progressive loss against rows", f"At the end: {described}.", series, axes, titles)
    return Figure(chart, "Means over all rows so far. Grey: the other learners; lines may leave the picture above.")
