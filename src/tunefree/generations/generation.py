"""A generation: a batch model of the rows up to its birth, which keeps learning.

It predicts with its model, and with the correction of each learner on its leaves (:mod:`tunefree.generations.leaves`).
"""

from __future__ import annotations

import copy
import threading
from functools import cached_property
from typing import Any

import numpy as np

from tunefree.core.numbers import power_below
from tunefree.core.part import FIXED, LEARNED, Part, argument, array, child, children, number
from tunefree.core.schema import COUNT, Record, Text
from tunefree.generations.columns import is_categorical
from tunefree.generations.inheritance import Inherited, inherited
from tunefree.generations.kinds import KINDS, LINEAR
from tunefree.generations.leaves import FrozenLeaves, LivingLeaves, learners_of, log_probabilities, objective_of
from tunefree.generations.linear import Linear
from tunefree.generations.problem import Problem, mean_and_dispersion, median_of, prepared, relative, spread_of
from tunefree.generations.trees import PackedTrees, Trees
from tunefree.losses.contract import has_log_link, is_robust

REST = 0.25  # part of a target's distance from the median that is expected as the residual of trees


class Birth:
    """The rows on which generations of some kinds are grown.

    ``rows``: the number of rows learned before, which is also the seed.
    ``clock``: see :class:`tunefree.pool.slots.Slot`.
    ``keys``: (c,) int64 of the columns, ascending.
    ``kept``: arrays of rows by name, see :meth:`tunefree.generations.reservoir.Reservoir.kept`.
    ``signs``: the signs of monotone columns, by features.
    """

    def __init__(
        self, rows: int, clock: int, keys: np.ndarray, kept: dict[str, Any], n_classes: int, loss: Any, signs: Any
    ) -> None:
        self.rows, self.clock, self.keys = rows, clock, keys
        self.lock = threading.Lock()  # of ``problem``, which the first kind that needs it computes
        settled = {"n_classes": n_classes, "loss": loss, "is_categorical": is_categorical(keys)}
        if signs:
            settled["signs"] = np.array([signs.get(key, 0) for key in keys.tolist()], np.int8)
        self.sample = Problem(**kept | settled | {"weights": kept["weights"] / kept["weights"].max()})
        self.observations = np.unique(self.sample.digests)  # or groups, whose targets a generation may remember

    @cached_property
    def problem(self) -> Problem:
        """The rows in the form that growers take."""
        return prepared(self.sample)


class Generation(Part):
    """A batch model that keeps learning, grown on the rows of a :class:`Birth` with inherited settings."""

    loss = argument()
    kind = number(FIXED, Text())
    clock = number(FIXED, COUNT)
    rows = number(FIXED, COUNT)
    n_classes = number(LEARNED, COUNT)
    n_late = number(LEARNED, COUNT)
    inherited: Inherited = number(FIXED, Record(Inherited))
    keys = array("int64", (None,), FIXED)
    observations = array("uint64", (None,), FIXED)
    model = child(
        lambda header, *_: Linear if header["kind"] == LINEAR else PackedTrees,
        FIXED,
        read=lambda part: PackedTrees.of(part.model) if isinstance(part.model, Trees) else part.model,
        write=lambda part, saved: setattr(part, "model", saved.trees() if isinstance(saved, PackedTrees) else saved),
    )
    living: list[Any] = children(
        lambda _, header: FrozenLeaves if "largest" in header else LivingLeaves,
        LEARNED,
        make=lambda generation, header: generation.blank_leaves(header),
    )

    def __init__(self, birth: Birth, kind: str, model: Any, inherited: Inherited) -> None:
        self.inherited, sample = inherited, birth.sample
        self.kind, self.clock, self.rows, self.keys = kind, birth.clock, birth.rows, birth.keys
        self.n_classes, loss = sample.n_classes, sample.loss
        self.observations, self.model, self.loss = birth.observations, model, loss
        self.n_late = 0  # classes added after the birth
        n_leaves, n_outputs = model.n_leaves, model.n_outputs
        learners = learners_of(KINDS[kind].wealth if sample.signs is None else 0.0)
        objective = objective_of(sample.n_classes, loss)
        if has_log_link(loss) and len(sample.targets):
            mean, dispersion = mean_and_dispersion(sample.targets, relative(sample.weights))
            objective.grain = power_below(dispersion * mean ** (2.0 - loss.power))
        elif is_robust(loss) and len(sample.targets):  # otherwise an outlier in the first row would become the unit
            spread = spread_of(sample.targets, sample.weights, median_of(sample.targets, sample.weights))
            objective.unit, objective.spread, objective.margin, objective.mass = spread, REST, REST, 1.0
        self.living = [LivingLeaves(*named, n_leaves, n_outputs, objective.copied()) for named in learners]

    @classmethod
    def grown(cls, birth: Birth, kind: str, before: Inherited, has_trials: bool) -> Generation | None:
        """A generation of a birth, which may try other settings (``has_trials``); None if there is nothing to learn."""
        if birth.sample.n_classes and len(np.unique(birth.sample.targets)) < 2:
            return None
        with birth.lock:
            problem = birth.problem
        if has_trials and KINDS[kind].begin_trial is not None:
            before = inherited(KINDS[kind], problem, birth.rows, before)
        before = before.for_rows(len(problem.targets))
        model = KINDS[kind].grow(problem, birth.rows, before.settings)
        return None if model is None else cls(birth, kind, model, before)

    def knows(self, digests: np.ndarray) -> np.ndarray:
        """A mask (n,) of rows that it may remember, as their observation or group is among the rows it was grown on."""
        is_known: np.ndarray = self.observations.take(self.observations.searchsorted(digests), mode="clip") == digests
        return is_known

    def predict_as_born(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The leaves (n, trees) of rows, and the predictions (versions, n, K) of the model without corrections."""
        leaves, born = self.model.apply(columns)
        if self.n_late:
            born = np.stack([log_probabilities(margins, self.n_classes, self.rows) for margins in born])
        return leaves, born

    def know(self, n_classes: int) -> None:
        """Add outputs up to ``n_classes`` classes; classes added after the birth are learned on the leaves."""
        for count in range(self.n_classes + 1, n_classes + 1):
            self.n_classes, self.n_late = count, self.n_late + 1
            for part in self.living:
                part.add_class(count)

    def frozen(self) -> Generation:
        """A copy with the present predictions that no longer learns, and remembers no rows."""
        copied = copy.copy(self)
        copied.observations, copied.living = self.observations[:0], [part.frozen() for part in self.living]
        return copied

    def as_born(self) -> Generation:
        """A copy without the corrections learned on the leaves."""
        copied = copy.copy(self)
        copied.living = []
        return copied

    def blank_leaves(self, header: dict[str, Any]) -> LivingLeaves | FrozenLeaves:
        """Leaves before any learning, with an output for each margin of the classes."""
        objective = objective_of(self.n_classes, self.loss)
        if "largest" in header:
            return FrozenLeaves.bare(objective=objective)
        n_outputs = self.n_classes if self.n_classes > 2 else 1
        return LivingLeaves(header["learner"], {}, self.model.n_leaves, n_outputs, objective)

    def check(self) -> None:
        """Raise a ModelError unless the model is sound."""
        self.model.check(len(self.keys))
