"""What workers learn: one the common start, of a sample of all shards; then each its shards, from that start on.

The start is a pool like any other. Where there are more rows than the sample, a part of the sample comes after the last
generation was born, so that learners on its leaves have begun when shards go on. In shards no generation is born.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import threads
from tunefree.core.states import size_of
from tunefree.distributed import evidence, joining
from tunefree.distributed.encoded import Encoded, Rest, gathered
from tunefree.distributed.evidence import Proved
from tunefree.distributed.joining import Statistics
from tunefree.generations import clocks
from tunefree.generations.clocks import LATE, Event
from tunefree.mixing.mixture import Mixture
from tunefree.model.record import FirstPassRecord
from tunefree.model.targets import Labels, RunningMean, RunningMetrics
from tunefree.pool.model import PoolModel

BLOCK = 2**13  # rows that a model is handed at a time
NEVER = 2**62  # rows, at which nothing happens
ModelState = tuple[dict[str, np.ndarray], dict[str, Any]]


class Start(NamedTuple):
    """The common start."""

    model: ModelState
    metrics: dict[str, float]  # of its predictions of rows before it learned each


class Passed(NamedTuple):
    """Sums over shards of what these learned."""

    rows: int  # with a weight above 0
    mass: float  # their weights, in the unit of the pool
    n_repeats: int  # of these whose observation was learned before
    metrics: dict[str, float]
    learners: dict[str, Statistics]
    proved: Proved | None  # None where there are no rows
    predictions: np.ndarray  # (n, M, K) of members, of the rows that the mixture learns, before they learned each
    targets: np.ndarray  # (n,) of these rows
    weights: np.ndarray  # (n,)

    def plus(self, other: Passed) -> Passed:
        """The sums over the shards of both."""
        if self.proved is None or other.proved is None:
            return other if self.proved is None else self
        metrics = {name: value + other.metrics[name] for name, value in self.metrics.items()}
        learners = {
            name: statistics.plus(other.learners[name]) if name in other.learners else statistics
            for name, statistics in (other.learners | self.learners).items()
            if name in self.learners
        }
        counts = self.rows + other.rows, self.mass + other.mass, self.n_repeats + other.n_repeats
        rows = [np.concatenate([getattr(self, name), getattr(other, name)]) for name in self._fields[-3:]]
        return Passed(*counts, metrics, learners, self.proved.plus(other.proved), *rows)

    @property
    def nbytes(self) -> int:
        """Bytes of what is sent."""
        return size_of((self.predictions, self.learners))


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
        Whether there are rows that are not in the sample.
    """
    model = PoolModel(task, "pool", loss, classes=classes, n_features=n_features)
    metrics, rows = RunningMetrics(), gathered(sample)
    with threads.at_most(1), threads.one_for_products():
        if has_rest:
            rows = rows.at(shuffled(len(rows.y)))
        first = len(rows.y) - len(rows.y) // LATE if has_rest else len(rows.y)
        _learn(model, rows.part(0, first), metrics)
        model.freeze()
        if has_rest:
            stop_growing(model)
            _learn(model, rows.part(first, len(rows.y)), metrics)
    return Start(model.save_state(), asdict(metrics))


def learned(rest: Rest, start: Start) -> Passed:
    """Let a shard go on from the common start."""
    rows, metrics = rest.rows, RunningMetrics()
    if rows.X is None or not len(rows.y):
        return Passed(0, 0.0, 0, {}, {}, None, np.empty((0, 0, 0)), np.empty(0), np.empty(0))
    model = PoolModel.restore(*start.model)
    stop_growing(model)
    pool, known = model.pool, model.record.targets
    begun = pool.rows, pool.mass, pool.n_repeats
    model.record = FirstPassRecord(model.options, model.n_slots, model.n_outputs)
    model.record.targets = RunningMean(known.weight, known.total)
    before = joining.begin(model)
    mixture = pool.mixture = KeepingMixture(pool.mixture, rest.is_mixed)
    with threads.at_most(1), threads.one_for_products():
        _learn(model, rows, metrics)
    counts = pool.rows - begun[0], pool.mass - begun[1], pool.n_repeats - begun[2]
    sums = evidence.proved(model.record, model.n_features, known)
    learners = joining.learned(model, before, max(counts[0], 1))
    kept = [np.concatenate([block[field] for block in mixture.kept]) for field in range(3)]
    return Passed(*counts, asdict(metrics), learners, sums, *kept)


