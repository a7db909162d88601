"""Guarantees from one pass of a model: about every linear model, about given weights, and about future rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from tunefree.core.errors import ModelError
from tunefree.intervals.conformal_record import ConformalRecord
from tunefree.losses.rates import has_rates
from tunefree.mixing.mixture import Mixture
from tunefree.model_files.trained import Trained
from tunefree.report.document import Block, Column, Data, Fact, Facts, Note, Section, Table, known
from tunefree.report.formats import COUNT, FIGURES, PERCENT, Format, sentence, weights_named
from tunefree.theory.exchangeability import LEVEL
from tunefree.theory.mixing import mixing_excess
from tunefree.workflows.certification import read_weights, theorem_of
from tunefree.workflows.findings import order_findings

RADII = (0.3, 1.0, 3.0, 10.0, 30.0)
DELTA = 0.05  # probability that the bound on the risk fails
PROGRESSIVE = "each predicted before it was learned"
COVERED = "The theorem holds whatever the rows are, where each row is learned before the next one is predicted."
RADIUS = "Radius: |weight| x largest value of the feature, the most a feature can move a prediction."
FORGOTTEN = "Of linear models that know the features of the end, each from the row on where it was last new."
SHARE = Format(".4f")


def guarantees(trained: Trained) -> Section:
    """The section on the guarantees of the pass."""
    try:
        blocks = certificates(trained)
    except ModelError as error:
        blocks = [Note(str(error))]
    return Section("guarantees", "What is guaranteed", blocks)


def certificates(trained: Trained, weights: str | os.PathLike[str] | None = None) -> list[Block]:
    """Blocks of all guarantees that follow from the statistics of the pass.

    ``weights``: a CSV file of a linear model, see :func:`tunefree.workflows.certification.read_weights`.
    Raises a ModelError if the model has seen no rows, and a DataError if the weights cannot be used.
    """
    model, certificate = trained.model, trained.model.certificate()
    if certificate.rounds == 0:
        raise ModelError("the model has seen no rows; train it first")
    # The certificate has other predictions for two kinds of rows: 0 for rows that kernel learners hold back, and the
    # predictions before each round for a heavy row that is learned in several rounds.
    metrics = trained.progress.progressive[0]
    mean = metrics.mean_loss() if metrics.weight > 0.0 else certificate.loss / certificate.weight
    facts = [Fact("rows", certificate.rounds, COUNT), *known(Fact("weighted by", weights_named(trained.plan)))]
    facts += [Fact("predictions", PROGRESSIVE), Fact("mean loss", mean, FIGURES, "loss")]
    blocks: list[Block] = [Facts(facts), *bounds(trained)]
    if model.pool is not None:
        records = [context.conformal for context in model.pool.contexts]
        blocks += _coverage(records, "Intervals" if model.task == "regression" else "Sets")
    blocks += _mixing([mixture for mixture in model.predictor.mixtures if mixture.top.rounds[0] > 0])
    if weights is not None:
        comparator = read_weights(trained, weights)
        at_least = (certificate.loss - certificate.regret(comparator)) / certificate.weight
        facts = [Fact("their mean loss is at least", at_least, FIGURES, "loss_at_least")]
        facts.append(Fact("better by at most, a row", mean - at_least, FIGURES, "regret_at_most"))
        if (bound := theorem_of(trained, comparator).value) is not None:
            facts.append(Fact("by the learner's theorem, at most", bound / certificate.weight, FIGURES, "theorem"))
        blocks.append(Facts(facts, "The weights in the file", key="weights"))
    return [*blocks, *order(trained), *_risk(trained)]


def order(trained: Trained) -> list[Block]:
    """The test whether targets depend on the order of the rows, for JSON; empty if unknown, as for shards."""
    if trained.order is None:
        return []
    finding = trained.order.finding()
    tested = {"depends_on_rows": finding.is_dependent, "sorted": finding.is_sorted, "level": LEVEL}
    return [Data("order", tested | finding._asdict())]


def bounds(trained: Trained) -> list[Block]:
    """Lower bounds on the loss of every linear model, by radius."""
    certificate = trained.model.certificate()
    has_unit = trained.model.task == "regression" and not has_rates(trained.plan.loss)
    radius = Format("g", unit=" mean absolute deviations of the target" if has_unit else "")
    header = [Column("radius", radius), Column("no linear model has a mean loss below", FIGURES, "bound")]
    note = f"{RADIUS} {FORGOTTEN}" if trained.kind == "table" and trained.encoder.ids.n_forgotten else RADIUS
    rows = list(dict(certificate.table(RADII)).items())
    return [Table("Every linear model", header, rows, note, "lower_bounds", is_open=False)]


def _coverage(records: Sequence[ConformalRecord], title: str) -> list[Block]:
    """The coverage of the next row by adaptive intervals or sets, over all contexts."""
    n = sum(int(record.adaptive.rows[0]) for record in records)
    if not n:
        return []
    coverages: dict[float, list[float]] = {}
    for record in records:
        share = int(record.adaptive.rows[0]) / n
        for level, coverage in record.followed().items():
            sums = coverages.get(level, (0.0, 0.0))
            coverages[level] = [total + share * part for total, part in zip(sums, coverage, strict=True)]
    at_least = Column("at least, by theorem", SHARE, "at_least")
    columns = [Column("coverage asked for", Format("g"), "coverage"), Column("covered", SHARE), at_least]
    rows = [(level, *shares) for level, shares in coverages.items()]
    note = f"Of {n:,} rows, each before it was learned. {COVERED}"
    return [Table(f"{title} of the next row", columns, rows, note, "coverage")]


def _mixing(mixtures: Sequence[Mixture]) -> list[Block]:
    """The cost of mixing, weighted over all contexts; empty if one member predicts alone."""
    if not mixtures:
        return []
    accounts = [(mixture.account, int(mixture.top.rounds[0])) for mixture in mixtures]
    weight = sum(float(account.weight[0]) for account, _ in accounts)
    base, loss = (sum(float(account.losses[level]) for account, _ in accounts) / weight for level in range(2))
    at_most = base + sum(mixing_excess(account, rounds) for account, rounds in accounts) / weight
    facts = [
        Fact("rows that were mixed", sum(rounds for _, rounds in accounts), COUNT, "rows"),
        Fact("mean loss on these", loss, FIGURES, "loss"),
        Fact("the members' average on these", base, FIGURES, "base"),
        Fact("theorem of mixing: mean loss at most", at_most, FIGURES, "loss_at_most"),
    ]
    return [Facts(facts, "The mixture", key="mixing")]


def _risk(trained: Trained) -> list[Block]:
    """Bounds on the loss of future rows, without rows that chose a kernel, or the reason why there are none."""
    doubts, pool = [str(finding) for finding in order_findings(trained)], trained.model.pool
    if pool is not None and pool.members.has_groups:
        doubts.append("Rows of a group depend on each other.")
    if doubts:
        consequence = "There is no bound on the error to come: such bounds are for rows that are independent and alike."
        return [Note(f"{sentence(doubts[0])} {consequence}", "warning")]
    risks: dict[str, Any] = {name: risk for name, risk in trained.model.record.risks.items() if risk.rows}
    bounded = {name: bound for name, risk in risks.items() if (bound := risk.bound(DELTA)) is not None}
    if not bounded:
        return []
    facts = [Fact("confidence", 1.0 - DELTA, Format("g", 100.0, " %"))]
    facts.append(Fact("rows that tell", risks["error"].rows, COUNT))
    for name, bound in bounded.items():
        write = PERCENT if name == "error" else FIGURES
        facts.append(Fact(f"mean {name.replace('_', '-')} to come, at most", bound, write, name))
    note = "For the models of the pass, if rows are independent and alike."
    return [Facts(facts, "Rows to come", note, "risk")]
