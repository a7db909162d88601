"""Figure of a report: the weights of generations in the mixture along the stream."""

from __future__ import annotations

from tunefree.pool.pool import Pool
from tunefree.pool.slots import TREES, WHOLE
from tunefree.pool.windows import LENGTHS
from tunefree.report import charts
from tunefree.report.charts import Series
from tunefree.report.document import Figure
from tunefree.report.scales import LOG, Scale


def weights_of(pool: Pool) -> list[Figure]:
    """The weights in the base mixture against rows, as a figure; none of too few rows.

    Parameters
    ----------
    pool : Pool
    """
    record, slots = pool.record, pool.members.slots
    if len(record.rows) < 2:
        return []
    places = {
        f"{kind}, all rows": [place for slot, place in slots.items() if (slot.clock, slot.kind) == (WHOLE, kind)]
        for kind in TREES
    }
    for length in LENGTHS:
        places[f"latest {length:,}"] = [place for slot, place in slots.items() if slot.clock == length]
    x = record.rows.tolist()
    weights = [record.weights[:, of_group].sum(axis=1) for of_group in places.values()]
    bands = [
        Series(name, x, weight.tolist(), 1 + k) for k, (name, weight) in enumerate(zip(places, weights, strict=True))
    ]
    bands.append(Series("linear", x, (1.0 - sum(weights)).clip(0.0).tolist()))
    described = "Weights at the end: " + ", ".join(f"{band.name} {100 * band.y[-1]:.1f} %" for band in bands) + "."
    scale = Scale(x[0], x[-1], LOG)
    chart = charts.areas("Weights in the base mixture along the stream", described, x, bands, scale, "rows")
    caption = (
        "The weights of those members that are awake in the mean that the mixture corrects, after so many rows:"
        " boosted and randomised trees grown on all rows, and on the latest; grey are linear members."
    )
    return [Figure(chart, caption)]
