"""Decisions by the probability of a class, as facts and tables."""

from __future__ import annotations

from typing import Any

from tunefree.plotting.charts import LONGEST, draw_square, draw_thresholds
from tunefree.plotting.style import shortened
from tunefree.report.document import Block, Chart, Column, Data, Fact, Facts, Table, on_axes
from tunefree.report.formats import COUNT, FIGURES, TENTHS_OF_PERCENT, Format
from tunefree.workflows.decisions import Decisions

PICTURE = 5.0, 2.9  # inches of a chart
OF_ROC = "Each point is a threshold. Grey: acting at random."
OF_RECALL = "Precision: share of the rows acted on that are of the class. Grey: acting at random."
EVERY = 10  # threshold of the curve of net benefit that people see
COST, THRESHOLD, BENEFIT = Format(".4f"), Format(".3g"), Format("+.4f")
SHARES = ("acted_on", "sensitivity", "specificity", "positive_predictive_value", "negative_predictive_value")
NOTE = "Rows are acted on where the probability is at least the threshold. Intervals: 95 %, Wilson's."
OF_COSTS = (
    "The threshold by the costs is best if probabilities are calibrated. That of the least cost was looked for on these"
    " rows, so that new ones cost more."
)
OF_BENEFIT = (
    "True positives less false positives, of which each weighs t / (1 - t), per row (Vickers and Elkin 2006). Acting on"
    " none has 0."
)


def blocks_of_decisions(decided: Decisions) -> list[Block]:
    """The decisions, and the curves for programs."""
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
    names = [one.name for one in decided.decisions]
    titles = [f"{one.name}, from {THRESHOLD(one.threshold)} on" for one in decided.decisions]
    columns = [
        Column("share"),
        *(
            Column(title, TENTHS_OF_PERCENT.with_ends, name.replace(" ", "_"))
            for title, name in zip(titles, names, strict=True)
        ),
    ]
    rows = [[name.replace("_", " "), *(getattr(one, name) for one in decided.decisions)] for name in SHARES]
    return [
        Facts(facts, f"Decisions for {decided.label}", OF_COSTS if decided.costs else "", "decisions"),
        Table("What thresholds hit and miss", columns, rows, NOTE, "decided_shares", is_wide=len(columns) > 2),
        *_curves(decided),
    ]


def _curves(decided: Decisions) -> list[Block]:
    """Hits, costs and gains of all thresholds."""
    label, points = shortened(str(decided.label), LONGEST), decided.curve
    roc = [1.0 - point.specificity for point in points], [point.sensitivity for point in points]
    recall = [(point.sensitivity, point.precision) for point in points if point.precision == point.precision]
    share = decided.share.value
    false, hit = "false alarms: share of the others", f"hits: share of {label}"
    pictures: list[Any] = [
        ("ROC curve", *roc, (false, hit), (0.0, 1.0), OF_ROC),
        ("Precision and recall", *zip(*recall, strict=True), (hit, "precision"), (share, share), OF_RECALL),
    ]
    charts_of_shares = [
        Chart(title, f"{len(x)} points.", on_axes(draw_square, x, y, titles, chance), caption, PICTURE)
        for title, x, y, titles, chance, caption in pictures
    ]
    benefits = [Column("threshold", THRESHOLD), Column("this model", BENEFIT, "model"), Column("all", BENEFIT)]
    shown = range(EVERY - 1, len(decided.benefits), EVERY)
    return [
        *charts_of_shares,
        _chart_of_gains(decided),
        Table("Net benefit", benefits, decided.benefits, OF_BENEFIT, "net_benefit", shown, is_open=False),
        Data("thresholds", [point._asdict() for point in points]),
    ]


def _chart_of_gains(decided: Decisions) -> Chart:
    """The net benefit by threshold; where there are costs, the mean cost of a row."""
    thresholds = [point.threshold for point in decided.benefits]
    lines = {
        "this model": [point.model for point in decided.benefits],
        "all": [point.all for point in decided.benefits],
    }
    lines["none"], title, name, caption = [0.0] * len(thresholds), "Net benefit", "net benefit", OF_BENEFIT
    if decided.costs is not None:
        inside = [point for point in reversed(decided.curve) if point.threshold <= 1.0]
        thresholds = [0.0, *(point.threshold for point in inside), 1.0]
        all_, none = decided.cost_of_all or 0.0, decided.cost_of_none or 0.0
        lines = {"this model": [all_, *(point.cost or 0.0 for point in inside), none]}
        lines |= {"all": [all_] * len(thresholds), "none": [none] * len(thresholds)}
        title, name, caption = "Expected cost", "cost of a row", "Cost by the least probability that is acted on."
    described = f"At the threshold {thresholds[len(thresholds) // 2]:.2g}: " + "; ".join(
        f"{who} {values[len(values) // 2]:.3g}" for who, values in lines.items()
    )
    drawstyle = "default" if decided.costs is None else "steps-pre"  # up to a probability all act alike
    draw = on_axes(draw_thresholds, thresholds, lines, ("threshold", name), drawstyle)
    return Chart(title, f"{described}.", draw, caption, PICTURE)
