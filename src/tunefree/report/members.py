"""Section of a report: who learned, by the shares of the members along the stream."""

from __future__ import annotations

from typing import Any

from tunefree.model.mixture import shares_by_member
from tunefree.pool.model import PoolModel
from tunefree.report import charts
from tunefree.report.charts import COLOURS, Series
from tunefree.report.document import Figure, Section, Table
from tunefree.report.generations import weights_of
from tunefree.report.scales import LOG, Scale
from tunefree.report.told import sentence
from tunefree.report.told_shares import meaning_of_shares
from tunefree.workflows.training import Trained

MOST_COLUMNS = 6  # of the table


def members(trained: Trained) -> Section | None:
    """Who learned; None of a single learner.

    Parameters
    ----------
    trained : Trained
    """
    model = trained.model
    if len(model.members) < 2 and not model.history:
        return None
    if isinstance(model, PoolModel):
        return Section("members", "Who learned", [*weights_of(model.pool), _table(trained)])
    now = {"rows": int(model.mixture.rounds[()]), "shares": shares_by_member(model.mixture, model.members)}
    moments = [own for own in model.history if own["rows"] < now["rows"]] + [now]
    figure = [_figure(moments)] if len(moments) > 1 else []
    return Section("members", "Who learned", [*figure, _table(trained)])


def _figure(moments: list[dict[str, Any]]) -> Figure:
    """Shares against rows: bands of the largest, the others together."""
    x = [own["rows"] for own in moments]
    last = moments[-1]["shares"]
    names = sorted({name: None for own in moments for name in own["shares"]}, key=lambda name: -last.get(name, -1.0))
    top = names[: COLOURS - 1]
    bands = [Series(name, x, [own["shares"].get(name, 0.0) for own in moments], 1 + k) for k, name in enumerate(top)]
    rest = [max(0.0, 1.0 - sum(band.y[t] for band in bands)) for t in range(len(x))]
    bands.append(Series(f"{len(names) - len(top)} others", x, rest))
    described = "Shares at the end: " + ", ".join(f"{name} {100 * last.get(name, 0.0):.1f} %" for name in top) + "."
    scale = Scale(float(x[0]), float(x[-1]), LOG)
    chart = charts.areas("Shares of the members along the stream", described, [*map(float, x)], bands, scale, "rows")
    caption = (
        "The share of each member in predictions, after so many rows; those with the largest shares at the end have"
    )
    return Figure(chart, f"{caption} names, grey are the {len(names) - len(top)} others together.")


def _table(trained: Trained) -> Table:
    """Shares in per cent, as `inspect` prints them."""
    model = trained.model
    last = model.shares_by_member()
    kept = model.history[:: max(1, -(-len(model.history) // MOST_COLUMNS))]
    names = {name: None for moment in model.history for name in moment["shares"]} | dict.fromkeys(last)
    rows = []
    for name in sorted(names, key=lambda name: -last.get(name, -1.0)):
        along = [*(moment["shares"].get(name) for moment in kept), last.get(name)]
        rows.append([name, *("-" if share is None else f"{100 * share:.1f}" for share in along)])
    deployed = model.deployment is not None
    header = ["member", *(f"{moment['rows']:,}" for moment in kept), "new rows" if deployed else "now"]
    note = "Per cent, after so many rows; - where a member has been pruned."
    note += " New rows: of rows that are predicted without learning on." if deployed else ""
    return Table(sentence(meaning_of_shares(model)), header, rows, note, 1, False)
