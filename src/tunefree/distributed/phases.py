"""Learning over shards, from the first rows to a model: the phases, and where each is computed.

An engine (:mod:`tunefree.distributed.engines`) calls functions for each shard and adds up what they return by a fixed
tree over the shards' numbers. Everything here depends on the shards alone, not on who computed what, when or how often.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

from tunefree.core.errors import DataError, ModelError
from tunefree.distributed import shard_pass
from tunefree.distributed.engines import Engine
from tunefree.distributed.journal import Journal
from tunefree.distributed.rows import Beginning, Sizes, United, begun, prepared, read, united
from tunefree.distributed.shard_pass import Passed, Start
from tunefree.distributed.shards import Shard
from tunefree.generations.reservoir import MOST_ROWS
from tunefree.losses.rates import has_rates
from tunefree.model_files.plan import ONE_MACHINE, Plan
from tunefree.model_files.progress import Progress
from tunefree.model_files.trained import Trained
from tunefree.pool.model import Model
from tunefree.pool.targets import RunningMetrics
from tunefree.training import class_weights
from tunefree.training.training import check_weighed

SAMPLE = 2**17  # rows that the common start learns at least, on one worker; of more than twice as many
SAMPLE_OF = 2  # it learns one of so many, as long as trees are grown on all of them
LAST = 2**14  # other rows that are learned when shards are joined
LAST_OF = 8  # of as many rows beside the sample at most one is one of these


class Parts(NamedTuple):
    """The data, cut into shards."""

    shards: list[Shard]
    frames: list[list[Any]]  # handles of the tables of each shard; none of shards of files


Tell = Callable[[str], None]


def learn(
    engine: Engine, parts: Parts, plan: Plan, tell: Tell, skips: bool = False, journal: Journal | None = None
) -> Trained:
    """Learn a model from shards; ``skips`` leaves out those that cannot be read.

    ``tell`` is called with a line after each round, and the journal keeps the sums of each.
    """
    check(plan)
    journal, tell = journal or Journal(), _with_bytes(engine, tell)
    beginning, local, whole = _read(engine, parts, plan, skips, tell)
    rows, n_filled = whole.offsets[-1], sum(start < stop for start, stop in pairwise(whole.offsets))
    sample = rows_of_start(rows) if n_filled > 1 else rows  # one shard is learned as on one machine
    sizes = Sizes(rows, sample, min(LAST, (rows - sample) // LAST_OF))
    journal.begin(plan.changed(), parts.shards, whole.offsets, whole.classes, whole.encoder.n_features, sizes)
    handle = engine.hold("united", beginning._replace(encoder=whole.encoder.state()))
    shards = zip(local, whole.offsets, parts.shards, parts.frames, strict=False)
    items = [(rows, handle, whole.classes, offset, sizes, shard, frames) for rows, offset, shard, frames in shards]
    ready = engine.each("prepare", prepared, items)
    del local, items
    end = journal.round(engine, "start", lambda: _start(engine, ready, beginning, whole, sizes), Start._make)
    metrics = _metrics(engine, end)
    tell(f"common start: {sample:,} rows of all shards, loss before each was learned {metrics.mean_loss():.5g}")
    if sample < rows:
        start, total = end, journal.round(engine, "shard", lambda: _shards(engine, ready, end), Passed.restored)
        metrics = _metrics(engine, total)
        tell(f"shards: {metrics.rows:,} rows, loss before each was learned {metrics.mean_loss():.5g}")
        last = engine.each("last", attrgetter("last"), [(shard,) for shard in ready])
        end = engine.one("join", shard_pass.joined, start, total, last)
    trained = _trained(engine.value(end), whole, beginning)
    tell(f"the model: {trained.progress.progressive[0].rows:,} rows")
    return trained


def rows_of_start(rows: int) -> int:
    """How many of all rows the common start learns.

    >>> [rows_of_start(n) for n in (1000, 200_000, 500_000, 10**9)]
    [1000, 131072, 250000, 1048576]
    """
    return min(max(SAMPLE, min(rows // SAMPLE_OF, MOST_ROWS)), rows)


def _with_bytes(engine: Engine, tell: Tell) -> Tell:
    """Let each line end with how many bytes were sent since the one before."""
    sent = [engine.sent()]

    def tell_bytes(line: str) -> None:
        sent.append(engine.sent())
        tell(f"{line}; {(sent[-1] - sent[-2]) / 1e6:.1f} MB sent")

    return tell_bytes


def _metrics(engine: Engine, handle: Any) -> RunningMetrics:
    """How rows were predicted before they were learned."""
    return RunningMetrics(**engine.value(engine.one("metrics", attrgetter("metrics"), handle)))


def check(plan: Plan) -> None:
    """Raise a ModelError if a plan has parameters that are not supported over shards."""
    plan.check_scopes(plan.scopes - {ONE_MACHINE})
    if has_rates(plan.loss):
        raise ModelError(f"`loss` {plan.loss} {ONE_MACHINE.says}; {ONE_MACHINE.remedy}")
    class_weights.is_balanced(plan)


def _read(engine: Engine, parts: Parts, plan: Plan, skips: bool, tell: Tell) -> tuple[Beginning, list[Any], United]:
    """Let workers read their shards, and unite their dictionaries and classes."""
    beginning = None
    for shard, frames in zip(parts.shards, parts.frames, strict=True):
        beginning = engine.value(engine.one("begin", begun, shard, plan, frames))
        if beginning is not None:
            break
    if beginning is None:
        raise DataError("there are no rows", remedy="check that it is the data you mean")
    handle = engine.hold("beginning", beginning)
    items = [(shard, handle, skips, frames) for shard, frames in zip(parts.shards, parts.frames, strict=True)]
    local = engine.each("read", read, items)
    surveys = engine.values(engine.each("survey", attrgetter("survey"), [(rows,) for rows in local]))
    whole = united(beginning, surveys)
    for problem in whole.problems:
        tell(f"skipped: {problem}")
    if not whole.offsets[-1]:
        raise DataError("no row could be used", remedy="see the messages about skipped rows")
    if beginning.task == "classification" and len(whole.classes) < 2:
        raise DataError(f"the target has one class only, {whole.classes[0]!r}", remedy="give data with two classes")
    class_weights.check(plan, beginning.task, whole.classes, complete=True)
    if class_weights.is_balanced(plan):
        weights = class_weights.balancing(whole.totals)
        beginning = beginning._replace(plan=replace(beginning.plan, class_weight=weights))
    tell(f"read {whole.offsets[-1]:,} rows in {len(local)} shards: {whole.encoder.n_features:,} features")
    return beginning, local, whole


def _start(engine: Engine, ready: list[Any], beginning: Beginning, whole: United, sizes: Sizes) -> Any:
    """Let a worker learn the sample; the handle of the start."""
    sample = engine.each("sample", attrgetter("sample"), [(shard,) for shard in ready])
    n_features, is_all = whole.encoder.n_features, sizes.sample == sizes.rows
    return engine.one("start", shard_pass.started, beginning, whole.classes, n_features, sample, is_all)


def _shards(engine: Engine, ready: list[Any], start: Any) -> Any:
    """Let workers go on with their shards; the handle of the sums over these."""
    state = engine.one("following", shard_pass.following, start)
    handles = engine.each("shard", shard_pass.learned, [(shard, state) for shard in ready])
    return engine.total("shard", shard_pass.plus, handles)


def _trained(end: Start, whole: United, beginning: Beginning) -> Trained:
    progressive = RunningMetrics(**end.metrics)
    progress = Progress(complete=True, number=1, progressive=[progressive], held_out=[RunningMetrics()])
    progress.tally = whole.skipped
    trained = Trained(Model.restore(*end.model), whole.encoder, beginning.kind, beginning.plan, progress)
    check_weighed(trained)
    return trained
