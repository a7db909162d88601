"""Every learner and the pool on one pass over the same rows: their progressive losses, and their costs.

The source is read and encoded once. All models learn each batch, one after the other, as each of them would in
:func:`tunefree.training.training.train`. Each is timed on its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import size_of
from tunefree.core.registry import names_in
from tunefree.core.rows import part
from tunefree.learners import ALL
from tunefree.losses import loss_of
from tunefree.model_files.plan import POOL, Plan
from tunefree.model_files.trained import Trained
from tunefree.pool.model import Model
from tunefree.pool.options import check_settings
from tunefree.pool.targets import Labels, RunningMetrics
from tunefree.stream.batch import BadRows, Batch, Reason
from tunefree.stream.source import Source
from tunefree.training.callbacks import Callback
from tunefree.training.one_pass import blank, end, learn
from tunefree.training.reading import begin, check_learned
from tunefree.training.roles import note_roles
from tunefree.training.targets import target_of, with_rates

REHEARSED = 64  # rows that another model of the same kind learns, so that code is compiled before the clock runs
RATES = 9  # learning rates that a careful user tries: half decades over four decades


class Point(NamedTuple):
    """A point of a curve."""

    rows: int  # seen so far
    loss: float  # mean over them
    recent: float  # mean over those since the last point

    @classmethod
    def between(cls, before: RunningMetrics, now: RunningMetrics) -> Point:
        """The point of sums so far, from those at the point before."""
        weight = now.weight - before.weight
        return cls(now.rows, now.mean_loss(), (now.loss - before.loss) / weight if weight > 0.0 else math.nan)


@dataclass
class Contestant:
    """A model in the comparison, and its losses so far.

    >>> contestant = Contestant("scinol2", blank(Model("regression", "scinol2")))
    >>> contestant.trained.progress.add(np.ones(70), np.array([2.0] * 64 + [1.0] * 6), np.zeros(70))
    >>> contestant.trained.progress.add(np.ones(5), np.zeros(5), np.zeros(5))
    >>> [point.rows for point in contestant.curve], contestant.curve[-1].recent
    ([64, 70, 75], 0.0)
    """

    name: str
    trained: Trained
    seconds: float = 0.0  # of learning alone

    @property
    def model(self) -> Model:
        """The model."""
        model: Model = self.trained.model
        return model

    @property
    def metrics(self) -> RunningMetrics:
        """Sums over all rows so far, each predicted before it was learned."""
        return self.trained.progress.progressive[0]

    @property
    def curve(self) -> list[Point]:
        """Losses so far, eight points in each doubling of the rows, and one at the end; none before the first row."""
        points = [RunningMetrics(), *self.trained.progress.points()]
        return [Point.between(*pair) for pair in pairwise(points) if pair[1].rows]

    def learn(self, batch: Batch, n_features: int) -> None:
        """Predict and learn rows, which is timed."""
        began = time.perf_counter()
        self.model.reserve(n_features)
        learn(self.trained, batch)
        self.seconds += time.perf_counter() - began

    def finish(self) -> None:
        """End the pass, which is timed: the pool grows its last trees."""
        began = time.perf_counter()
        end(self.trained)
        self.seconds += time.perf_counter() - began

    @property
    def bytes(self) -> int:
        """Memory of what has been learned."""
        linear_bytes = sum(size_of(member.state) for member in self.model.members)
        return linear_bytes + (0 if self.model.pool is None else self.model.pool.nbytes)


@dataclass
class Comparison:
    """Learners on the same rows."""

    plan: Plan
    task: str
    contestants: list[Contestant]
    left_out: dict[str, str]  # learners that cannot take part, and why
    rows: int = 0
    skipped: int = 0
    reading: float = 0.0  # seconds of reading and encoding
    oddities: list[Reason] = field(default_factory=list)  # what is odd about columns, and about rows that were used

    @property
    def loss(self) -> str:
        """The name of the loss."""
        return self.plan.loss or ("square" if self.task == "regression" else "logistic")

    @property
    def loss_name(self) -> str:
        """The name of the loss in tables."""
        return "log-loss" if self.loss == "logistic" else f"{self.loss} loss"

    @property
    def bytes(self) -> int:
        """Memory of all models."""
        return sum(contestant.bytes for contestant in self.contestants)

    @property
    def ranked(self) -> list[Contestant]:
        """The contestants in the order of their progressive losses, the least first."""
        return sorted(self.contestants, key=lambda contestant: contestant.metrics.mean_loss())

    @property
    def pool(self) -> Contestant | None:
        """The pool, or None if it does not take part."""
        return next((contestant for contestant in self.contestants if contestant.name == POOL), None)

    def leaders(self) -> dict[str, float]:
        """The pool's members with their weights in its prediction of a new row, the largest first."""
        if self.pool is None:
            return {}
        return dict(sorted(self.pool.model.predictor.shares().items(), key=lambda item: -item[1]))

    def sweeps(self) -> dict[str, tuple[int, float]]:
        """Passes and seconds of learning that it costs to try the learners one after the other.

        ``"learners"``: each learner once; ``"learners_and_rates"``: each once, or once for each of ``RATES``
        rates if it has a rate; ``"pool"``: the pool alone, if it takes part.
        """
        alone = [contestant for contestant in self.contestants if contestant.name != POOL]
        passes = [RATES if has_rate(contestant.name) else 1 for contestant in alone]
        seconds = [contestant.seconds for contestant in alone]
        tuned = sum(passes), sum(n * once for n, once in zip(passes, seconds, strict=True))
        sweeps = {"learners": (len(alone), sum(seconds)), "learners_and_rates": tuned}
        return sweeps if self.pool is None else sweeps | {POOL: (1, self.pool.seconds)}


