"""What the members of a pool predict of one row, in arrays that are made once.

Of one row kernels compute little: most of the time would go to making arrays, and to checking them in some thirty
calls. Here the arrays of a row are made once, and the calls of kernels on them are three programs
(:mod:`tunefree.core.programs`), with the same functions of arrays between them as in
:meth:`tunefree.pool.members.Members.predict`. So predictions have the same bits. What is not foreseen here, such as
members of kernels, is left to that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from tunefree.core.programs import Call, Program
from tunefree.core.rows import Block, Rows, reach
from tunefree.generations import bins, growing, linear, trees
from tunefree.generations.columns import digests_of
from tunefree.generations.leaves import LivingLeaves, add_weights, finite_sum, log_probabilities
from tunefree.generations.linear import STRENGTHS, Linear
from tunefree.model import passes
from tunefree.model.linear_group import LinearGroup
from tunefree.model.passes import score_rows
from tunefree.model.views import KERNELS
from tunefree.pool.frozen import FOLLOWING
from tunefree.pool.growth import Growth
from tunefree.pool.members import Members
from tunefree.pool.slots import Slot

ROOM = 64  # for codes and words at least
LIKE = 2  # rows that are predicted like others before arrays are made


class LinearRow:
    """A row as linear members see it, and what they predict.

    Parameters
    ----------
    group : LinearGroup
    X : Block
        A row like those to come.
    """

    def __init__(self, group: LinearGroup, X: Block) -> None:
        p = X.numbers.shape[1]
        self.n_features, self.states = group.n_features, [member.state for member in group.members]
        self.group, self.first, self.room = group, 1 + p, max(ROOM, 2 * (X.codes.size + X.values.size))
        self.columns, self.constant = X.columns.tobytes(), X.constant
        names = ["raw", *sorted({member.setting.view for member in group.members} - {"raw"})]
        self.indices, self.end = np.zeros(self.first + self.room, np.uint32), np.zeros(1, np.int64)
        self.indices[1 : self.first] = X.columns
        self.values = np.zeros((len(names), self.first + self.room))  # in each view
        self.values[:, 0] = X.constant
        self.pointers, self.words = np.zeros(2, np.int64), np.zeros(self.room)
        self.shown, self.target, self.weight = np.zeros((len(names), self.room)), np.zeros(1), np.zeros(1)
        numbers = [of_view[1 : self.first].reshape(1, p) for of_view in self.values]
        self.views = [group.views[name] for name in names[1:]]
        self.seeing = Program(
            [
                (
                    KERNELS[type(view)],
                    view,
                    self.weight,
                    numbers[0],
                    self.pointers,
                    self.words,
                    numbers[k],
                    self.shown[k],
                )
                for k, view in enumerate(self.views, 1)
            ]
        )
        self.latest = group.weights()
        self.read = [(weights.copy(), units.copy()) for weights, units in self.latest]
        self.margins = np.empty((len(group.members), 1, group.n_outputs))
        self.start, of_views = np.zeros(1, np.int64), dict(zip(names, self.values, strict=True))
        seen = [of_views[member.setting.view] for member in group.members]
        rows = [Rows(self.start, self.end, self.indices, values) for values in seen]
        scored = zip(self.read, rows, self.margins, strict=True)
        self.scoring = Program([(score_rows, *read, row, margins) for read, row, margins in scored])
        self.objectives = [member.arrays for member in group.members]
        self.learning = Program([*self._learning(rows)]) if group.meetings is None else None

    def _learning(self, rows: list[Rows]) -> Iterator[Call]:
        """The calls in which members learn the row."""
        for member, row, predictions in zip(self.group.members, rows, self.margins, strict=True):
            of_row = row, self.target, self.weight, predictions
            yield passes.call_on(member.state, member.arrays, of_row, passes.NOTHING_MET, member.offsets)

    def is_like(self, X: Block) -> bool:
        """Whether a row is like the one that this was made for, and members have the same memory as then."""
        is_alike = X.columns.tobytes() == self.columns and X.constant == self.constant
        if not is_alike or self.room < X.codes.size + X.values.size or self.n_features != self.group.n_features:
            return False
        memory = zip(self.group.members, self.states, self.objectives, strict=True)
        return all(member.state is state and member.arrays is arrays for member, state, arrays in memory)

    def _know_weights(self) -> None:
        """Take over the weights of members where they have changed."""
        weights = self.group.weights()
        if weights is not self.latest:
            for new, old in zip(weights, self.read, strict=True):
                old[0][:], old[1][:] = new
            self.latest = weights

    def write(self, X: Block, weight: float = 0.0) -> None:
        """Write down a row as the views show it, which learn it if it has a weight."""
        self.weight[0] = weight
        raw, first, n_words = self.values[0], self.first, X.values.size
        raw[1:first] = X.numbers[0]
        last = first + X.codes.size
        if last > first:
            self.indices[first:last] = X.codes[0]
            self.values[:, first:last] = X.codes[0] > 0
        self.end[0], self.pointers[1] = last + n_words, n_words
        if n_words:
            words = slice(last, last + n_words)
            self.indices[words], raw[words] = X.features, X.values
            self.words[:n_words] = X.values
        self.seeing.run()
        if n_words:
            self.values[1:, words] = self.shown[1:, :n_words]

    def predict(self, X: Block) -> np.ndarray:
        """What each member predicts of a row, (m, K), NaN where that is no finite number."""
        self._know_weights()
        self.write(X)
        self.scoring.run()
        if self.group.members[0].objective.task == "classification":
            of_members = self.margins[:, 0]
        else:
            margins = zip(self.group.members, self.margins, strict=True)
            of_members = np.concatenate([member.objective.predictions_of(of_member) for member, of_member in margins])
        return _finite(of_members)

    def learn(self, X: Block, target: float, weight: float) -> np.ndarray:
        """Let members learn a row; returns what each predicted before, (m, K), NaN where that is no finite number."""
        assert self.learning is not None
        self.write(X, weight)
        self.target[0] = target
        self.learning.run()
        end = int(self.end[0])
        row = Rows(self.start.copy(), self.end.copy(), self.indices[:end].copy(), self.values[0, :end].copy())
        self.group.has_learned_row(row, self.weight)
        return _finite(self.margins[:, 0])


def _finite(predictions: np.ndarray) -> np.ndarray:
    """Predictions (m, K) of members, NaN where one is no finite number."""
    return np.where(np.isfinite(predictions).all(axis=1, keepdims=True), predictions, np.nan)


class GenerationsRow:
    """A row as generations see it, and what they predict.

    Parameters
    ----------
    growth : Growth
        Its generations know all classes since their birth.
    slots : dict of Slot to int
        The places of the slots in the mixture.
    """

    def __init__(self, growth: Growth, slots: dict[Slot, int]) -> None:
        awake, self.has_classes = list(growth.generations()), growth.n_classes > 0
        of_trees = [named for named in awake if not isinstance(named[3].model, Linear)]
        of_linear = [named for named in awake if isinstance(named[3].model, Linear)]
        of_columns = [
            np.array(growth.columns.places(of.keys), np.intp)[of.model.sources] for *_, of in of_trees + of_linear
        ]
        edges = [*accumulate(map(len, of_columns), initial=0)]
        self.sources, self.gathered = np.concatenate([np.zeros(0, np.intp), *of_columns]), np.empty(edges[-1])
        columns = [self.gathered[start:stop].reshape(1, -1) for start, stop in pairwise(edges)]
        self.trees, self.linear = [of.model for *_, of in of_trees], [of.model for *_, of in of_linear]
        self.n_outputs = max(map(growing.n_outputs, self.trees + self.linear), default=1)
        self.walking = Program([*self._walking(columns)])
        self.living = [(part, tree) for tree, (*_, of) in enumerate(of_trees) for part in of.living]
        self.following = Program([*self._following(), *self._scoring()])
        self.places = self._places(of_trees, of_linear, slots)

    def _walking(self, columns: list[np.ndarray]) -> Iterator[Call]:
        """The calls by which the row walks through trees."""
        shape = len(self.trees), 1, self.n_outputs
        self.starts, self.sums, self.margins = np.empty(shape), np.empty(shape), np.empty(shape)
        self.averaged = [place for place, of in enumerate(self.trees) if of.is_averaged]
        averaged = [self.trees[place] for place in self.averaged]
        self.n_averaged = np.array([[max(len(of.roots), 1)] for of in averaged])
        self.least = np.array([[of.least] for of in averaged])
        self.leaves = [np.empty((1, len(of.roots)), np.int32) for of in self.trees]
        for tree, (of, leaves, sums) in enumerate(zip(self.trees, self.leaves, self.sums, strict=True)):
            self.starts[tree], codes = of.start, np.empty(columns[tree].shape, np.uint8)
            yield bins.call_on(of.bins, columns[tree], codes)
            yield trees.call_on(of, codes, leaves, sums)

    def _following(self) -> Iterator[Call]:
        """The calls by which what learns on leaves predicts."""
        self.added, self.weight = np.zeros((len(self.living), 1, self.n_outputs)), np.zeros(1)
        self.targets = np.zeros((len(self.living), 1))
        self.trees_of_living, rest = [tree for _, tree in self.living], np.zeros((1, self.n_outputs))
        self.are_living = all(isinstance(part, LivingLeaves) for part, _ in self.living)
        self.are_complete = self.are_living and not any(part.predicts_rest for part, _ in self.living)
        for (part, tree), target, written in zip(self.living, self.targets, self.added, strict=True):
            if isinstance(part, LivingLeaves):
                offsets = rest if part.predicts_rest else self.margins[tree]
                yield part.call_on(self.leaves[tree], offsets, target, self.weight, written)
            elif len(part.levels):
                yield add_weights, part.levels, self.leaves[tree], written

    def _scoring(self) -> Iterator[Call]:
        """The calls by which linear generations predict."""
        edges = [*accumulate((len(of.sources) for of in self.linear), initial=0)]
        self.columns = self.gathered[len(self.gathered) - edges[-1] :].reshape(1, -1)
        self.standards = [np.concatenate(parts) for parts in zip(*(of[1:4] for of in self.linear), strict=True)]
        self.features = [(np.ones((1, 1 + stop - start)), start, stop) for start, stop in pairwise(edges)]
        self.scores = np.zeros((len(self.linear), len(STRENGTHS), 1, self.n_outputs))
        for of, (features, _, _), scores in zip(self.linear, self.features, self.scores, strict=True):
            yield linear.call_on(of, features, scores)

    def _places(self, of_trees: list[Any], of_linear: list[Any], slots: dict[Slot, int]) -> list[int | None]:
        """The places of what is predicted, in its order."""
        of_slots = [(*named, 0) for *named, _ in of_trees]
        of_slots += [(*named, version) for *named, of in of_trees for version, _ in enumerate(of.living, 1)]
        of_slots += [(*named, version) for *named, _ in of_linear for version in range(len(STRENGTHS))]
        return [slots.get(Slot._make(named)) for named in of_slots]

    def follow(self, matrix: np.ndarray, y: float = 0.0, weight: float = 0.0) -> np.ndarray:
        """Margins, or numbers, (predictions, K) of a row (1, c) under the keys of the columns so far.

        It is learned after that if it has a weight; ``y`` is the number of its class, or a number.
        """
        self.weight[0] = weight
        np.take(matrix[0], self.sources, out=self.gathered)
        self.sums[:], self.added[:], self.scores[:] = self.starts, 0.0, 0.0
        self.walking.run()
        self.margins[:] = self.sums
        if len(self.averaged):
            means = self.sums[self.averaged, 0] / self.n_averaged
            self.margins[self.averaged, 0] = trees.margins_of_means(self.trees[self.averaged[0]], means, self.least)
        if self.linear:
            of_columns = linear.design(self.columns, slice(None), *self.standards)[0, 1:]
            for features, start, stop in self.features:
                features[0, 1:] = of_columns[start:stop]
        if weight > 0.0:
            self._write_targets(y)
        self.following.run()
        if weight > 0.0:
            shape = -1, self.n_outputs
        return np.concatenate([part.reshape(shape) for part in (self.margins, self._of_leaves(), self.scores)])

    def _write_targets(self, y: float) -> None:
        """Write down the target of a row as learners on leaves take it."""
        if self.are_complete:
            self.targets[:] = y if self.n_outputs > 1 or not self.has_classes else 1.0 if y == 1.0 else -1.0
        else:
            with np.errstate(over="ignore"):
                self.targets[:] = np.clip(y - self.margins[self.trees_of_living, 0], -1e300, 1e300)

    def _of_leaves(self) -> np.ndarray:
        """What learners on leaves predict, (learners, K)."""
        if self.are_complete:
            return self.added
        margins = self.margins[self.trees_of_living]
        if self.are_living:
            return finite_sum(self.added, margins)
        parts = zip(self.living, margins, self.added, strict=True)
        return np.concatenate([part.corrected(of_trees, sums) for (part, _), of_trees, sums in parts])


class SingleRow:
    """A row, and what members and mixture predict of it.

    Parameters
    ----------
    pool : Pool
        Its members are those of :func:`is_foreseen`.
    X : Block
        A row like those to come.
    """

    def __init__(self, pool: Any, X: Block) -> None:
        members: Members = pool.members
        self.members, self.linear = members, LinearRow(members.ensemble.linear, X)
        growth = members.growth if members.growth is not None and members.growth.awake else None
        self.generations = None if growth is None else GenerationsRow(growth, members.slots)
        places = [*members.online_places, *([] if self.generations is None else self.generations.places)]
        self.kept = [k for k, place in enumerate(places) if place is not None]
        self.places = [place for place in places if place is not None]
        self.written = members.asleep(1)
        self.mixed, frozen = np.empty((1, self.written.shape[2])), pool.frozen
        self.born: np.ndarray | None = None  # predictions of generations as they were born
        call = pool.mixture.call_on(self.written, self.mixed, pool.has_finished)
        if pool.has_finished and frozen.choice != FOLLOWING:
            self.born, self.places_born = np.empty((1, len(frozen.places), self.written.shape[2])), frozen.places
            call = frozen.mixture.call_on(self.born, self.mixed, is_base=frozen.choice != 0)
        self.mixing = Program([call])

    def predict(self, X: Block, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What members predict, (1, M, K), and the mixture of that, (1, K): arrays that the next row overwrites."""
        predicted = self.linear.predict(X)
        self._write([predicted] if self.generations is None else [predicted, self.generations.follow(matrix)])
        if self.born is not None:
            self.born[:] = self.written[:, self.places_born]
        self.mixing.run()
        return self.written, self.mixed

    def learn(self, X: Block, y: float, weight: float, evidence: float, matrix: np.ndarray) -> np.ndarray:
        """Let members learn a row, generations with its weight as evidence; what they predicted before, (1, M, K)."""
        has_two = self.members.loss is None and self.linear.group.n_outputs == 1
        predicted = [self.linear.learn(X, (1.0 if y == 1.0 else -1.0) if has_two else y, weight)]
        if self.generations is not None:
            predicted.append(self.generations.follow(matrix, y, evidence))
        self._write(predicted)
        return self.written.copy()

    def _write(self, predicted: list[np.ndarray]) -> None:
        """Write down what linear members predict, and then generations, each (predictions, K)."""
        of_members = np.concatenate(predicted)[self.kept]
        if self.members.loss is None:
            of_members = log_probabilities(of_members, self.members.width, 0)  # which know all classes
        self.written[0, self.places] = of_members


