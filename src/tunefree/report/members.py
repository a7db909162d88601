"""Section of a report: who learned, by the weights of the members and what these were judged by."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.explanation.told import digits, with_error
from tunefree.model_files.trained import Trained
from tunefree.pool.frozen import FOLLOWING, MUCH, SURE
from tunefree.pool.model import PoolModel
from tunefree.pool.pool import Pool
from tunefree.report.document import Note, Section, Table
from tunefree.report.generations import weights_of

POINTS = 5  # of the stream that are listed
JUDGED = (
    "Weight: in the mean of the members that the mixture corrects, for rows to come. Loss: mean over the rows that"
    " judge the member, those whose observation, or group, it had not learned; ±: its standard error. Members are"
    " judged by different rows, since not all were there from the first row on."
)
ALONG = "Per cent, after so many rows, of the weights in the mean that follows the stream."
CANDIDATES = (
    "trees as they were grown, mixed and corrected",
    "trees as they were grown, averaged",
    "the mixture that follows the stream",
)


def members(trained: Trained) -> Section | None:
    """Who learned; None of a single learner.

    Parameters
    ----------
    trained : Trained
    """
    model: Any = trained.model
    if len(model.members) < 2:
        return None
    figures = weights_of(model.pool) if isinstance(model, PoolModel) else []
    return Section("members", "Who learned", [*figures, *tables_of_members(model)])


def tables_of_members(model: Any) -> list[Any]:
    """The members with their weights, what these were judged by, and what predicts rows to come, as blocks.

    Parameters
    ----------
    model : Model
        Of several members.
    """
    if isinstance(model, PoolModel):
        return [_judged(model), *_along(model), Note(choice_told(model.pool), "fine")]
    weights = sorted(model.shares_by_member().items(), key=lambda item: -item[1])
    rows = [[name, f"{100 * weight:.1f} %"] for name, weight in weights]
    return [Table("Members by weight", ["member", "weight"], rows)]


def _judged(model: PoolModel) -> Table:
    """Weights, losses with their standard errors, and the rows that judged."""
    rows = [
        [
            name,
            f"{100 * weight:.1f} %",
            *(("-", "-") if np.isnan(loss) else (digits(loss, 4), digits(error, 2))),
            f"{n:,}",
        ]
        for name, weight, loss, error, n in zip(*model.selection()[:5], strict=True)
    ]
    return Table("Members by weight", ["member", "weight", "loss", "±", "rows that judge"], rows, JUDGED)


def _along(model: PoolModel) -> list[Table]:
    """Weights over the stream, at a few points; none of too few rows."""
    selection = model.selection()
    if len(selection.points) < 2:
        return []
    places = np.unique(np.linspace(0, len(selection.points) - 1, POINTS).round().astype(np.int64))
    header = ["member", *(f"{rows:,.0f}" for rows in selection.points[places])]
    weights = 100 * selection.weights_at[places].T
    of_members = zip(selection.members, weights, strict=True)
    rows = [[name, *(f"{weight:.1f}" for weight in of_member)] for name, of_member in of_members]
    return [Table("Weights over the stream", header, rows, ALONG, 1, False)]


def choice_told(pool: Pool) -> str:
    """What predicts rows to come, and how it was judged, as sentences.

    Parameters
    ----------
    pool : Pool

    Examples
    --------
    >>> choice_told(PoolModel("classification").pool)
    'Rows to come are predicted by the mixture that follows the stream.'
    """
    losses, choice = pool.frozen.losses, pool.frozen.choice if pool.has_finished else FOLLOWING
    said = f"Rows to come are predicted by {CANDIDATES[choice]}."
    if not losses[FOLLOWING] > 0.0:
        return said
    following = losses[FOLLOWING]
    of_frozen = zip(CANDIDATES, losses[:FOLLOWING] / following, np.sqrt(pool.frozen.squares) / following, strict=False)
    ratios = " and ".join(f"{name} {with_error(ratio, error)}" for name, ratio, error in of_frozen)
    return (
        f"{said} Copies of the pool were taken along the stream, did not learn on, and predicted rows after that: on"
        f" these, {ratios} times the loss of the copies' mixture. Trees as they were grown take over below {MUCH:g}, if"
        f" they are better by more than {SURE:g} standard errors."
    )


def facts_of_members(model: Any) -> dict[str, Any]:
    """The same for JSON."""
    facts: dict[str, Any] = {"members": model.shares_by_member()}
    if not isinstance(model, PoolModel):
        return facts
    selection, (repeated, _) = model.selection(), model.repeats()
    judged = zip(selection.members, *(values.tolist() for values in selection[1:5]), strict=True)
    names = ("member", "weight", "loss", "standard_error", "rows")
    rows = [dict(zip(names, (None if value != value else value for value in row), strict=True)) for row in judged]
    along = {"rows": selection.points.tolist(), "weights": selection.weights_at.T.tolist()}
    return facts | {
        "selection": rows,
        "weights_along": along,
        "rows_that_repeat": repeated,
        "rows_to_come": choice_told(model.pool),
    }
