"""Guarantees, from the sums that were kept along the stream."""

from __future__ import annotations

from typing import Any

from tunefree.core.errors import ModelError
from tunefree.losses.rates import has_rates
from tunefree.model_files.trained import Trained
from tunefree.report.document import Block, Column, Data, Fact, Facts, Note, Section, Table, known
from tunefree.report.formats import COUNT, FIGURES, PERCENT, Format, sentence, weights_named
from tunefree.workflows import certification
from tunefree.workflows.findings import order_findings

COVERED = "The theorem holds whatever the rows are, where each row is learned before the next one is predicted."
RADIUS = "Radius: |weight| x largest value of the feature, the most a feature can move a prediction."
FORGOTTEN = "Of linear models that know the features of the end, each from the row on where it was last new."
FORMATS = {"rows": COUNT, "error": PERCENT, "confidence": Format("g", 100.0, " %")}
TITLES = {
    "rows": "rows that were mixed",
    "loss": "mean loss on these",
    "base": "the members' average on these",
    "loss_at_most": "theorem of mixing: mean loss at most",
    "loss_at_least": "their mean loss is at least",
    "regret_at_most": "better by at most, a row",
    "theorem": "by the learner's theorem, at most",
}
RISKS = {"confidence": "confidence", "rows": "rows that tell"}
SHARE = Format(".4f")
COVERAGE = [
    Column("coverage asked for", Format("g"), "coverage"),
    Column("covered", SHARE),
    Column("at least, by theorem", SHARE, "at_least"),
]


def guarantees(trained: Trained) -> Section:
    """A section of the guarantees of the pass."""
    try:
        blocks = certificates(trained, certification.certified(trained))
    except ModelError as error:
        blocks = [Note(str(error))]
    return Section("guarantees", "What is guaranteed", blocks)


def bounds(trained: Trained) -> list[Block]:
    """Bounds of the pass on linear models, where there are any."""
    try:
        return _bounds(trained, certification.certified(trained))
    except ModelError:
        return []


def certificates(trained: Trained, certified: dict[str, Any]) -> list[Block]:
    """Blocks of the certificates of :func:`tunefree.workflows.certification.certified`."""
    facts = [Fact("rows", certified["rows"], COUNT), *known(Fact("weighted by", weights_named(trained.plan)))]
    facts += [Fact("predictions", certified["predictions"]), Fact("mean loss", certified["loss"], FIGURES, "loss")]
    blocks: list[Block] = [Facts(facts), *_bounds(trained, certified)]
    if "coverage" in certified:
        coverage = certified["coverage"]
        rows = [(level, *shares.values()) for level, shares in coverage["asked"].items()]
        title = "Intervals of the next row" if trained.model.task == "regression" else "Sets of the next row"
        note = f"Of {coverage['rows']:,} rows, each before it was learned. {COVERED}"
        blocks.append(Table(title, COVERAGE, rows, note, "coverage"))
    for key, title in {"mixing": "The mixture", "weights": "The weights in the file"}.items():
        if key in certified:
            facts = [
                Fact(TITLES[name], value, FORMATS.get(name, FIGURES), name) for name, value in certified[key].items()
            ]
            blocks.append(Facts(facts, title, key=key))
    blocks += [Data("order", certified["order"])] if "order" in certified else []
    return [*blocks, *_risk(trained, certified)]


def _bounds(trained: Trained, certified: dict[str, Any]) -> list[Block]:
    """Losses that no linear model can have, by radius."""
    has_unit = trained.model.task == "regression" and not has_rates(trained.plan.loss)
    radius = Format("g", unit=" mean absolute deviations of the target" if has_unit else "")
    header = [Column("radius", radius), Column("no linear model has a mean loss below", FIGURES, "bound")]
    note = f"{RADIUS} {FORGOTTEN}" if trained.kind == "table" and trained.encoder.ids.n_forgotten else RADIUS
    bounds = list(certified["lower_bounds"].items())
    return [Table("Every linear model", header, bounds, note, "lower_bounds", is_open=False)]


def _risk(trained: Trained, certified: dict[str, Any]) -> list[Block]:
    """Bounds on the loss of rows to come, or why there are none."""
    doubts, pool = [str(finding) for finding in order_findings(trained)], trained.model.pool
    if pool is not None and pool.members.has_groups:
        doubts.append("Rows of a group depend on each other.")
    if doubts:
        said = "There is no bound on the error to come: such bounds are for rows that are independent and alike."
        return [Note(f"{sentence(doubts[0])} {said}", "warning")]
    facts = []
    for name, bound in certified.get("risk", {}).items():
        if bound is not None:
            title = RISKS.get(name, f"mean {name.replace('_', '-')} to come, at most")
            facts.append(Fact(title, bound, FORMATS.get(name, FIGURES), name if name not in RISKS else ""))
    note = "For the models of the pass, if rows are independent and alike."
    return [Facts(facts, "Rows to come", note, "risk")] if facts else []