class SingleRows:
    """Predicts single rows of a pool, as long as its members stay what they are; another thread meanwhile waits not."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._row: SingleRow | None = None
        self._held, self._key, self._met = list[Any](), tuple[Any, ...](), 0

    def __deepcopy__(self, memo: dict[int, Any]) -> SingleRows:
        return SingleRows()

    def predict(self, pool: Any, X: Block) -> np.ndarray | None:
        """The mixture's prediction (1, K) of a row; None if it is to be predicted like others.

        That is so of the first rows after members changed: arrays are made for more than a few rows.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if not self._is_ready(pool, X) or self._row is None:
                return None
            growth = pool.members.growth
            matrix = pool.members.matrix(X)
            predictions, mixed = self._row.predict(X, matrix)
            if growth is not None and not (pool.has_finished or pool.members.has_groups):
                pool.waiting.keep(digests_of(matrix, growth.columns.keys), predictions)
            return mixed.copy()
        finally:
            self._lock.release()

    def learn(
        self, pool: Any, X: Block, y: float, weight: float, evidence: float, matrix: np.ndarray
    ) -> np.ndarray | None:
        """Let members learn a row, as :meth:`tunefree.pool.members.Members.learn` does; None if that is to do it.

        ``weight`` is relative to those of rows before; ``evidence`` is the same, or 0 where a member may know the row.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if not self._is_ready(pool, X) or self._row is None or self._row.linear.learning is None:
                return None
            return self._row.learn(X, y, weight, evidence, matrix)
        finally:
            self._lock.release()

    def _is_ready(self, pool: Any, X: Block) -> bool:
        """Whether there are arrays for this row, after making them where they are due."""
        held = _held(pool)
        key = pool.has_finished, pool.members.width, *map(id, held)
        if key != self._key:
            self._key, self._held, self._met, self._row = key, held, 0, None
        if not is_foreseen(pool, X):
            return False
        if self._row is None or not self._row.linear.is_like(X):
            self._met += 1
            self._row = SingleRow(pool, X) if self._met > LIKE else None
            self._met = 0 if self._met > LIKE else self._met
        return self._row is not None


def is_foreseen(pool: Any, X: Block) -> bool:
    """Whether a row can be predicted here: by linear members and generations that know all its features and classes."""
    linear, growth = pool.members.ensemble.linear, pool.members.growth
    has_slots = linear.meetings is not None and linear.meetings.first and reach(X) > linear.meetings.first
    views = {member.setting.view for member in linear.members} - {"raw"}
    if pool.members.ensemble.kernel_banks or has_slots or not linear.members or views - linear.views.keys():
        return False
    return growth is None or not any(generation.n_late for *_, generation in growth.generations())


def _held(pool: Any) -> list[Any]:
    """What arrays and calls are made for: they are made anew where one of these is another object, or a class came."""
    linear, growth = pool.members.ensemble.linear, pool.members.growth
    generations = () if growth is None else (generation for *_, generation in growth.generations())
    return [pool.mixture.corrections, pool.frozen.losses, linear.members, *linear.views.values(), growth, *generations]
