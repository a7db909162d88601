"""Predictions of counts, amounts and rates against what happened: by decile, and for two models."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.plotting import charts
from tunefree.plotting.style import few_ticks
from tunefree.report.document import Block, Chart, Column, Table
from tunefree.report.formats import COUNT, SIX
from tunefree.workflows.count_metrics import DoubleDecile
from tunefree.workflows.evaluation import Evaluation

CALIBRATION = (
    "Rates on the test data, by tenths of the exposure in the order of the predicted rate. Where the lines part, the"
    " rates of such rows are predicted too high or too low; in a tenth of few events, chance parts them as well."
)
DOUBLE_LIFT = (
    "Tenths of the exposure in the order of the ratio of the two predicted rates: where the models differ most, the"
    " better one is nearer to what happened."
)


def by_decile(tested: Evaluation) -> list[Block]:
    """What was predicted and what happened, by decile of the predicted rate, as a table and as a picture."""
    deciles = tested.lift
    if not deciles:
        return []
    names = {"exposure": "exposure", "predicted": "predicted", "actual": "actual"}
    columns = [Column("decile", COUNT), *(Column(title, SIX, key) for key, title in names.items())]
    columns.append(Column("actual / expected", SIX, "actual_over_expected"))
    table = Table(
        "By decile of the prediction", columns, [[k, *decile] for k, decile in enumerate(deciles, 1)], key="lift"
    )
    lines = {name: [getattr(decile, name) for decile in deciles] for name in ("predicted", "actual")}
    ends = [f"{name} {rates[0]:.4g} in the lowest and {rates[-1]:.4g} in the highest" for name, rates in lines.items()]

    def draw(figure: Any) -> None:
        draw_rates(figure.subplots(), lines)

    return [table, Chart("Calibration by decile", f"Rates: {'; '.join(ends)}.", draw, CALIBRATION)]


def draw_rates(axes: Any, rates: dict[str, list[float]]) -> None:
    """Draw rates by decile, a line for each name."""
    deciles = np.arange(1, 1 + max(map(len, rates.values()))).tolist()
    lines = [charts.series(k, name, deciles, values) for k, (name, values) in enumerate(rates.items())]
    for line in lines:
        axes.plot(line.x, line.y, marker="o", markersize=3, **line.style)
    axes.set_xticks(deciles)
    few_ticks(axes.yaxis, [0.0, *(value for line in lines for value in line.y)])
    charts.finish(axes, lines, ("decile of the predicted rate", "rate"))


def double_lift(deciles: list[DoubleDecile], names: tuple[str, str]) -> Table:
    """What two models predict and what happened, by decile of the ratio of the two.

    ``names``: of the models.
    """
    columns = [Column("decile", COUNT), Column("exposure", SIX), Column(names[0], SIX, "first")]
    columns += [Column(names[1], SIX, "second"), Column("actual", SIX)]
    rows = [[k, *decile] for k, decile in enumerate(deciles, 1)]
    return Table("By decile of the ratio of the two models", columns, rows, DOUBLE_LIFT, "double_lift")