def has_rate(learner: str) -> bool:
    """Whether a learner has a rate to choose.

    >>> has_rate("adagrad"), has_rate("scinol2")
    (True, False)
    """
    return ALL[learner].traits.rate is not None


def compare(
    source: Source, plan: Plan, learners: Sequence[str] | None = None, callback: Callback | None = None
) -> Comparison:
    """Train every learner, with its default settings, and the pool on one pass over a source.

    ``plan``: its learner and the learner's settings, its passes, its groups and its held-out share are ignored.
    ``learners``: names in ``learners.ALL``, and ``"pool"``; all of these if None. Those that cannot learn the task with
    the loss are left out.
    ``callback``: its methods get the comparison in the place of a training, and ``step`` the batch that all learned.
    Errors are those of :func:`tunefree.training.training.train`.

    >>> from tunefree.stream.source import open_source
    >>> table = {"age": [20.0, 60.0] * 100, "rich": ["no", "yes"] * 100}
    >>> comparison = compare(open_source(table), Plan(target="rich"), ["ogd", "scinol2"])
    >>> [contestant.name for contestant in comparison.ranked], comparison.rows
    (['scinol2', 'ogd'], 200)
    """
    callback = callback or Callback()
    names = list(dict.fromkeys(names_in(learners) or (*ALL, POOL)))
    for name in names:
        if name != POOL and name not in ALL:
            raise ModelError(f"unknown learner {name!r}; choose among {', '.join((POOL, *ALL.search()))}")
    bad = plan.bad_rows()
    began = time.perf_counter()
    reading = begin(source, plan, bad)
    note_roles(reading, bad)
    task, classes, encoder, batches, *_ = reading
    comparison = _gathered(plan, task, names, classes, encoder.n_features)
    comparison.reading = time.perf_counter() - began
    callback.begin(comparison, source)
    try:
        _one_pass(comparison, encoder, batches, bad, callback)
    finally:
        callback.end(comparison)
    check_learned(comparison.contestants[0].model, comparison.rows, source)
    for contestant in comparison.contestants:
        contestant.finish()
    return comparison


def _gathered(plan: Plan, task: str, names: list[str], classes: list[Any], n_features: int) -> Comparison:
    """A comparison of those that can learn the task, with the reasons why others cannot."""
    loss_of(task, plan.loss)
    contestants, left_out = [], {}
    for name in names:
        try:
            check_settings(task, name, plan.loss, False, {}, "raw")
        except ModelError as error:
            left_out[name] = str(error).split(";")[0]
        else:
            contestants.append(Contestant(name, blank(_new(plan, task, name, classes, n_features))))
    if not contestants:
        raise ModelError(f"no learner is left: {'; '.join(left_out.values())}; name others with `learner`")
    return Comparison(plan, task, contestants, left_out)


def _new(plan: Plan, task: str, name: str, classes: list[Any], n_features: int) -> Model:
    return Model(task, name, plan.loss, classes=list(classes), n_features=n_features)


def _one_pass(comparison: Comparison, encoder: Any, batches: Iterator[Batch], bad: BadRows, callback: Any) -> None:
    began = time.perf_counter()
    for batch in batches:
        comparison.reading += time.perf_counter() - began
        batch = with_rates(comparison.plan, batch._replace(target=target_of(comparison.task, batch)))
        for contestant in comparison.contestants if len(batch.weight) and not comparison.rows else ():
            _rehearse(comparison, contestant, batch, encoder.n_features)
        for contestant in comparison.contestants:
            contestant.learn(batch, encoder.n_features)
        comparison.rows, comparison.skipped = comparison.rows + len(batch.weight), bad.tally.count
        comparison.oddities = bad.tally.oddities()
        callback.step(comparison, batch)
        began = time.perf_counter()


def _rehearse(comparison: Comparison, contestant: Contestant, batch: Batch, n_features: int) -> None:
    """Let another model of the kind learn a few rows, so that the time of learning does not include compilation."""
    y, n = batch.target, min(REHEARSED, len(batch.weight))
    model = _new(comparison.plan, comparison.task, contestant.name, contestant.model.classes, n_features)
    model.learn(part(batch.rows, 0, n), Labels(y.values, y.codes[:n]) if isinstance(y, Labels) else y[:n], np.ones(n))
    model.freeze()
