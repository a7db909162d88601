"""Weights of members as they were, and averages of them, with which rows can be predicted while members learn on.

Weights are relative to units of the features, so that no scale of the data overflows. Candidates on the same view stand
side by side in one array: one pass over a row serves all of them, at a fraction of the cost of one after the other.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.rows import n_rows, part
from tunefree.core.states import flatten, under
from tunefree.losses.objectives import predictions_of
from tunefree.model import views
from tunefree.model.group import Further, MemberGroup, Read
from tunefree.model.members import scored, split
from tunefree.model.weights import side_by_side

CHUNK = 512  # rows that are predicted at a time


class Stack(NamedTuple):
    """Candidates on one view of the rows."""

    group: str  # name of the members' group
    view: str
    candidates: np.ndarray  # (M,) their numbers, ascending
    weights: np.ndarray  # (d, M * K) relative to the units
    units: np.ndarray  # (d,) of the features; 0 for one that was never met


class Snapshot(NamedTuple):
    """Members, numbered from 0, and then their averages, as they were after some rows."""

    stacks: list[Stack]
    views: dict[str, Any]  # by name, those that change while members learn
    objectives: list[Any]  # (N,) of the members
    n_outputs: int
    counts: tuple[int, int] = (0, 0)  # of the linear members' group, which is the first


def with_outputs(read: Read, now: Read) -> Read:
    """Weights with as many outputs as those of the member ``now``; new classes have its weights of the constant."""
    (weights, units), n_outputs = read, now[0].shape[1]
    first = 1 if weights.shape[1] == 1 else 0
    stop = first + weights.shape[1]
    placed = np.zeros((len(weights), n_outputs))
    placed[:, first:stop] = weights
    placed, units = split(placed) if first else placed, units.copy()
    if now[1][0] > 0.0:
        units[0] = units[0] if units[0] > 0.0 else 1.0
        placed[0, stop:] = now[0][0, stop:] / now[1][0] * units[0]
    return placed, units


def take(groups: Sequence[MemberGroup], now: Sequence[Read], averages: Sequence[Read]) -> Snapshot:
    """A snapshot of all members, and of their averages, of which there may be none."""
    members = [(group, member) for group in groups for member in group.members]
    keys = [(group.name, member.setting.view) for group, member in members]
    reads = [*now, *averages]
    stacks = []
    for key in dict.fromkeys(keys):
        candidates = np.array([c for c, own in enumerate((keys * 2)[: len(reads)]) if own == key])
        stacks.append(Stack(*key, candidates, *side_by_side([reads[c] for c in candidates])))
    moving = {name: copy.deepcopy(view) for group in groups for name, view in group.moving_views.items()}
    return Snapshot(stacks, moving, [member.objective for _, member in members], now[0][0].shape[1], groups[0].counts)


def predict(snapshots: Sequence[Snapshot], groups: Sequence[MemberGroup], X: Any) -> np.ndarray:
    """What members and averages predict of rows by each of some snapshots of the same members, (S, 2N, n, K).

    Features that were met after the latest snapshot count nothing.
    """
    first = snapshots[0]
    found = np.empty((len(snapshots), 2 * len(first.objectives), n_rows(X), first.n_outputs))
    for start in range(0, n_rows(X), CHUNK):
        stop = min(start + CHUNK, n_rows(X))
        rows = part(X, start, stop)
        for group in groups:
            seen: Any = None  # by all snapshots alike, unless views of the group change while it learns
            sizes = [len(own.units) for snapshot in snapshots for own in snapshot.stacks if own.group == group.name]
            for snapshot, written in zip(snapshots, found[:, :, start:stop], strict=True):
                stacks = [stack for stack in snapshot.stacks if stack.group == group.name]
                if stacks and (seen is None or group.moving_views):
                    seen = group.shown(rows, snapshot.views, max(sizes))
                further = group.further(rows, snapshot.views, snapshot.counts)
                for stack in stacks:
                    _score(snapshot, stack, seen[stack.view], written, group.members, further)
    return found


def _score(
    snapshot: Snapshot,
    stack: Stack,
    seen: Any,
    predictions: np.ndarray,
    members: Any,
    further: Callable[[Any], Further | None],
) -> None:
    """Write what the candidates of a stack predict of rows in its view (2N, n, K).

    A feature that was met once has the member's weight in the average too.
    """
    n_outputs, found = snapshot.n_outputs, dict[int, Further | None]()
    margins = scored(seen, (stack.weights, stack.units))
    for place, c in enumerate(stack.candidates.tolist()):
        own = margins[:, place * n_outputs : (place + 1) * n_outputs]
        number = c % len(snapshot.objectives)
        if stack.group == "linear" and number not in found:
            found[number] = further(members[number])
        if (rest := found.get(number)) is not None:
            own = own + scored(rest.X, rest.read)
        predictions[c] = predictions_of(snapshot.objectives[number], own)


def without(snapshot: Snapshot, stays: np.ndarray) -> Snapshot:
    """The snapshot of the members (N,) that stay."""
    kept = np.concatenate([stays, stays])
    number = np.cumsum(kept) - 1
    stacks = []
    for stack in snapshot.stacks:
        own = kept[stack.candidates]
        if own.any():
            weights = stack.weights[:, np.repeat(own, snapshot.n_outputs)]
            candidates = number[stack.candidates[own]]
            stacks.append(stack._replace(candidates=candidates, weights=np.ascontiguousarray(weights)))
    objectives = [objective for objective, own in zip(snapshot.objectives, stays.tolist(), strict=True) if own]
    return snapshot._replace(stacks=stacks, objectives=objectives)


def save_state(snapshot: Snapshot, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and a header from which :func:`restored` makes the same snapshot."""
    arrays: dict[str, np.ndarray] = {}
    for s, stack in enumerate(snapshot.stacks):
        arrays |= {f"{s}.{name}": getattr(stack, name) for name in ("candidates", "weights", "units")}
    for name, view in snapshot.views.items():
        arrays |= flatten(f"views.{name}", view, n_features)[0]
    objectives = [
        {name: value for name, value in objective._asdict().items() if name != "loss"}
        for objective in snapshot.objectives
    ]
    header = {"stacks": [[stack.group, stack.view] for stack in snapshot.stacks], "views": sorted(snapshot.views)}
    return arrays, header | {"objectives": objectives, "n_outputs": snapshot.n_outputs, "counts": [*snapshot.counts]}


def restored(arrays: dict[str, np.ndarray], header: dict[str, Any], objectives: list[Any]) -> Snapshot:
    """The snapshot that was saved; ``objectives`` are those of the members today, which have the same losses."""
    stacks = [Stack(key[0], key[1], **under(f"{s}.", arrays)) for s, key in enumerate(header["stacks"])]
    moving = {name: views.restored(name, f"views.{name}", arrays) for name in header["views"]}
    own = [own._replace(**saved) for own, saved in zip(objectives, header["objectives"], strict=True)]
    first, second = header.get("counts", (0, 0))
    return Snapshot(stacks, moving, own, header["n_outputs"], (first, second))
