"""What workers learn: the common start, of a sample of all shards; then each shard, from that start on; then the end.

The start is a pool like any other. Where there are more rows than the sample, a part of the sample comes after the last
generation was born, so that learners on its leaves have begun when shards go on. In shards no generation is born. What
they learned is joined, and goes on with some last rows of all shards. These tell the mixture what became of members:
where files are sorted by class, learners that follow their shard are worse than before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import threads
from tunefree.distributed import evidence, joining
from tunefree.distributed.encoded import Encoded, gathered
from tunefree.distributed.evidence import Proved
from tunefree.distributed.joining import Statistics
from tunefree.generations.clocks import LATE
from tunefree.model.record import FirstPassRecord
from tunefree.model.targets import Labels, RunningMean, RunningMetrics
from tunefree.pool.model import PoolModel
from tunefree.training.one_pass import blank, one_pass
from tunefree.training.pieces import Piece

BLOCK = 2**13  # rows that a model is handed at a time
ModelState = tuple[dict[str, np.ndarray], dict[str, Any]]


class Start(NamedTuple):
    """The common start."""

    model: ModelState
    metrics: dict[str, Any]  # of its predictions of rows before it learned each


class Passed(NamedTuple):
    """Sums over shards of what these learned."""

    rows: int  # with a weight above 0
    mass: float  # their weights, in the unit of the pool
    n_repeats: int  # of these whose observation was learned before
    metrics: dict[str, Any]
    learners: dict[str, Statistics]
    proved: Proved | None  # None where there are no rows

    def plus(self, other: Passed) -> Passed:
        """The sums over the shards of both."""
        if self.proved is None or other.proved is None:
            return other if self.proved is None else self
        counts = self.rows + other.rows, self.mass + other.mass, self.n_repeats + other.n_repeats
        metrics = {name: value + other.metrics[name] for name, value in self.metrics.items()}
        known = [name for name in self.learners if name in other.learners]  # not of shards with rows too wide for trees
        learners = {name: self.learners[name].plus(other.learners[name]) for name in known}
        return Passed(*counts, metrics, learners, self.proved.plus(other.proved))


def plus(*parts: Passed) -> Passed:
    """The sum of several, in their order."""
    total = parts[0]
    for part in parts[1:]:
        total = total.plus(part)
    return total


def started(
    task: str, loss: str | None, classes: Sequence[Any], n_features: int, sample: Sequence[Encoded], has_rest: bool
) -> Start:
    """The common start.

    Parameters
    ----------
    task, loss, classes, n_features
        Of :class:`tunefree.pool.model.PoolModel`.
    sample : sequence of Encoded
        The part that each shard has.
    has_rest : bool
        Whether there are rows that are not in the sample. If not, the rows keep their order, as on one machine.
    """
    model = PoolModel(task, "pool", loss, classes=classes, n_features=n_features)
    metrics, rows = RunningMetrics(), gathered(sample)
    with threads.at_most(1), threads.one_for_products():
        if has_rest:
            rows = shuffled(rows)
        first = len(rows.y) - len(rows.y) // LATE if has_rest else len(rows.y)
        _learn(model, rows.part(0, first), metrics)
        model.freeze()
        if has_rest:
            _stop_growing(model)
            _learn(model, rows.part(first, len(rows.y)), metrics)
    return Start(model.save_state(), asdict(metrics))


def learned(rows: Encoded, start: Start) -> Passed:
    """Let a shard go on from the common start."""
    if rows.X is None or not len(rows.y):
        return Passed(0, 0.0, 0, {}, {}, None)
    model, metrics = PoolModel.restore(*start.model), RunningMetrics()
    _stop_growing(model)
    pool, known = model.pool, model.record.targets
    begun = pool.rows, pool.relative.mass, pool.n_repeats
    model.record = FirstPassRecord(model.options, model.n_slots, model.n_outputs)
    model.record.targets = RunningMean(known.weight, known.total)
    before = joining.begin(model)
    with threads.at_most(1), threads.one_for_products():
        _learn(model, rows, metrics)
    counts = pool.rows - begun[0], pool.relative.mass - begun[1], pool.n_repeats - begun[2]
    sums = evidence.proved(model.record, model.n_features, known)
    return Passed(*counts, asdict(metrics), joining.learned(model, before, max(counts[0], 1)), sums)


def joined(start: Start, total: Passed, last: Sequence[Encoded]) -> Start:
    """The common start with what all shards learned, which goes on with the last rows, and ends its pass."""
    model, metrics = PoolModel.restore(*start.model), RunningMetrics(**start.metrics)
    if total.proved is not None:
        metrics = RunningMetrics(**{name: value + total.metrics[name] for name, value in start.metrics.items()})
        evidence.add(model.record, total.proved, model.n_features, model.n_outputs)
        joining.join(model, total.learners, total.rows)
        pool = model.pool
        pool.relative.rows += total.rows
        pool.relative.mass += total.mass
        pool.n_repeats += total.n_repeats
    _stop_growing(model)
    with threads.at_most(1), threads.one_for_products():
        _learn(model, shuffled(gathered(last)), metrics)
    model.pool.has_finished = True
    if model.pool.members.growth is not None:
        model.pool.members.growth.go_on(model.pool.rows)
    return Start(model.save_state(), asdict(metrics))


def shuffled(rows: Encoded) -> Encoded:
    """Rows in a random order that is always the same: how files are sorted must not be learned."""
    return rows.at(np.random.default_rng(0).permutation(len(rows.y)))


def _stop_growing(model: PoolModel) -> None:
    if model.pool.members.growth is not None:
        model.pool.members.growth.stop()


def _learn(model: PoolModel, rows: Encoded, metrics: RunningMetrics) -> None:
    """Let a model learn rows, and add how it predicted each before."""
    trained = blank(model)
    trained.progress.progressive = [metrics]
    one_pass(trained, _pieces(model, rows))


def _pieces(model: PoolModel, rows: Encoded) -> Iterator[Piece]:
    """The rows, some thousand at a time."""
    for start in range(0, len(rows.y), BLOCK):
        block = rows.part(start, start + BLOCK)
        y: Any = block.y if model.task == "regression" else Labels(model.classes, block.y.astype(np.int64))
        yield Piece(block.X, y, block.weight, block.weight)
