"""Prediction and learning of single rows by members and the mixture, in arrays that are allocated once.

Like :mod:`tunefree.pool.members` for generations, this module combines the calls of compiled functions for linear
members and the mixture into a few programs. Other cases are left to :class:`tunefree.pool.linear_group.LinearGroup`.
"""

from __future__ import annotations

from operator import is_
from typing import Any

import numpy as np

from tunefree.compiled.functions import Program
from tunefree.core.rows import Block, Rows, reach
from tunefree.learners.weights import reading
from tunefree.pool import passes
from tunefree.pool.contexts import KNOWN, NEW, mixing_of
from tunefree.pool.linear_group import LinearGroup, with_offsets
from tunefree.pool.members import MemberRows
from tunefree.pool.passes import score_rows
from tunefree.pool.views import transform_rows

ROOM = 64  # the smallest capacity for codes and words


class LinearRow:
    """Arrays and programs for rows like ``X`` in linear members, which write predictions to an array (m, 1, K)."""

    def __init__(self, group: LinearGroup, X: Block, written: np.ndarray) -> None:
        p = X.numbers.shape[1]
        self.group, self.first, self.room = group, 1 + p, max(ROOM, 2 * (X.codes.size + X.values.size))
        self.columns, self.constant, self.written = X.columns.tobytes(), X.constant, written
        names = ["raw", *sorted({member.setting.view for member in group.members} - {"raw"})]
        self.indices, self.end = np.zeros(self.first + self.room, np.uint32), np.zeros(1, np.int64)
        self.indices[1 : self.first] = X.columns
        self.values = np.zeros((len(names), self.first + self.room))  # one row of values for each view
        self.values[:, 0] = X.constant
        self.pointers, self.words = np.zeros(2, np.int64), np.zeros(self.room)
        self.shown, self.target, self.weight = np.zeros((len(names), self.room)), np.zeros(1), np.zeros(1)
        numbers = [view_values[1 : self.first].reshape(1, p) for view_values in self.values]
        raw = self.weight, numbers[0], self.pointers, self.words
        views = [group.views[name] for name in names[1:]]
        shown = zip(views, numbers[1:], self.shown[1:], strict=True)
        self.view_program = Program([(transform_rows, view, *raw, *view_values) for view, *view_values in shown])
        self.start, values_of_views = np.zeros(1, np.int64), dict(zip(names, self.values, strict=True))
        member_values = [values_of_views[member.setting.view] for member in group.members]
        rows = [Rows(self.start, self.end, self.indices, values) for values in member_values]
        self.read = [member.weights(group.n_features) for member in group.members]
        members: list[Any] = [*zip(group.members, self.read, rows, written, strict=True)]
        self.score_program = Program([(score_rows, *read, row, margins) for _, read, row, margins in members])
        states: list[Any] = [
            (type(member.state), member.state, read) for member, read, *_ in members if not member.fixed
        ]
        self.read_program = Program([(reading(cls, state.n_outputs == 1), state, *read) for cls, state, read in states])
        rows_to_learn = ((member, (row, self.target, self.weight, margins)) for member, _, row, margins in members)
        self.learn_program = Program(
            [
                passes.call_on(member.state, member.objective, row_arrays, passes.NOTHING_MET, member.offsets)
                for member, row_arrays in rows_to_learn
            ]
        )
        self.n_changes = group.n_changes

    def is_like(self, X: Block) -> bool:
        """Whether a row has the same dense columns as the original one, and fits into the arrays."""
        is_alike = X.columns.tobytes() == self.columns and X.constant == self.constant
        return is_alike and self.room >= X.codes.size + X.values.size

    def _update_weights(self) -> None:
        if self.group.n_changes != self.n_changes:
            self.read_program.run()
            for member, read in zip(self.group.members, self.read, strict=True):
                if member.offsets is not None:
                    with_offsets(read, member.offsets)
            self.n_changes = self.group.n_changes

    def _write(self, X: Block, target: float = 0.0, weight: float = 0.0) -> None:
        """Write a row in all views, which learn it if its weight is above 0."""
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
        self.view_program.run()
        if n_words:
            self.values[1:, words] = self.shown[1:, :n_words]

    def predict(self, X: Block) -> None:
        """Write the predictions of linear members for a row."""
        self._update_weights()
        self._write(X)
        self.score_program.run()
        if self.group.members[0].objective.task == "regression":
            for member, margins in zip(self.group.members, self.written, strict=True):
                margins[:] = member.objective.predictions_of(margins)

    def learn(self, X: Block, y: float, weight: float) -> None:
        """Write the predictions of linear members for a row with a class or number, and let them learn it."""
        has_two = self.group.has_classes and self.group.n_outputs == 1
        self._write(X, (1.0 if y == 1.0 else -1.0) if has_two else y, weight)
        self.learn_program.run()
        end = int(self.end[0])
        row = Rows(self.start.copy(), self.end.copy(), self.indices[:end].copy(), self.values[0, :end].copy())
        row.values[1 : self.first] = X.numbers[0]
        self.group.latest = row, None
        self.group.complete()
        for member in self.group.members:
            member.count(self.weight)


