"""Prediction and learning of one row by members and the mixture, in arrays that are made once.

Of one row compiled functions compute little: most of the time would go to making arrays, and to checking them in some
thirty calls. Here the arrays of a row are made once, and the calls of compiled functions on them are a few programs
(:mod:`tunefree.compiled.functions`), with the same functions of arrays between them as in
:meth:`tunefree.pool.members.Members.predict`. So predictions have the same bits. What is not foreseen here is left to
that.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from operator import is_
from typing import Any

import numpy as np

from tunefree.compiled.functions import Call, Program
from tunefree.core.rows import Block, Rows, reach
from tunefree.generations import bins, linear, trees
from tunefree.generations.generation import Generation
from tunefree.generations.leaves import LivingLeaves, finite_sum, log_probabilities
from tunefree.generations.linear import STRENGTHS, Linear
from tunefree.learners.weights import reading
from tunefree.pool import passes
from tunefree.pool.contexts import KNOWN, NEW
from tunefree.pool.frozen import FOLLOWING
from tunefree.pool.growth import Observed
from tunefree.pool.linear_group import LinearGroup
from tunefree.pool.linear_members import with_offsets
from tunefree.pool.members import Members
from tunefree.pool.passes import score_rows
from tunefree.pool.slots import Slot
from tunefree.pool.views import COMPILED

ROOM = 64  # for codes and words at least


class LinearRow:
    """A row like ``X`` as linear members see it, and their predictions, which are written to an array (m, 1, K)."""

    def __init__(self, group: LinearGroup, X: Block, written: np.ndarray) -> None:
        p = X.numbers.shape[1]
        self.group, self.first, self.room = group, 1 + p, max(ROOM, 2 * (X.codes.size + X.values.size))
        self.columns, self.constant, self.written = X.columns.tobytes(), X.constant, written
        names = ["raw", *sorted({member.setting.view for member in group.members} - {"raw"})]
        self.indices, self.end = np.zeros(self.first + self.room, np.uint32), np.zeros(1, np.int64)
        self.indices[1 : self.first] = X.columns
        self.values = np.zeros((len(names), self.first + self.room))  # in each view
        self.values[:, 0] = X.constant
        self.pointers, self.words = np.zeros(2, np.int64), np.zeros(self.room)
        self.shown, self.target, self.weight = np.zeros((len(names), self.room)), np.zeros(1), np.zeros(1)
        numbers = [view_values[1 : self.first].reshape(1, p) for view_values in self.values]
        raw = self.weight, numbers[0], self.pointers, self.words
        views = [group.views[name] for name in names[1:]]
        shown = zip(views, numbers[1:], self.shown[1:], strict=True)
        self.seeing = Program([(COMPILED[type(view)], view, *raw, *view_values) for view, *view_values in shown])
        self.start, values_of_views = np.zeros(1, np.int64), dict(zip(names, self.values, strict=True))
        seen = [values_of_views[member.setting.view] for member in group.members]
        rows = [Rows(self.start, self.end, self.indices, values) for values in seen]
        self.read = [member.weights(group.n_features, group.n_outputs) for member in group.members]
        members: list[Any] = [*zip(group.members, self.read, rows, written, strict=True)]
        self.scoring = Program([(score_rows, *read, row, margins) for _, read, row, margins in members])
        learners: list[Any] = [
            (type(member.state), member.state, read) for member, read, *_ in members if not member.fixed
        ]
        self.reading = Program([(reading(cls, state.n_outputs == 1), state, *read) for cls, state, read in learners])
        rows_to_learn = ((member, (row, self.target, self.weight, margins)) for member, _, row, margins in members)
        self.learning = Program(
            [
                passes.call_on(member.state, member.objective, row_arrays, passes.NOTHING_MET, member.offsets)
                for member, row_arrays in rows_to_learn
            ]
        )
        self.n_changes = group.n_changes

    def is_like(self, X: Block) -> bool:
        """Whether a row is like the one that this was made for."""
        is_alike = X.columns.tobytes() == self.columns and X.constant == self.constant
        return is_alike and self.room >= X.codes.size + X.values.size

    def _know_weights(self) -> None:
        """Take over the weights of members where they have changed."""
        if self.group.n_changes != self.n_changes:
            self.reading.run()
            for member, read in zip(self.group.members, self.read, strict=True):
                if member.offsets is not None:
                    with_offsets(read, member.offsets)
            self.n_changes = self.group.n_changes

    def _write(self, X: Block, target: float = 0.0, weight: float = 0.0) -> None:
        """Write down a row as the views show it, which learn it if it has a weight."""
        self.target[0], self.weight[0] = target, weight
        raw, first, n_words = self.values[0], self.first, X.values.size
        raw[1:first] = X.numbers[0]
        raw[self.group.hidden] = 0.0
        last = first + X.codes.size
        if last > first:
            self.indices[first:last] = X.codes[0]
            self.values[:, first:last] = X.codes[0] > 0
        self.end[0], self.pointers[1] = last + n_words, n_words
        words = slice(last, last + n_words)
        if n_words:
            self.indices[words], raw[words] = X.features, X.values
            self.words[:n_words] = X.values
        self.seeing.run()
        if n_words:
            self.values[1:, words] = self.shown[1:, :n_words]

    def predict(self, X: Block) -> None:
        """Write the predictions of members for a row."""
        self._know_weights()
        self._write(X)
        self.scoring.run()
        if self.group.members[0].objective.task == "regression":
            for member, margins in zip(self.group.members, self.written, strict=True):
                margins[:] = member.objective.predictions_of(margins)

    def learn(self, X: Block, target: float, weight: float) -> None:
        """Write the predictions of members for a row, and let them learn it."""
        self._write(X, target, weight)
        self.learning.run()
        end = int(self.end[0])
        row = Rows(self.start.copy(), self.end.copy(), self.indices[:end].copy(), self.values[0, :end].copy())
        row.values[1 : self.first] = X.numbers[0]
        self.group.has_learned_row(row, weight)


class GenerationsRow:
    """A row as generations see it, and their predictions.

    They know all classes since their birth. Trees that are averaged are the last ``grown``. All write to an array
    (predictions, 1, K): trees as they were born, what learns on leaves, and linear generations.
    """

    def __init__(
        self, members: Members, grown: list[Generation], linear: list[Generation], written: np.ndarray
    ) -> None:
        places = members.growth.columns.places if members.growth is not None else list
        self.trees, self.linear = [of.model for of in grown], [of.model for of in linear]
        column_places = [np.array(places(of.keys), np.intp)[of.model.sources] for of in (*grown, *linear)]
        edges = [*accumulate(map(len, column_places), initial=0)]
        self.sources, self.gathered = np.concatenate([np.zeros(0, np.intp), *column_places]), np.empty(edges[-1])
        self.columns = [self.gathered[start:stop].reshape(1, -1) for start, stop in pairwise(edges)]
        self.living = [(part, tree) for tree, of in enumerate(grown) for part in of.living]
        n, has_one = len(self.trees), written.shape[2] == 1
        self.summed = written[n:]  # what is added up anew for each row
        self.margins, self.added, scores = np.split(written, [n, n + len(self.living)])
        self.scores = scores.reshape(len(self.linear), len(STRENGTHS), 1, written.shape[2])
        self.starts = np.array([of.start for of in self.trees]).reshape(self.margins.shape)
        averaged = [of for of in self.trees if of.is_averaged]
        self.means = self.margins[n - len(averaged) :, 0]
        self.n_averaged = np.array([[max(len(of.roots), 1)] for of in averaged])
        self.least, self.weight = np.array([[of.least] for of in averaged]), np.zeros(1)
        self.trees_of_living, self.targets = [tree for _, tree in self.living], np.zeros((len(self.living), 1))
        self.are_living = all(isinstance(part, LivingLeaves) for part, _ in self.living)
        self.predict_rest = not self.are_living or any(part.predicts_rest for part, _ in self.living)
        self.has_two = members.loss is None and has_one
        self.leaves = [np.empty((1, len(of.roots)), np.int32) for of in self.trees]
        self.walking, self.following = Program([*self._walking()]), Program([*self._following()])
        self.walked = b""  # the row that did so last

    def _walking(self) -> Iterator[Call]:
        """The calls by which the row walks through trees."""
        for of, columns, leaves, sums in zip(self.trees, self.columns, self.leaves, self.margins, strict=False):
            codes = np.empty(columns.shape, np.uint8)
            yield bins.call_on(of.bins, columns, codes)
            yield from trees.calls_on(of, codes, leaves, sums)

    def _following(self) -> Iterator[Call]:
        """The calls by which learners on leaves, and linear generations, predict."""
        rest = np.zeros((1, self.margins.shape[2]))
        for (part, tree), target, written in zip(self.living, self.targets, self.added, strict=True):
            if isinstance(part, LivingLeaves):
                offsets = rest if part.predicts_rest else self.margins[tree]
                yield part.call_on(self.leaves[tree], offsets, target, self.weight, written)
            elif len(part.levels):
                yield trees.add_singles, part.levels, self.leaves[tree], written
        for of, columns, scores in zip(self.linear, self.columns[len(self.trees) :], self.scores, strict=True):
            features = np.ones((1, 1 + columns.shape[1]))
            yield linear.write_features, columns, *of[1:4], features
            yield linear.call_on(of, features.T, scores.swapaxes(1, 2))

    def follow(self, matrix: np.ndarray, y: float = 0.0, weight: float = 0.0) -> None:
        """Predict a row (1, c) under the keys of the columns so far, and learn it if it has a weight.

        ``y`` is its class or number. A row that was predicted before it is learned does not walk again.
        """
        self.weight[0], row = weight, matrix.tobytes()
        if row != self.walked:
            np.take(matrix[0], self.sources, out=self.gathered)
            self.margins[:], self.walked = self.starts, row
            self.walking.run()
            if len(self.means):
                means = self.means / self.n_averaged
                self.means[:] = trees.margins_of_means(self.trees[-1], means, self.least)
        if weight > 0.0:
            if self.predict_rest:
                with np.errstate(over="ignore"):
                    self.targets[:] = np.clip(y - self.margins[self.trees_of_living, 0], -1e300, 1e300)
            else:
                self.targets[:] = y if not self.has_two else 1.0 if y == 1.0 else -1.0
        self.summed[:] = 0.0
        self.following.run()

    def respond(self) -> None:
        """Write predictions with the corrections."""
        if self.predict_rest:
            margins = self.margins[self.trees_of_living]
            if self.are_living:
                self.added[:] = finite_sum(self.added, margins)
            else:
                for (part, _), tree_generations, sums in zip(self.living, margins, self.added, strict=True):
                    sums[:] = part.corrected(tree_generations, sums)


class SingleRow:
    """A row like ``X``, and its predictions by members and mixture of a pool, for the bound objects."""

    def __init__(self, pool: Any, X: Block, bound: list[Any]) -> None:
        self.bound = bound
        members: Members = pool.members
        group, growth = members.linear, members.growth
        awake: list[Any] = [(named[:3], named[3]) for named in ([] if growth is None else growth.generations())]
        linear = [(key, of) for key, of in awake if isinstance(of.model, Linear)]
        grown = [(key, of) for key, of in awake if not isinstance(of.model, Linear)]
        grown.sort(key=lambda one: bool(one[1].model.is_averaged))
        versions = [(key, 0) for key, _ in grown]
        versions += [(key, version) for key, of in grown for version, _ in enumerate(of.living, 1)]
        versions += [(key, version) for key, _ in linear for version in range(len(STRENGTHS))]
        nowhere = len(members.names)  # where predictions are written that the mixture does not see
        self.places = [
            *members.online_places,
            *(members.slots.get(Slot._make([*key, version]), nowhere) for key, version in versions),
        ]
        self.members, self.predicted = members, np.zeros((len(self.places), 1, group.n_outputs))
        self.linear = LinearRow(group, X, self.predicted[: len(group.members)])
        generations = [of for _, of in grown], [of for _, of in linear]
        self.generations = GenerationsRow(members, *generations, self.predicted[len(group.members) :])
        self.placed = np.full((1, nowhere + 1, max(members.width, 1)), np.nan)
        self.written = self.placed[:, :nowhere]
        self.mixed, self.places_born = np.empty((1, self.written.shape[2])), members.places_as_born
        self.born = np.empty((1, len(self.places_born), self.written.shape[2]))  # predictions of generations as born
        self.target, self.weight, self.has_finished = np.zeros(1), np.zeros(1), pool.has_finished
        self.mixing = [Program([self._predicting(pool, number)]) for number in (NEW, KNOWN)]
        learned = self.target, self.weight
        calls = [context.mixture.call_on(self.written, self.mixed, False, learned=learned) for context in pool.contexts]
        self.mixing_learned = [Program([call]) for call in calls]

    def _predicting(self, pool: Any, number: int) -> Call:
        """The call that predicts a row of a context."""
        context = pool.predicting(number)
        if context is None:
            return pool.contexts[NEW].mixture.call_on(self.written, self.mixed, pool.has_finished, is_base=True)
        if pool.has_finished and context.frozen.choice != FOLLOWING:
            return context.frozen.mixture.call_on(self.born, self.mixed, is_base=context.frozen.choice != 0)
        return context.mixture.call_on(self.written, self.mixed, pool.has_finished)

    def predict(self, X: Block, matrix: np.ndarray, context: int) -> None:
        """Write the predictions of members and of the mixture of the row's context."""
        self.linear.predict(X)
        self.generations.follow(matrix)
        self._write()
        if self.has_finished:
            self.born[:] = self.written[:, self.places_born]
        self.mixing[context].run()

    def learn(
        self,
        X: Block,
        y: float,
        weights: tuple[float, float],
        matrix: np.ndarray,
        context: int,
        waited: np.ndarray | None,
    ) -> None:
        """Let members and the mixture of the row's context learn a row; write their predictions.

        These are the ones of before it is learned, or those of a row that ``waited``, (M, K).
        """
        has_two = self.members.loss is None and self.linear.group.n_outputs == 1
        weight, in_context = weights
        self.linear.learn(X, (1.0 if y == 1.0 else -1.0) if has_two else y, weight)
        self.generations.follow(matrix, y, in_context if context == NEW else 0.0)
        if waited is None:
            self._write()
        else:
            self.written[0] = waited
        self.target[0], self.weight[0] = y, in_context
        self.mixing_learned[context].run()

    def _write(self) -> None:
        """Write the predictions of all members to their places."""
        predictions = self.linear.written
        if not np.isfinite(predictions).all():
            predictions[~np.isfinite(predictions).all(axis=(1, 2))] = np.nan
        self.generations.respond()
        member_predictions = self.predicted[:, 0]
        if self.members.loss is None:
            member_predictions = log_probabilities(member_predictions, self.members.width, 0)  # which know all classes
        self.placed[0, self.places] = member_predictions


