"""The chart of generations of trees: their weights in the mixture over the rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.generations import clocks
from tunefree.generations.clocks import AGES
from tunefree.plotting import style
from tunefree.pool.pool import Pool
from tunefree.pool.slots import LINEAR, WHOLE, kinds_in
from tunefree.pool.windows import LENGTHS

EDGES: dict[str, Any] = {"edgecolor": style.WHITE, "linewidth": 0.5}
# Generations of all rows are hatched if they are not the newest, so that areas differ in black and white too.
HATCHES = {"newest": "", "previous": "////"}
OF_KINDS = {"boosted": (style.BLUE, style.LIGHT_BLUE), "randomised": (style.VERMILLION, style.LIGHT_VERMILLION)}
OF_OTHERS = (style.SOFT, style.PALE)
OF_WINDOWS = (style.GREEN, style.PURPLE)


class Group(NamedTuple):
    """Members whose weights are drawn as one area."""

    name: str
    indices: list[int]  # in the mixture
    style: dict[str, Any]


def groups_of(pool: Pool) -> list[Group]:
    """Members that are drawn as one area: generations on all rows below, online linear members on top."""
    slots, areas = pool.members.slots, []
    for kind in kinds_in(slots):
        for age, name in enumerate(AGES):
            indices = [slots[slot] for slot in slots if (slot.clock, slot.kind, slot.age) == (WHOLE, kind, age)]
            look = {"facecolor": OF_KINDS.get(kind, OF_OTHERS)[age], "hatch": HATCHES[name]}
            areas.append(Group(f"all rows: {kind}, {name}", indices, look))
    for length, color in zip(LENGTHS, OF_WINDOWS, strict=True):
        indices = [index for slot, index in slots.items() if slot.clock == length]
        areas.append(Group(f"latest {length:,} rows", indices, {"facecolor": color}))
    indices = [index for slot, index in slots.items() if slot.kind == LINEAR]
    areas.append(Group("all rows: linear", indices, {"facecolor": style.PALE, "hatch": "----"}))
    online = list(range(len(pool.members.names) - len(slots)))
    return [*areas, Group("online linear", online, {"facecolor": style.GREY})]


def draw_weights(axes: Any, pool: Pool) -> None:
    """Draw stacked areas of weights, and above them a triangle where generations of all rows took over."""
    record, groups = pool.context.record, groups_of(pool)
    heights = [record.weights[:, group.indices].sum(axis=1) for group in groups]
    edges = np.cumsum([np.zeros(len(record.rows)), *heights], axis=0)
    for group, bottom, top in zip(groups, edges[:-1], edges[1:], strict=True):
        axes.fill_between(record.rows, bottom, top, label=group.name, **EDGES, **group.style)
    axes.set(xlim=record.rows[[0, -1]], ylim=(0.0, 1.0), xlabel="rows learned", ylabel="weight in the base mixture")
    style.counts(axes.xaxis)
    takeovers = _takeovers(record.rows)
    look = {"transform": axes.get_xaxis_transform(), "clip_on": False, "color": style.BLACK}
    axes.plot(takeovers, np.full(len(takeovers), 1.012), "v", markersize=4, markeredgewidth=0, **look)
    axes.spines[["top", "right"]].set_visible(False)


def _takeovers(rows: np.ndarray) -> list[int]:
    """Rows at which generations of all rows took over, between the first and the last point."""
    takeovers, event = list[int](), clocks.births(0)
    while event.takeover <= rows[-1]:
        takeovers += [event.takeover] if event.takeover >= rows[0] else []
        event = clocks.births(event.birth)
    return takeovers
