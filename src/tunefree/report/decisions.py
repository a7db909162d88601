"""Decisions by the probability of a class, as facts and tables."""

from __future__ import annotations

from typing import Any

from tunefree.report.document import Block, Column, Data, Fact, Facts, Table
from tunefree.report.formats import COUNT, TENTHS_OF_PERCENT, Format, in_figures
from tunefree.workflows.decisions import Decisions
from tunefree.workflows.metrics import Measure

EVERY = 10  # threshold of the curve of net benefit that people see
COST, THRESHOLD, BENEFIT = Format(".4f"), Format(".3g"), Format("+.4f")
SHARES = ("acted_on", "sensitivity", "specificity", "positive_predictive_value", "negative_predictive_value")
NOTE = "Rows are acted on where the probability is at least the threshold. Intervals: 95 %, Wilson's."
OF_COSTS = (
    "The threshold by the costs is best if probabilities are calibrated. That of the least cost was looked for on these"
    " rows, so that new ones cost more."
)
OF_BENEFIT = (
    "Hits less false alarms, of which each weighs t / (1 - t) hits (Vickers and Elkin 2006). Acting on none has 0."
)


def blocks_of_decisions(decided: Decisions) -> list[Block]:
    """The decisions, and the curves for programs."""
    facts = [Fact("class", decided.label), Fact("rows", decided.rows, COUNT)]
    facts += [Fact("share of the class", decided.share, TENTHS_OF_PERCENT, "share")]
    if decided.costs is not None:
        facts += [
            Fact("cost of a false alarm", decided.costs.fp, Format("g"), "cost_fp"),
            Fact("cost of a miss", decided.costs.fn, Format("g"), "cost_fn"),
            Fact("cost of a row if all are acted on", decided.cost_of_all, in_figures, "cost_of_all"),
            Fact("cost of a row if none is", decided.cost_of_none, in_figures, "cost_of_none"),
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
        *(Column(title, _share, name.replace(" ", "_")) for title, name in zip(titles, names, strict=True)),
    ]
    rows = [[name.replace("_", " "), *(getattr(one, name) for one in decided.decisions)] for name in SHARES]
    benefits = [Column("threshold", THRESHOLD), Column("this model", BENEFIT, "model"), Column("all", BENEFIT)]
    shown = range(EVERY - 1, len(decided.benefits), EVERY)
    curve: list[dict[str, Any]] = [point._asdict() for point in decided.curve]
    return [
        Facts(facts, f"Decisions for {decided.label}", OF_COSTS if decided.costs else "", "decisions"),
        Table("What thresholds hit and miss", columns, rows, NOTE, "decided_shares"),
        Table("Net benefit", benefits, decided.benefits, OF_BENEFIT, "net_benefit", shown),
        Data("thresholds", curve),
    ]


def _share(measure: Measure) -> str:
    """A share and its interval."""
    ends = TENTHS_OF_PERCENT.interval(measure)
    return TENTHS_OF_PERCENT(measure) + (f" ({ends.removesuffix(' %')})" if ends else "")
