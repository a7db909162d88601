"""Every learner and the pool on one pass over the same rows: their progressive losses, and their costs.

The source is read and encoded once. All models learn each batch, one after the other, as each of them would in
:func:`tunefree.training.training.train`. Each is timed on its own.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import size_of
from tunefree.core.rows import part
from tunefree.learners import ALL, POOL
from tunefree.losses import loss_of
from tunefree.model_files.plan import Plan
from tunefree.model_files.trained import Trained
from tunefree.pool.model import Model
from tunefree.pool.options import check_settings
from tunefree.pool.targets import Labels, RunningMetrics
from tunefree.stream.batch import Batch, Reason
from tunefree.stream.source import Source
from tunefree.training.callbacks import Callback
from tunefree.training.one_pass import blank, end, learn
from tunefree.training.reading import begin, check_learned
from tunefree.training.roles import note_roles
from tunefree.training.targets import target_of, with_rates

REHEARSED = 64  # rows that another model of the same kind learns, so that code is compiled before the clock runs
RATES = 9  # learning rates that a careful user tries: half decades over four decades


@dataclass
class Contestant:
    """A model in the comparison, and its losses so far."""

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
    def bytes(self) -> int:
        """Memory of the model."""
        linear_bytes = sum(size_of(member.state) for member in self.model.linear.members)
        return linear_bytes + (0 if self.model.pool is None else self.model.pool.nbytes)

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
    oddities: list[Reason] = field(default_factory=list)  # odd columns, and odd rows that were used

    @property
    def loss(self) -> str:
        """The name of the loss."""
        return self.plan.loss or ("square" if self.task == "regression" else "logistic")

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

    def learn(self, batch: Batch, n_features: int) -> None:
        """Let all predict and learn rows."""
        for contestant in self.contestants:
            contestant.learn(batch, n_features)
        self.rows += len(batch.weight)

    def sweeps(self) -> dict[str, tuple[int, float]]:
        """Passes and seconds of learning that it costs to try the learners one after the other.

        ``"learners"``: each learner once; ``"learners_and_rates"``: each once, or once for each of ``RATES``
        rates if it has a rate; ``"pool"``: the pool alone, if it takes part.
        """
        alone = [contestant for contestant in self.contestants if contestant.name != POOL]
        passes = [1 if ALL[contestant.name].traits.rate is None else RATES for contestant in alone]
        seconds = [contestant.seconds for contestant in alone]
        tuned = sum(passes), sum(n * once for n, once in zip(passes, seconds, strict=True))
        sweeps = {"learners": (len(alone), sum(seconds)), "learners_and_rates": tuned} if alone else {}
        return sweeps if self.pool is None else sweeps | {POOL: (1, self.pool.seconds)}


def compare(
    source: Source, plan: Plan, learners: Sequence[str] | None = None, callback: Callback | None = None
) -> Comparison:
    """Train every learner, with its default settings, and the pool on one pass over a source.

    ``plan``: its learner and the learner's settings, its passes and its groups are ignored.
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
    names, callback = _names(learners), callback or Callback()
    bad, began = plan.bad_rows(), time.perf_counter()
    reading = begin(source, plan, bad)
    note_roles(reading, bad)
    task, classes, encoder, batches, *_ = reading
    left_out = _left_out(plan, task, names)

    def model_of(name: str) -> Model:
        return Model(task, name, plan.loss, classes=list(classes), n_features=encoder.n_features)

    contestants = [Contestant(name, blank(model_of(name))) for name in names if name not in left_out]
    comparison = Comparison(plan, task, contestants, left_out)
    callback.begin(comparison, source)
    try:
        for batch in batches:
            comparison.reading += time.perf_counter() - began
            batch = with_rates(plan, batch._replace(target=target_of(task, batch)))
            if len(batch.weight) and not comparison.rows:
                for contestant in contestants:
                    _rehearse(model_of(contestant.name), batch)
            comparison.learn(batch, encoder.n_features)
            comparison.skipped, comparison.oddities = bad.tally.count, bad.tally.oddities
            callback.step(comparison, batch)  # type: ignore[arg-type]
            began = time.perf_counter()
    finally:
        callback.end(comparison)
    check_learned(contestants[0].model, comparison.rows, bad.tally, source)
    for contestant in contestants:
        contestant.finish()
    return comparison


def _names(learners: Sequence[str] | None) -> list[str]:
    """The names of those to compare."""
    names = list(dict.fromkeys(learners or (*ALL, POOL)))
    for name in names:
        if name != POOL and name not in ALL:
            raise ModelError(f"unknown learner {name!r}; choose among {', '.join((POOL, *ALL.search()))}")
    return names


def _left_out(plan: Plan, task: str, names: list[str]) -> dict[str, str]:
    """The learners that cannot learn the task, and the reasons."""
    loss_of(task, plan.loss)
    left_out = {}
    for name in names:
        try:
            check_settings(task, name, plan.loss, False, {}, "raw")
        except ModelError as error:
            left_out[name] = str(error).split(";")[0]
    if len(left_out) == len(names):
        raise ModelError(f"no learner is left: {'; '.join(left_out.values())}; name others with `learner`")
    return left_out


def _rehearse(model: Model, batch: Batch) -> None:
    """Let a model learn a few rows and end, so that the time of the others does not include compilation."""
    y, n = batch.target, min(REHEARSED, len(batch.weight))
    model.learn(part(batch.rows, 0, n), Labels(y.values, y.codes[:n]) if isinstance(y, Labels) else y[:n], np.ones(n))
    model.freeze()
