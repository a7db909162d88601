"""A pool as arrays and a header, from which the same pool is made again, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core import threads
from tunefree.core.states import under
from tunefree.generations import clocks
from tunefree.generations.bundles import Bundles
from tunefree.generations.columns import Columns
from tunefree.generations.generation import restored_all, save_all
from tunefree.generations.reservoir import Reservoir
from tunefree.model.relative import RelativeWeights
from tunefree.pool.contexts import Context
from tunefree.pool.growth import Growth, Pending
from tunefree.pool.pool import Pool

_OF_MEMBERS = ("online_places", "has_groups")
State = tuple[dict[str, np.ndarray], dict[str, Any]]
_OF_POOL = ("unit", "n_known", "has_finished", "only_predicts")


def save_state(pool: Pool, n_features: int) -> State:
    """Arrays and a header of all but the online members; generations that are being grown are waited for."""
    arrays, contexts = {"block": pool.block, "latest": pool.latest}, list[dict[str, Any]]()
    for number, context in enumerate(pool.contexts):
        of_context, saved = context.save_state()
        arrays |= {f"context{number}.{name}": array for name, array in of_context.items()}
        contexts.append(saved)
    header: dict[str, Any] = {name: getattr(pool, name) for name in _OF_POOL} | {"rises": dict(vars(pool.rises))}
    header |= {"relative": pool.relative.saved(), "contexts": contexts}
    header |= {name: getattr(pool.members, name) for name in _OF_MEMBERS}
    arrays |= pool.members.seen.save_state()
    arrays |= {f"waiting.{name}": array for name, array in pool.waiting.save_state().items()}
    of_copies, header["copies"] = pool.copies.save_state(n_features)
    arrays |= {f"copies.{name}": array for name, array in of_copies.items()}
    if pool.balance is not None:
        of_balance, header["balance"] = pool.balance.save_state()
        arrays |= {f"balance.{name}": array for name, array in of_balance.items()}
    if pool.members.growth is not None:
        of_growth, header["growth"] = _state_of_growth(pool.members.growth)
        arrays |= of_growth
    return arrays, header


def restore(pool: Pool, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """Take over what :func:`save_state` gave; the pool has learned nothing, and its online members are restored."""
    members = pool.members
    if "growth" not in header:
        members.growth = None
    for name in _OF_POOL:
        setattr(pool, name, header[name])
    pool.relative = RelativeWeights(**header["relative"])
    vars(pool.rises).update(header["rises"])
    for name in _OF_MEMBERS:
        setattr(members, name, header[name])
    pool.block = np.array(arrays["block"])
    members.seen.restore(arrays)
    pool.waiting.restore(under("waiting.", arrays))
    pool.latest = np.array(arrays["latest"])
    pool.contexts = [Context(members) for _ in header["contexts"]]
    for number, (context, saved) in enumerate(zip(pool.contexts, header["contexts"], strict=True)):
        context.restore(under(f"context{number}.", arrays), saved)
    if pool.balance is not None:
        pool.balance.restore(under("balance.", arrays), header["balance"])
    if members.growth is not None:
        _restore_growth(members.growth, arrays, header["growth"], pool.rows)
    pool.copies.restore(members, Context(members).mixture, under("copies.", arrays), header["copies"])


def _state_of_growth(growth: Growth) -> State:
    arrays = {f"whole.{name}": array for name, array in growth.whole.save_state().items()}
    arrays |= {f"recent.{name}": array for name, array in growth.recent.save_state().items()}
    if len(growth.columns.turns):
        arrays["turns"] = growth.columns.turns.copy()
    bundles = growth.columns.bundles
    arrays |= {"limits": bundles.limits.copy(), "counts": bundles.counts.copy()}
    header: dict[str, Any] = {"keys": growth.columns.keys, "kept": growth.whole.rows, "most": growth.whole.most}
    header |= {"latest": growth.recent.rows, "unseen": growth.columns.n_unseen, "rows": bundles.rows}
    header["sparse"] = [fill == 0.0 for fill in growth.columns.fills]
    of_windows = [[window.is_awake, window.failures, window.birth] for window in growth.windows]
    header |= {"windows": of_windows, "kinds": list(growth.kinds), "n_ages": growth.n_ages}
    awake = [(generation, {"clock": clock}) for clock, _, _, generation in growth.generations()]
    grown = [(birth, future.result()) for birth in growth.pending for future in birth.grown.values()]
    pending = [
        (generation, {"clock": birth.clock, "takeover": birth.takeover})
        for birth, generation in grown
        if generation is not None
    ]
    for stage, generations in (("awake", awake), ("pending", pending)):
        of_stage, header[stage] = save_all(stage, generations)
        arrays |= of_stage
    return arrays, header


def _restore_growth(growth: Growth, arrays: dict[str, np.ndarray], header: dict[str, Any], rows: int) -> None:
    fills = [0.0 if is_sparse else np.nan for is_sparse in header["sparse"]]
    turns = np.array(arrays["turns"]) if "turns" in arrays else None
    bundles = Bundles(np.array(arrays["limits"]), np.array(arrays["counts"]), header["rows"])
    growth.columns = Columns(header["keys"], fills, turns, bundles, header["unseen"])
    growth.next = clocks.births(rows)
    growth.whole = Reservoir(most=header["most"])
    growth.whole.restore(under("whole.", arrays), header["kept"])
    growth.recent.restore(under("recent.", arrays), header["latest"])
    growth.kinds, growth.n_ages = tuple(header["kinds"]), header["n_ages"]
    growth.windows = growth.windows[: len(header["windows"])]
    for window, saved in zip(growth.windows, header["windows"], strict=True):
        window.is_awake, window.failures, window.birth = saved
    for generation, saved in restored_all("awake", arrays, header["awake"], growth.loss):
        growth.awake.setdefault((saved["clock"], generation.kind), []).append(generation)
    by_event: dict[tuple[int, int, int], Pending] = {}
    for generation, saved in restored_all("pending", arrays, header["pending"], growth.loss):
        event = generation.rows, saved["takeover"], saved["clock"]
        pending = by_event.setdefault(event, Pending(*event, {}))
        pending.grown[generation.kind] = threads.now(lambda grown=generation: grown)
    growth.pending = list(by_event.values())
