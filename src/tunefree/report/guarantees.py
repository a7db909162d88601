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
WHOLE_PERCENT = Format("g", 100.0, " %")


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
    blocks += [
        *_coverage(trained, certified),
        *_mixing(certified),
        *_weights(certified.get("weights", {})),
    ]
    blocks += [Data("order", certified["order"])] if "order" in certified else []
    return [*blocks, *_risk(trained, certified)]


def _bounds(trained: Trained, certified: dict[str, Any]) -> list[Block]:
    """Losses that no linear model can have, by radius."""
    has_unit = trained.model.task == "regression" and not has_rates(trained.plan.loss)
    unit = " mean absolute deviations of the target" if has_unit else ""
    radius = Format("g", unit=unit)
    header = [Column("radius", radius), Column("no linear model has a mean loss below", FIGURES, "bound")]
    bounds = list(certified["lower_bounds"].items())
    note = f"{RADIUS} {FORGOTTEN}" if trained.kind == "table" and trained.encoder.ids.n_forgotten else RADIUS
    return [Table("Every linear model", header, bounds, note, "lower_bounds", is_open=False)]


def _coverage(trained: Trained, certified: dict[str, Any]) -> list[Block]:
    """The coverage of intervals or sets for the next row, and its lower bound."""
    if (coverage := certified.get("coverage")) is None:
        return []
    rows = [(part, of["covered"], of["at_least"]) for part, of in coverage["asked"].items()]
    title = "Intervals of the next row" if trained.model.task == "regression" else "Sets of the next row"
    share = Format(".4f")
    at_least = Column("at least, by theorem", share, "at_least")
    columns = [Column("coverage asked for", Format("g"), "coverage"), Column("covered", share), at_least]
    note = f"Of {coverage['rows']:,} rows, each before it was learned. {COVERED}"
    return [Table(title, columns, rows, note, "coverage")]


def _mixing(certified: dict[str, Any]) -> list[Block]:
    if (mixing := certified.get("mixing")) is None:
        return []
    facts = [
        Fact("rows that were mixed", mixing["rows"], COUNT, "rows"),
        Fact("mean loss on these", mixing["loss"], FIGURES, "loss"),
        Fact("the members' average on these", mixing["base"], FIGURES, "base"),
        Fact("theorem of mixing: mean loss at most", mixing["loss_at_most"], FIGURES, "loss_at_most"),
    ]
    return [Facts(facts, "The mixture", key="mixing")]


def _weights(proved: dict[str, Any]) -> list[Block]:
    """Bounds on the weights of a linear model."""
    names = {"loss_at_least": "their mean loss is at least", "regret_at_most": "better by at most, a row"}
    names |= {"theorem": "by the learner's theorem, at most"}
    facts = [Fact(title, proved[name], FIGURES, name) for name, title in names.items() if name in proved]
    return [Facts(facts, "The weights in the file", key="weights")] if facts else []


def _risk(trained: Trained, certified: dict[str, Any]) -> list[Block]:
    """Bounds on the loss of rows to come, or why there are none."""
    doubts, pool = [str(finding) for finding in order_findings(trained)], trained.model.pool
    if pool is not None and pool.members.has_groups:
        doubts.append("Rows of a group depend on each other.")
    if doubts:
        said = "There is no bound on the error to come: such bounds are for rows that are independent and alike."
        return [Note(f"{sentence(doubts[0])} {said}", "warning")]
    risk = {name: bound for name, bound in certified.get("risk", {}).items() if bound is not None}
    if not risk:
        return []
    facts = [Fact("confidence", risk.pop("confidence"), WHOLE_PERCENT), Fact("rows that tell", risk.pop("rows"), COUNT)]
    for name, bound in risk.items():
        bound_format = PERCENT if name == "error" else FIGURES
        facts.append(Fact(f"mean {name.replace('_', '-')} to come, at most", bound, bound_format, name))
    note = "For the models of the pass, if rows are independent and alike."
    return [Facts(facts, "Rows to come", note, "risk")]