class SingleRow:
    """Arrays and programs for rows like ``X`` in members and mixture of a pool, for as long as ``bound`` is current."""

    def __init__(self, pool: Any, X: Block, bound: list[Any]) -> None:
        members = self.members = pool.members
        self.bound, self.row = bound, b""  # ``row`` is the latest one predicted by generations
        self.predictions = MemberRows(members, members.generations(), 1, 0)
        self.linear, self.written = LinearRow(members.linear, X, self.predictions.online), self.predictions.written
        self.mixed, self.places_born = np.empty((1, self.written.shape[2])), members.places_as_born
        self.born = np.empty((1, len(self.places_born), self.written.shape[2]))  # by generations as they were born
        self.target, self.weight, self.has_finished = np.zeros(1), np.zeros(1), pool.has_finished
        self.mixing = []
        for number in (NEW, KNOWN):
            mixture, places, is_base = mixing_of(pool, number, self.has_finished)
            mixed_members = self.written if places is None else self.born
            self.mixing.append(Program([mixture.call_on(mixed_members, self.mixed, self.has_finished, is_base)]))
        learned = self.target, self.weight
        calls = [context.mixture.call_on(self.written, self.mixed, False, learned=learned) for context in pool.contexts]
        self.mixing_learned = [Program([call]) for call in calls]

    def predict(self, X: Block, matrix: np.ndarray, context: int) -> None:
        """Write the predictions of members and of the mixture of the row's context ``context``."""
        self.linear.predict(X)
        self._walk(matrix)
        self.predictions.follow()
        self.predictions.write()
        if self.has_finished:
            self.born[:] = self.written[:, self.places_born]
        self.mixing[context].run()

    def learn(
        self, X: Block, matrix: np.ndarray, context: int, y: float, weights: tuple[float, float], waited: Any
    ) -> None:
        """Let members and the mixture of the row's context learn a row after they predicted it.

        ``weights`` are relative to all earlier rows, and to earlier rows in the context. ``waited`` are predictions
        (M, K) of members from an earlier call, which replace the present ones; or None.
        """
        weight, in_context = weights
        self.linear.learn(X, y, weight)
        self._walk(matrix)
        self.predictions.follow(y, in_context if context == NEW else 0.0)
        if waited is None:
            self.predictions.write()
        else:
            self.written[0] = waited
        self.target[0], self.weight[0] = y, in_context
        self.mixing_learned[context].run()

    def _walk(self, matrix: np.ndarray) -> None:
        """Let generations as they were born predict a row, unless it was their latest row."""
        row = matrix.tobytes()
        if row != self.row:
            self.predictions.walk(matrix)
            self.row = row


class SingleRows:
    """Predicts and learns single rows of a pool, in arrays that only one thread uses at a time."""

    def __init__(self) -> None:
        self.rows: list[SingleRow] = []  # arrays that no thread is using

    def __deepcopy__(self, memo: dict[int, Any]) -> SingleRows:
        return SingleRows()

    def predict(
        self,
        pool: Any,
        X: Block,
        observed: tuple[np.ndarray, Any],
        context: int,
        y: float | None = None,
        weights: tuple[float, float] = (0.0, 0.0),
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Predictions of a row by members (1, M, K) and by the mixture (1, K); None if this class cannot predict it.

        ``observed`` is the row as generations see it, and its digest. With a class or number ``y`` it is then learned.
        """
        row = self._arrays_for(pool, X, y is not None)
        if row is None:
            return None
        matrix, digests = observed
        if y is None:
            row.predict(X, matrix, context)
        else:
            row.learn(X, matrix, context, y, weights, next(pool.waiting.taken(digests), None))
        predicted = row.written.copy(), row.mixed.copy()
        self.rows.append(row)
        return predicted

    def _arrays_for(self, pool: Any, X: Block, learns: bool) -> SingleRow | None:
        """Arrays for this row, allocated if necessary; None if some member lacks a view or some feature a slot."""
        linear, meetings = pool.members.linear, pool.members.linear.meetings
        if meetings is not None and (learns or (meetings.first and reach(X) > meetings.first)):
            return None
        bound = _bound_objects(pool)
        try:
            row = self.rows.pop()
        except IndexError:  # the first row, or all arrays are in use by other threads
            row = None
        if row is not None and not (len(bound) == len(row.bound) and all(map(is_, bound, row.bound))):
            self.rows, row = [], None
        if row is None or not row.linear.is_like(X):
            views = {member.setting.view for member in linear.members} - {"raw"}
            row = SingleRow(pool, X, bound) if linear.members and views <= linear.views.keys() else None
        return row


def _bound_objects(pool: Any) -> list[Any]:
    """The objects that arrays and calls refer to; if one of them is replaced, arrays and calls must be made again."""
    linear, growth = pool.members.linear, pool.members.growth
    parts = [pool.has_finished, pool.members.width, linear.n_features, linear.members, growth, *linear.views.values()]
    for member in linear.members:
        parts += member.state, member.objective
    for context in pool.contexts:
        parts += context.mixture.corrections, context.frozen.losses
    return parts if growth is None else [*parts, *growth.awake.values()]  # takeovers replace these lists
