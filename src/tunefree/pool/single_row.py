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
from tunefree.losses.kinds import arrays_of
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
        self.group, self.first, self.room = group, 1 + p, max(ROOM, 2 * (X.codes.size + X.values.size))
        self.columns, self.constant = X.columns.tobytes(), X.constant
        names = ["raw", *sorted({member.setting.view for member in group.members} - {"raw"})]
        self.indices, self.end = np.zeros(self.first + self.room, np.uint32), np.zeros(1, np.int64)
        self.indices[1 : self.first] = X.columns
        self.values = np.zeros((len(names), self.first + self.room))  # in each view
        self.values[:, 0] = X.constant
        self.pointers, self.words = np.zeros(2, np.int64), np.zeros(self.room)
        self.shown, nothing = np.zeros((len(names), self.room)), np.zeros(1)
        numbers = [of_view[1 : self.first].reshape(1, p) for of_view in self.values]
        self.views = [group.views[name] for name in names[1:]]
        self.seeing = Program(
            [
                (KERNELS[type(view)], view, nothing, numbers[0], self.pointers, self.words, numbers[k], self.shown[k])
                for k, view in enumerate(self.views, 1)
            ]
        )
        self.latest = group.weights()
        self.read = [(weights.copy(), units.copy()) for weights, units in self.latest]
        self.margins = np.empty((len(group.members), 1, group.n_outputs))
        self.calls = list(self._scoring(dict(zip(names, self.values, strict=True))))

    def _scoring(self, values: dict[str, np.ndarray]) -> Any:
        """The calls that score the row."""
        start = np.zeros(1, np.int64)
        for member, (weights, units), margins in zip(self.group.members, self.read, self.margins, strict=True):
            row = Rows(start, self.end, self.indices, values[member.setting.view])
            yield score_rows, weights, units, row, margins

    def takes(self, X: Block) -> bool:
        """Whether a row is like the one that this was made for, and members have as many weights as then."""
        is_alike = X.columns.tobytes() == self.columns and X.constant == self.constant
        if not is_alike or self.room < X.codes.size + X.values.size:
            return False
        weights = self.group.weights()
        if weights is not self.latest:
            pairs = list(zip(weights, self.read, strict=True))
            if any(new[0].shape != old[0].shape for new, old in pairs):
                return False
            for new, old in pairs:
                old[0][:], old[1][:] = new
            self.latest = weights
        return True

    def write(self, X: Block) -> None:
        """Write down a row as the views show it."""
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

    def predictions(self) -> np.ndarray:
        """What each member predicts, (m, K), from the margins on; NaN where that is no finite number."""
        if self.group.members[0].objective.task == "classification":
            of_members = self.margins[:, 0]
        else:
            margins = zip(self.group.members, self.margins, strict=True)
            of_members = np.concatenate([member.objective.predictions_of(of_member) for member, of_member in margins])
        return np.where(np.isfinite(of_members).all(axis=1, keepdims=True), of_members, np.nan)


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
        awake = list(growth.generations())
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
        self.added, nothing = np.zeros((len(self.living), 1, self.n_outputs)), np.zeros(1)
        self.objectives = [part.objective for part, _ in self.living]
        self.arrays = list(map(arrays_of, self.objectives))
        self.trees_of_living, rest = [tree for _, tree in self.living], np.zeros((1, self.n_outputs))
        self.are_living = all(isinstance(part, LivingLeaves) for part, _ in self.living)
        self.are_complete = self.are_living and not any(part.predicts_rest for part, _ in self.living)
        for (part, tree), arrays, written in zip(self.living, self.arrays, self.added, strict=True):
            if isinstance(part, LivingLeaves):
                offsets = rest if part.predicts_rest else self.margins[tree]
                yield part.call_on(arrays, self.leaves[tree], offsets, nothing, nothing, written)
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

    def predictions(self, matrix: np.ndarray) -> np.ndarray:
        """Margins, or numbers, (predictions, K) of a row (1, c) under the keys of the columns so far."""
        self._know_objectives()
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
        self.following.run()
        shape = -1, self.n_outputs
        return np.concatenate([part.reshape(shape) for part in (self.margins, self._of_leaves(), self.scores)])

    def _know_objectives(self) -> None:
        """Take over what learners on leaves have learned of their objectives."""
        for place, (part, _) in enumerate(self.living):
            if part.objective is not self.objectives[place]:
                self.objectives[place] = part.objective
                self.arrays[place].numbers[:] = arrays_of(part.objective).numbers

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
        self.scoring = Program(self.linear.calls)
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
        self.linear.write(X)
        self.scoring.run()
        predicted = self.linear.predictions()
        if self.generations is not None:
            predicted = np.concatenate([predicted, self.generations.predictions(matrix)])
        predicted = predicted[self.kept]
        if self.members.loss is None:
            predicted = log_probabilities(predicted, self.members.width, 0)  # which know all classes
        self.written[0, self.places] = predicted
        if self.born is not None:
            self.born[:] = self.written[:, self.places_born]
        self.mixing.run()
        return self.written, self.mixed


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

    def _is_ready(self, pool: Any, X: Block) -> bool:
        """Whether there are arrays for this row, after making them where they are due."""
        held = _held(pool)
        key = pool.has_finished, pool.members.width, *map(id, held)
        if key != self._key:
            self._key, self._held, self._met, self._row = key, held, 0, None
        if not is_foreseen(pool, X):
            return False
        if self._row is None or not self._row.linear.takes(X):
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
