"""The phases of learning: the common start on a sample of all shards, then each shard from that start, then the end.

The start is an ordinary pool that learns rows in random order, so it needs no windows of latest rows. The last part of
the sample is learned after the last generation was born, so that the learners on its leaves have begun before the
shards. In shards, the online members and the newest generation of each kind learn. No generation is born, and the
weights of the mixture stay constant, since members learn independently of them. After joining, the pool learns some
last rows of all shards. From these rows the mixture learns new weights of the members: if files are sorted by class,
learners that adapted to their shard are worse than before.

The start and the end are tasks for which all shards wait, so they use all cores of their machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import threads
from tunefree.distributed import joining
from tunefree.distributed.joining import Proved, Statistics
from tunefree.distributed.rows import Beginning, Prepared, gathered
from tunefree.generations.clocks import LATE
from tunefree.pool.first_pass import FirstPassRecord
from tunefree.pool.growth import Growth
from tunefree.pool.model import Model, restored
from tunefree.pool.targets import Labels, RunningMean, RunningMetrics
from tunefree.stream.batch import Batch
from tunefree.training.one_pass import blank, one_pass

BLOCK = 2**13  # rows that a model learns at a time
ModelState = tuple[dict[str, np.ndarray], dict[str, Any]]


class Start(NamedTuple):
    """A model and its metrics so far."""

    model: ModelState
    metrics: dict[str, Any]  # progressive metrics: each row is predicted before it is learned


class Passed(NamedTuple):
    """Sums over shards of their results."""

    rows: int  # number of rows with a weight above 0
    mass: float  # total weight of these rows, in the unit of the pool
    n_known: int  # increase of the pool's ``n_known``
    metrics: dict[str, Any]
    learners: dict[str, Statistics]
    proved: Proved | None  # None without rows

    def plus(self, other: Passed) -> Passed:
        """Return the sums over the shards of both."""
        if self.proved is None or other.proved is None:
            return other if self.proved is None else self
        counts = self.rows + other.rows, self.mass + other.mass, self.n_known + other.n_known
        metrics = {name: value + other.metrics[name] for name, value in self.metrics.items()}
        known = [name for name in self.learners if name in other.learners]  # shards with too wide rows have no trees
        learners = {name: self.learners[name].plus(other.learners[name]) for name in known}
        return Passed(*counts, metrics, learners, self.proved.plus(other.proved))

    @classmethod
    def restored(cls, saved: Sequence[Any]) -> Passed:
        """Restore sums from the nested lists of a journal."""
        total = cls(*saved)
        learners = {name: Statistics(*statistics) for name, statistics in total.learners.items()}
        return total._replace(learners=learners, proved=None if total.proved is None else Proved(*total.proved))


def plus(*parts: Passed) -> Passed:
    """Return the sum of several parts, added in order."""
    return reduce(Passed.plus, parts)


def started(
    beginning: Beginning, classes: Sequence[Any], n_features: int, sample: Sequence[Batch], is_all: bool
) -> Start:
    """Learn the common start; if the sample ``is_all`` rows, this equals training on one machine in the rows' order."""
    known_classes = list(beginning.classes if is_all else classes)
    model = Model(beginning.task, "pool", beginning.plan.loss, classes=known_classes, n_features=n_features)
    metrics, rows = RunningMetrics(), gathered(sample)
    with threads.one_for_products():
        if is_all:
            _learn(model, rows, classes, metrics)
            model.freeze()
        else:
            for growth in _growths(model):
                for window in growth.windows:
                    window.stop()
            rows, first = shuffled(rows), len(rows.weight) - len(rows.weight) // LATE
            _learn(model, rows.part(0, first), classes, metrics)
            model.freeze()
            for growth in _growths(model):
                growth.stop()
            _learn(model, rows.part(first, len(rows.weight)), classes, metrics)
    return Start(model.save_state(), asdict(metrics))


