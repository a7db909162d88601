"""Charts of generations of trees: their weights in the mixture and their losses, over the rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.generations import clocks
from tunefree.generations.clocks import AGES
from tunefree.generations.problem import USUAL
from tunefree.plotting import style
from tunefree.pool.growth import settings_of_trees
from tunefree.pool.pool import Pool
from tunefree.pool.slots import LINEAR, WHOLE, kinds_in
from tunefree.pool.windows import LENGTHS

BLOCKS = 48  # means of losses, at most
LEAST = 0.25  # of the rows of the members of a group that are awake most, which its best member predicted at least
EDGES: dict[str, Any] = {"edgecolor": style.WHITE, "linewidth": 0.5}
# Generations of all rows are hatched if they are not the newest, so that areas differ in black and white too.
HATCHES = {"newest": "", "previous": "////"}
OF_KINDS = {"boosted": (style.BLUE, style.LIGHT_BLUE), "randomised": (style.VERMILLION, style.LIGHT_VERMILLION)}
OF_OTHERS = (style.SOFT, style.PALE)
OF_WINDOWS = (style.GREEN, style.PURPLE)
LINES: dict[str, dict[str, Any]] = {
    "online linear": {"color": style.SOFT, "linewidth": 1.3, "dashes": (6, 2)},
    "all rows": {"color": style.BLUE, "linewidth": 1.3, "dashes": (2, 1.2)},
    "latest 2,048 rows": {"color": style.GREEN, "linewidth": 1.5},
    "latest 16,384 rows": {"color": style.PURPLE, "linewidth": 1.5, "dashes": (8, 1.5, 1.5, 1.5)},
}


class Group(NamedTuple):
    """Members whose weights are drawn as one area."""

    name: str
    places: list[int]  # in the mixture
    style: dict[str, Any]


def groups_of(pool: Pool) -> list[Group]:
    """Members that are drawn as one area: generations on all rows below, online linear members on top."""
    slots, areas, settings = pool.members.slots, [], settings_of_trees(pool.members.growth)
    for kind in kinds_in(slots):
        for age, name in enumerate(AGES):
            places = [slots[slot] for slot in slots if (slot.clock, slot.kind, slot.age) == (WHOLE, kind, age)]
            look = {"facecolor": OF_KINDS.get(kind, OF_OTHERS)[age], "hatch": HATCHES[name]}
            chosen = f"\n{settings[kind].in_words()}" if age == 0 and settings.get(kind, USUAL) != USUAL else ""
            areas.append(Group(f"all rows: {kind}, {name}{chosen}", places, look))
    for length, color in zip(LENGTHS, OF_WINDOWS, strict=True):
        places = [place for slot, place in slots.items() if slot.clock == length]
        areas.append(Group(f"latest {length:,} rows", places, {"facecolor": color}))
    places = [place for slot, place in slots.items() if slot.kind == LINEAR]
    areas.append(Group("all rows: linear", places, {"facecolor": style.PALE, "hatch": "----"}))
    return [*areas, Group("online linear", _online(pool), {"facecolor": style.GREY})]


def _online(pool: Pool) -> list[int]:
    """Places of the online linear members."""
    return list(range(len(pool.members.names) - len(pool.members.slots)))


def draw_weights(axes: Any, pool: Pool) -> None:
    """Draw stacked areas of weights, and above them a triangle where generations of all rows took over."""
    record, groups = pool.context.record, groups_of(pool)
    heights = [record.weights[:, group.places].sum(axis=1) for group in groups]
    edges = np.cumsum([np.zeros(len(record.rows)), *heights], axis=0)
    for group, bottom, top in zip(groups, edges[:-1], edges[1:], strict=True):
        axes.fill_between(record.rows, bottom, top, label=group.name, **EDGES, **group.style)
    axes.set(xlim=record.rows[[0, -1]], ylim=(0.0, 1.0), ylabel="weight in the base mixture")
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


def loss_name(model: Any) -> str:
    """The loss that is drawn, with its unit."""
    if model.task == "classification":
        return "log-loss (nats per row)"
    return f"{model.options.loss or 'square'} loss per row"


def draw_losses(axes: Any, pool: Pool, loss_name: str) -> None:
    """Draw lines of the mixture and of the best members, through the middles of blocks of rows."""
    rows, means = _blocks(pool)
    slots, members = pool.members.slots, {"online linear": _online(pool)}
    for clock in (WHOLE, *LENGTHS):
        name = f"latest {clock:,} rows" if clock else "all rows"
        members[name] = [place for slot, place in slots.items() if slot.clock == clock]
    axes.plot(rows, means[:, -1], color=style.BLACK, linewidth=2.2, label="the whole mixture")
    for name, places in members.items():
        best = _best(pool, places)
        if best is not None:
            label = f"{name}:\n{pool.members.names[best]}"
            axes.plot(rows, means[:, best], label=style.escaped(label), **LINES[name])
    axes.set(xlabel="rows learned", ylabel=loss_name, ylim=(0.0, None))
    style.counts(axes.xaxis)
    style.plain_numbers(axes.yaxis, axes.get_ylim())
    style.simplify(axes)


def _blocks(pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """Middles of blocks of rows, and weighted mean losses (T, M + 1) in them; NaN of members that mostly slept."""
    record = pool.context.record
    before = np.concatenate([[0], record.rows[:-1]])
    starts = np.unique(BLOCKS * before // record.rows[-1], return_index=True)[1]
    totals, weights = np.moveaxis(np.add.reduceat(record.losses[:, :2], starts, axis=0), 1, 0)
    is_shown = (weights > 0.0) & (weights >= 0.5 * weights[:, -1:])
    means = np.divide(totals, weights, out=np.full(totals.shape, np.nan), where=is_shown)
    return 0.5 * (before[starts] + record.rows[np.append(starts[1:], len(before)) - 1]), means


def _best(pool: Pool, places: list[int]) -> int | None:
    """The member, of these places, with the least mean loss relative to the mixture where it was awake."""
    losses, means = pool.context.record.losses, pool.context.record.means()
    weights = losses[:, 1, places]
    excess = np.sum(losses[:, 0, places] - np.nan_to_num(means[:, -1:]) * weights, axis=0)
    rows = weights.sum(axis=0)
    over = np.divide(excess, rows, out=np.full(len(places), np.inf), where=rows >= LEAST * rows.max(initial=1.0))
    return places[int(np.argmin(over))] if np.isfinite(over).any() else None
