"""Decisions by the probability of a class, as facts and tables."""

from __future__ import annotations

from tunefree.plotting.charts import LONGEST, draw_square, draw_thresholds
from tunefree.plotting.style import shortened
from tunefree.report.document import Block, Chart, Column, Fact, Facts, Table, on_axes
from tunefree.report.formats import COUNT, FIGURES, TENTHS_OF_PERCENT, Format
from tunefree.workflows.decisions import Decisions

EVERY = 10  # threshold of the curve of net benefit that people see
COST, THRESHOLD, BENEFIT = Format(".4f"), Format(".3g"), Format("+.4f")
SHARES = ("acted_on", "sensitivity", "specificity", "positive_predictive_value", "negative_predictive_value")
NOTE = "Rows are acted on where the probability is at least the threshold. Intervals: 95 %, Wilson's."
OF_COSTS = (
    "The threshold by the costs is best if probabilities are calibrated. That of the least cost was looked for on these"
    " rows, so that new ones cost more."
)
OF_ROC = "Each point is a threshold. Grey: acting at random."
OF_PRECISION = "Precision: share of the rows acted on that are of the class. Grey: acting at random."
OF_BENEFIT = (
    "True positives less false positives, of which each weighs t / (1 - t), per row (Vickers and Elkin 2006). Acting on"
    " none has 0."
)


def blocks_of_decisions(decided: Decisions) -> list[Block]:
    """The decisions, and the net benefit of all thresholds."""
    facts = [Fact("class", decided.label), Fact("rows", decided.rows, COUNT)]
    facts += [Fact("share of the class", decided.share, TENTHS_OF_PERCENT, "share")]
    if decided.costs is not None:
        facts += [
            Fact("cost of a false alarm", decided.costs.fp, Format("g"), "cost_fp"),
            Fact("cost of a miss", decided.costs.fn, Format("g"), "cost_fn"),
            Fact("cost of a row if all are acted on", decided.cost_of_all, FIGURES, "cost_of_all"),
            Fact("cost of a row if none is", decided.cost_of_none, FIGURES, "cost_of_none"),
        ]
    facts += [
        fact
        for one in decided.decisions
        for fact in (
            Fact(f"threshold: {one.name}", one.threshold, THRESHOLD),
            Fact(f"cost of a row: {one.name}", one.cost, COST),
        )
        if fact.value is not None
    ]
    columns = [Column("share")]
    for one in decided.decisions:
        title = f"{one.name}, from {THRESHOLD(one.threshold)} on"
        columns.append(Column(title, TENTHS_OF_PERCENT.with_ends, one.name.replace(" ", "_")))
    rows = [[name.replace("_", " "), *(getattr(one, name) for one in decided.decisions)] for name in SHARES]
    return [
        Facts(facts, f"Decisions for {decided.label}", OF_COSTS if decided.costs else "", "decisions"),
        Table("What thresholds hit and miss", columns, rows, NOTE, "decided_shares", is_wide=len(columns) > 2),
        *_charts_of_shares(decided),
        *_benefits(decided),
    ]


def _charts_of_shares(decided: Decisions) -> list[Block]:
    """The ROC curve, and precision by the share of the class that is hit."""
    hit, share = f"hits: share of {shortened(str(decided.label), LONGEST)}", decided.share.value
    looks = {
        "roc": ("ROC curve", ("false alarms: share of the others", hit), (0.0, 1.0), OF_ROC),
        "precision": ("Precision and recall", (hit, "precision"), (share, share), OF_PRECISION),
    }
    charts: list[Block] = []
    for name, curve in decided.curves.items():
        title, titles, chance, caption = looks[name]
        draw = on_axes(draw_square, *curve.T, titles, chance)
        charts.append(Chart(title, f"{len(curve)} points.", draw, caption))
    return charts


def _benefits(decided: Decisions) -> list[Block]:
    """The net benefit by threshold, as a picture and as a table."""
    lines = {name: [getattr(point, name) for point in decided.benefits] for name in ("model", "all")}
    thresholds = [point.threshold for point in decided.benefits]
    middle = len(thresholds) // 2
    described = f"At {thresholds[middle]:.2g}: this model {lines['model'][middle]:.3g}, all {lines['all'][middle]:.3g}."
    named = {"this model": lines["model"], "all": lines["all"], "none": [0.0] * len(thresholds)}
    draw = on_axes(draw_thresholds, thresholds, named, ("threshold", "net benefit"))
    columns = [Column("threshold", THRESHOLD), Column("this model", BENEFIT, "model"), Column("all", BENEFIT)]
    shown = range(EVERY - 1, len(decided.benefits), EVERY)
    return [
        Chart("Net benefit", described, draw, OF_BENEFIT),
        Table("Net benefit", columns, decided.benefits, OF_BENEFIT, "net_benefit", shown, is_open=False),
    ]