def join(model: PoolModel, total: Passed) -> None:
    """Let the common start have what all shards learned, and end its pass."""
    pool, growth = model.pool, model.pool.members.growth
    pool.has_finished = True
    if total.proved is None:
        return
    evidence.add(model.record, total.proved, model.n_features, model.n_outputs)
    joining.join(model, total.learners, total.rows)
    pool.rows, pool.mass = pool.rows + total.rows, pool.mass + total.mass
    pool.n_repeats += total.n_repeats
    if len(total.targets):
        _mix(model, total)
    if growth is not None:
        growth.next = clocks.births(pool.rows)
        if growth.whole.rows >= growth.whole.capacity:
            growth.whole.rows = pool.rows  # of all of which it is a uniform sample
        for window in growth.windows:
            window.is_awake, window.birth = False, pool.rows + 2 * window.length


def _mix(model: PoolModel, total: Passed) -> None:
    """Let the mixture learn what members predicted in their shards, and record how good that was."""
    pool, members = model.pool, model.pool.members
    order = shuffled(len(total.targets))
    predictions, y, weight = (array[order] for array in (total.predictions, total.targets, total.weights))
    mixed = pool.mixture.learn(predictions, y, weight)
    losses = [members.losses(part, y) for part in (predictions, mixed[:, None])]
    pool.record.observe(np.concatenate(losses, axis=1), weight)
    is_asleep = np.isnan(predictions[-1, :, 0])
    pool.record.add(pool.rows, np.where(is_asleep, np.nan, pool.mixture.base.weights))


def shuffled(n: int) -> np.ndarray:
    """The numbers of rows in a random order that is always the same: how files are sorted must not be learned."""
    return np.random.default_rng(0).permutation(n)


def stop_growing(model: PoolModel) -> None:
    """Let no generation be born any more."""
    growth = model.pool.members.growth
    if growth is not None:
        growth.pending, growth.next = [], Event(NEVER, NEVER)
        for window in growth.windows:
            window.is_awake, window.birth = True, NEVER  # one that is awake is not woken


class KeepingMixture(Mixture):
    """A mixture that keeps what members predicted of some of the rows.

    Parameters
    ----------
    mixture : Mixture
    is_kept : (n,) array of bool
        Of all rows to come.
    """

    def __init__(self, mixture: Mixture, is_kept: np.ndarray) -> None:
        super().__init__(mixture.n_members, mixture.n_classes, mixture.loss)
        self.restore(mixture.save_state())
        self.is_kept, self.rows = is_kept, 0
        self.kept: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # predictions, targets, weights

    def learn(self, members: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        chosen = self.is_kept[self.rows : self.rows + len(y)] & (weight > 0.0)
        self.kept.append((members[chosen], y[chosen], weight[chosen]))
        self.rows += len(y)
        return super().learn(members, y, weight)


def _learn(model: PoolModel, rows: Encoded, metrics: RunningMetrics) -> None:
    """Let a model learn rows, and add how it predicted each before."""
    for start in range(0, len(rows.y), BLOCK):
        block = rows.part(start, start + BLOCK)
        y: Any = block.y if model.task == "regression" else Labels(model.classes, block.y.astype(np.int64))
        predictions, losses = model.learn(block.X, y, block.weight)
        metrics.add(block.weight, losses, model.errors(y, predictions))