def following(start: Start) -> ModelState:
    """Return the initial state of shards: the members of the start, without records of the rows so far."""
    model = restored(*start.model)
    targets = model.record.targets
    n_slots = model.linear.meetings.n_slots(model.n_features)
    model.first_pass = FirstPassRecord(model.options, n_slots, model.n_outputs)
    model.first_pass.targets = targets
    for growth in _growths(model):
        growth.only_newest()
        for *_, generation in list(growth.generations())[1:]:
            generation.observations = generation.observations[:0]  # all kinds were grown on the same rows
    model.pool.copies.forget()
    return model.save_state()


def learned(shard: Prepared, state: ModelState) -> Passed:
    """Learn a shard from the state of :func:`following`, and return its statistics."""
    rows = shard.rest
    if not len(rows.weight):
        return Passed(0, 0.0, 0, {}, {}, None)
    model, metrics = restored(*state), RunningMetrics()
    pool, targets = model.pool, RunningMean(**asdict(model.record.targets))
    pool.only_members_learn = True
    before_shard = pool.rows, pool.relative.mass, pool.n_known
    before = joining.begin(model)
    with threads.at_most(1), threads.one_for_products():
        _learn(model, rows, model.classes, metrics)
    counts = pool.rows - before_shard[0], pool.relative.mass - before_shard[1], pool.n_known - before_shard[2]
    sums = joining.proved(model.record, model.n_features, targets)
    return Passed(*counts, asdict(metrics), joining.learned(model, before, max(counts[0], 1)), sums)


def joined(start: Start, total: Passed, last: Sequence[Batch]) -> Start:
    """Add the results of all shards to the common start, learn the last rows, and finish the pass.

    Sums over rows are averaged, or added if the last rows are then predicted better. The record of the averaged model
    is used in both cases, because it is not selected by the rows that it predicts.
    """
    rows = shuffled(gathered(last))
    with threads.one_for_products():
        means, means_metrics = _joined_model(start, total, rows, adds_sums=False)
        sums, sums_metrics = _joined_model(start, total, rows, adds_sums=True)
    model = sums if sums_metrics.loss < means_metrics.loss else means
    model.first_pass = means.record
    model.pool.has_finished = True
    for growth in _growths(model):
        growth.resume(model.pool.rows)
    passed = [start.metrics, asdict(means_metrics), *([total.metrics] if total.metrics else [])]
    return Start(model.save_state(), {name: sum(metrics[name] for metrics in passed) for name in start.metrics})


def _joined_model(start: Start, total: Passed, rows: Batch, adds_sums: bool) -> tuple[Model, RunningMetrics]:
    """Join a model and let it learn the last rows; return it with the metrics of these rows."""
    model, metrics = restored(*start.model), RunningMetrics()
    if total.proved is not None:
        joining.add_proved(model.record, total.proved, model.n_features, model.n_outputs)
        joining.join(model, total.learners, total.rows, adds_sums)
        pool = model.pool
        pool.relative.rows += total.rows
        pool.relative.mass += total.mass
        pool.n_known += total.n_known
    for growth in _growths(model):
        growth.stop()
    _learn(model, rows, model.classes, metrics)
    return model, metrics


def shuffled(rows: Batch) -> Batch:
    """Shuffle rows with a constant seed, so that the order of files is not learned."""
    return rows.at(np.random.default_rng(0).permutation(len(rows.weight)))


def _growths(model: Model) -> list[Growth]:
    """Return the growth of the generations of a model in a list; empty if rows are too wide for trees."""
    return [] if model.pool.members.growth is None else [model.pool.members.growth]


def _learn(model: Model, rows: Batch, classes: Sequence[Any], metrics: RunningMetrics) -> None:
    """Train a model on rows whose targets are indices into ``classes``, and add the losses to the metrics."""
    trained, n = blank(model), len(rows.weight)
    trained.progress.progressive = [metrics]
    blocks = (rows.part(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK))
    if model.task == "classification":
        blocks = (block._replace(target=Labels(list(classes), block.target.astype(np.int64))) for block in blocks)
    one_pass(trained, blocks)