class SingleRows:
    """Predicts and learns single rows of a pool, in arrays that each thread has for itself meanwhile."""

    def __init__(self) -> None:
        self.rows: list[SingleRow] = []  # that no thread is using

    def __deepcopy__(self, memo: dict[int, Any]) -> SingleRows:
        return SingleRows()

    def predict(self, pool: Any, X: Block) -> tuple[np.ndarray, float] | None:
        """The mixture's prediction (1, K) of a row, and its offset; None if it needs the general way."""
        row = self._taken(pool, X)
        if row is None:
            return None
        matrix = pool.members.matrix(X)
        digests, (context,) = pool.recognised(X, matrix)
        row.predict(X, matrix, context)
        pool.wait(digests, row.written)
        predicted = row.mixed.copy(), float(pool.offsets[context])
        self.rows.append(row)
        return predicted

    def learn(
        self, pool: Any, X: Block, y: float, weights: tuple[float, float], observed: Observed, context: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Learn a row; predictions of members (1, M, K) and mixture (1, K) before it. None if it needs the general way.

        ``weights`` are relative to those of all rows before, and of those before in the context.
        """
        row = None if pool.members.linear.meetings else self._taken(pool, X)
        if row is None:
            return None
        row.learn(X, y, weights, observed.matrix, context, next(pool.waiting.taken(observed.digests), None))
        predicted = row.written.copy(), row.mixed.copy()
        self.rows.append(row)
        return predicted

    def _taken(self, pool: Any, X: Block) -> SingleRow | None:
        """Arrays for this row, which are made where there are none; None where rows are not foreseen here."""
        meetings = pool.members.linear.meetings
        if meetings is not None and meetings.first and reach(X) > meetings.first:
            return None
        bound = _bound(pool)
        try:
            row = self.rows.pop()
        except IndexError:  # the first row, or other threads use them
            row = None
        if row is not None and not (len(bound) == len(row.bound) and all(map(is_, bound, row.bound))):
            self.rows, row = [], None
        if row is None or not row.linear.is_like(X):
            row = SingleRow(pool, X, bound) if _is_foreseen(pool) else None
        return row


def _is_foreseen(pool: Any) -> bool:
    """Whether rows can be predicted here: by linear members and generations that know all features and classes."""
    linear, growth = pool.members.linear, pool.members.growth
    views = {member.setting.view for member in linear.members} - {"raw"}
    if not linear.members or views - linear.views.keys():
        return False
    return growth is None or not any(generation.n_late for *_, generation in growth.generations())


def _bound(pool: Any) -> list[Any]:
    """The objects that arrays and calls are made for; both are made anew where one of them is another object."""
    linear, growth = pool.members.linear, pool.members.growth
    parts = [pool.has_finished, pool.members.width, linear.n_features, linear.members, growth, *linear.views.values()]
    for member in linear.members:
        parts += member.state, member.objective
    for context in pool.contexts:
        parts += context.mixture.corrections, context.frozen.losses
    return parts if growth is None else [*parts, *growth.awake.values()]  # lists that are replaced at a takeover
