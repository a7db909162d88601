"""The weights and losses of the members, along the stream and at its end."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.model_files.trained import Trained
from tunefree.plotting.generations import draw_weights, groups_of
from tunefree.plotting.style import counts
from tunefree.pool.contexts import FOLLOWING, SURE
from tunefree.pool.pool import Pool
from tunefree.report.document import Block, Chart, Column, Data, Note, Section, Table
from tunefree.report.formats import COUNT, FIGURES, TENTHS_OF_PERCENT, TWO, with_error

MOST_NAMED = 3  # members named in the folded section
JUDGED = (
    "Weight: in the mean of the members that the mixture corrects, for rows to come. Loss: mean over the rows that"
    " judge the member; ±: its standard error. Members are judged by different rows, since not all were there from the"
    " first row on. New rows and rows that were known, whose columns or group had been learned, are judged apart; the"
    " kind of rows to come is shown: the kind of most of the latest rows, and with groups new ones."
)
CANDIDATES = (
    "trees as they were grown, mixed and corrected",
    "trees as they were grown, averaged",
    "the mixture that follows the stream",
)
WEIGHTS = (
    "The weights of those members that are awake in the mean that the mixture corrects, after so many rows: boosted and"
    " randomised trees grown on all rows, and on the latest, and online linear members. Triangles: trees of all rows"
    " take over."
)
TALL = 5.0, 4.8  # inches of a chart with a legend below


def members(trained: Trained) -> Section | None:
    """The section on members; None for a single learner."""
    model = trained.model
    if model.pool is None and len(model.predictor.shares()) < 2:
        return None
    return Section("members", "Who learned", blocks_of_members(model), in_brief(model))


def in_brief(model: Any) -> str:
    """A phrase on the number of members and on the members with the largest weights."""
    shares = _by_weight(model)
    largest = ", ".join(f"{name} {TENTHS_OF_PERCENT(share)}" for name, share in shares[:MOST_NAMED])
    several = f"{len(shares)} members with their weights; the largest"
    return f"{several if len(shares) > 1 else 'one member'}: {largest}"


def _by_weight(model: Any) -> list[tuple[str, float]]:
    return sorted(model.predictor.shares().items(), key=lambda share: -share[1])


def blocks_of_members(model: Any, top: int = 0) -> list[Block]:
    """The ``top`` members (0: all) with their weights and losses, and the mixture that predicts future rows."""
    columns = [Column("member"), Column("weight", TENTHS_OF_PERCENT)]
    if (pool := model.pool) is None:
        weights = _by_weight(model)
        shown = None if len(weights) > 1 else ()
        return [Table("Members by weight", columns, weights, key="members", shown=shown)]
    columns += [Column("loss", FIGURES), Column("±", TWO, "standard_error"), Column("rows that judge", COUNT, "rows")]
    selection = pool.selection()
    rows = list(zip(*selection[:5], strict=True))
    table = Table("Members by weight", columns, rows, JUDGED, "members", range(top) if top else None)
    along = Data("weights_along", {"rows": selection.points, "weights": selection.weights_at.T})
    return [*_chart(pool), table, along, Note(choice_of_rows_to_come(pool))]


def _chart(pool: Pool) -> list[Chart]:
    """The chart of weights along the stream; empty for too few rows."""
    record = pool.context.record
    if len(record.rows) < 2:
        return []
    last = [(group.name, record.weights[-1, group.indices].sum()) for group in groups_of(pool)]
    described = "Weights at the end: " + ", ".join(f"{name} {100 * weight:.1f} %" for name, weight in last) + "."

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        draw_weights(axes, pool)
        axes.set_xscale("log")
        counts(axes.xaxis)
        figure.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=9.5)

    return [Chart("Weights in the base mixture along the stream", described, draw, WEIGHTS, TALL)]


def choice_of_rows_to_come(pool: Pool) -> str:
    """Sentences on the mixture that predicts future rows, and its evaluation.

    >>> from tunefree.pool.model import Model
    >>> choice_of_rows_to_come(Model("classification").pool)
    'Rows to come are predicted by the mixture that follows the stream.'
    """
    frozen = pool.context.frozen
    losses, choice = frozen.losses, frozen.choice if pool.has_finished else FOLLOWING
    verdict = f"Rows to come are predicted by {CANDIDATES[choice]}."
    if not losses[FOLLOWING] > 0.0:
        return verdict
    following = losses[FOLLOWING]
    comparisons = zip(CANDIDATES, losses[:FOLLOWING] / following, np.sqrt(frozen.squares) / following, strict=False)
    ratios = " and ".join(f"{name} {with_error(ratio, error)}" for name, ratio, error in comparisons)
    return (
        f"{verdict} Copies of the pool were taken along the stream, did not learn on, and predicted rows after that: on"
        f" these, {ratios} times the loss of the copies' mixture. Trees as they were grown take over if"
        f" they are better by more than {SURE:g} standard errors."
    )
