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
from tunefree.pool.contexts import KNOWN, NEW, mixing_of
from tunefree.pool.linear_group import LinearGroup
from tunefree.pool.members import MemberRows
from tunefree.pool.passes import call_on, score_rows
from tunefree.pool.views import transform_rows

ROOM = 64  # the smallest capacity for codes and words


class LinearRow:
    """Arrays and programs for rows like ``X`` in linear members, which write predictions to an array (m, 1, K).

    ``values`` has the entries of a row in each view, the raw one first: constant, numbers, codes, and words. ``ends``
    (2,) are the numbers of entries without the words, and with them.
    """

    def __init__(self, group: LinearGroup, X: Block, written: np.ndarray) -> None:
        self.group, self.like, self.written, self.n_changes = group, X, written, group.n_changes
        first = 1 + X.numbers.shape[1]
        self.room, names = max(ROOM, 2 * (X.codes.size + X.values.size)), ["raw", *sorted(group.view_names - {"raw"})]
        self.target, self.weight, self.ends = np.zeros(1), np.zeros(1), np.zeros(2, np.int64)
        self.indices, self.values = np.zeros(first + self.room, np.uint32), np.zeros((len(names), first + self.room))
        self.indices[1:first], self.values[:, 0] = X.columns, X.constant
        raw_numbers, *numbers = self.values[:, None, 1:first]
        raw, views = (self.weight, raw_numbers, self.ends, self.values[0]), [group.views[name] for name in names[1:]]
        shown = zip(views, numbers, self.values[1:], strict=True)
        self.view_program = Program([(transform_rows, view, *raw, *arrays) for view, *arrays in shown])
        start, end = np.zeros(1, np.int64), self.ends[1:]
        rows = {name: Rows(start, end, self.indices, values) for name, values in zip(names, self.values, strict=True)}
        self.reads = [member.weights(group.n_features) for member in group.members]
        members = [(member, rows[member.setting.view]) for member in group.members]
        learning: list[Any] = [
            (member.state, read) for member, read in zip(group.members, self.reads, strict=True) if not member.fixed
        ]
        self.read_program = Program([(reading(s.__class__, s.n_outputs == 1), s, *read) for s, read in learning])
        self.score_program = Program(
            [
                (score_rows, *read, row, margins)
                for (_, row), read, margins in zip(members, self.reads, written, strict=True)
            ]
        )
        self.learn_program = Program(
            [
                call_on(
                    member.state, member.objective, (row, self.target, self.weight, margins), offsets=member.offsets
                )
                for (member, row), margins in zip(members, written, strict=True)
            ]
        )

    def is_like(self, X: Block) -> bool:
        """Whether a row has the same dense columns as the original one, and fits into the arrays."""
        is_alike = X.columns.tobytes() == self.like.columns.tobytes() and X.constant == self.like.constant
        return is_alike and self.room >= X.codes.size + X.values.size

    def _write(self, X: Block, target: float, weight: float) -> None:
        """Write a row in all views, which learn it if its weight is above 0."""
        self.target[0], self.weight[0] = target, weight
        raw, first = self.values[0], 1 + X.numbers.shape[1]
        last = self.ends[0] = first + X.codes.size
        end = self.ends[1] = last + X.values.size
        raw[1:first] = X.numbers[0]
        raw[self.group.hidden] = 0.0
        if last > first:
            self.indices[first:last] = X.codes[0]
            self.values[:, first:last] = X.codes[0] > 0
        if end > last:
            self.indices[last:end], raw[last:end] = X.features, X.values
        self.view_program.run()

    def predict(self, X: Block) -> None:
        """Write the predictions of linear members for a row."""
        if self.group.n_changes != self.n_changes:
            self.read_program.run()
            for member, read in zip(self.group.members, self.reads, strict=True):
                member.add_offsets(read)
            self.n_changes = self.group.n_changes
        self._write(X, 0.0, 0.0)
        self.score_program.run()
        if not self.group.has_classes:
            for member, margins in zip(self.group.members, self.written, strict=True):
                margins[:] = member.objective.predictions_of(margins)

    def learn(self, X: Block, y: float, weight: float) -> None:
        """Write the predictions of linear members for a row with a class or number, and let them learn it."""
        has_two = self.group.has_classes and self.group.n_outputs == 1
        self._write(X, (1.0 if y == 1.0 else -1.0) if has_two else y, weight)
        self.learn_program.run()
        end = self.ends[1]
        row = Rows(np.zeros(1, np.int64), self.ends[1:].copy(), self.indices[:end].copy(), self.values[0, :end].copy())
        row.values[1 : 1 + X.numbers.shape[1]] = X.numbers[0]  # monotone columns are hidden from members only
        self.group.latest = row, None
        self.group.complete()
        for member in self.group.members:
            member.count(self.weight)


class SingleRow:
    """Arrays and programs for rows like ``X`` in members and mixture of a pool, for as long as ``bound`` is current."""

    def __init__(self, pool: Any, X: Block, bound: list[Any]) -> None:
        self.bound, self.row = bound, b""  # ``row`` is the latest one predicted by generations
        self.members = MemberRows(pool.members, pool.members.generations(), 1, 0)
        self.linear, self.written = LinearRow(pool.members.linear, X, self.members.online), self.members.written
        self.mixed, self.places_born = np.empty((1, self.written.shape[2])), pool.members.places_as_born
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

    def predict(
        self, X: Block, matrix: np.ndarray, context: int, y: float | None, weights: tuple[float, float], waited: Any
    ) -> None:
        """Write the predictions of members and of the mixture of the row's context; with a target they then learn it.

        ``weights`` are relative to all earlier rows, and to earlier rows in the context. ``waited`` are predictions
        (M, K) of members from an earlier call, which replace the present ones; or None.
        """
        weight, in_context = weights
        if y is None:
            self.linear.predict(X)
        else:
            self.linear.learn(X, y, weight)
        row = matrix.tobytes()
        if row != self.row:
            self.members.walk(matrix)
            self.row = row
        self.members.follow(y, in_context if context == NEW else 0.0)
        if waited is None:
            self.members.write()
        else:
            self.written[0] = waited
        if y is None:
            if self.has_finished:
                self.born[:] = self.written[:, self.places_born]
            self.mixing[context].run()
        else:
            self.target[0], self.weight[0] = y, in_context
            self.mixing_learned[context].run()


def predict_row(
    pool: Any,
    X: Block,
    observed: tuple[np.ndarray, Any],
    context: int,
    y: float | None = None,
    weights: tuple[float, float] = (0.0, 0.0),
) -> tuple[np.ndarray, np.ndarray] | None:
    """Predictions of a row by members (1, M, K) and by the mixture (1, K), in arrays that only one thread uses.

    ``observed`` is the row as generations see it, and its digest. With a class or number ``y`` it is then learned. The
    result is None if some member lacks a view or some feature a slot.
    """
    linear, meetings = pool.members.linear, pool.members.linear.meetings
    if meetings.assigns_slots and (y is not None or reach(X) > meetings.first > 0):
        return None
    bound = _bound_objects(pool)
    try:
        row = pool.single_rows.pop()
    except IndexError:  # the first row, or all arrays are in use by other threads
        row = None
    if row is not None and not (len(bound) == len(row.bound) and all(map(is_, bound, row.bound))):
        pool.single_rows, row = [], None
    if row is None or not row.linear.is_like(X):
        if not linear.members or not linear.view_names <= {"raw", *linear.views}:
            return None
        row = SingleRow(pool, X, bound)
    matrix, digests = observed
    row.predict(X, matrix, context, y, weights, None if y is None else pool.waiting.rows.pop(int(digests[0]), None))
    predicted = row.written.copy(), row.mixed.copy()
    pool.single_rows.append(row)
    return predicted


def _bound_objects(pool: Any) -> list[Any]:
    """The objects that arrays and calls refer to; if one of them is replaced, arrays and calls must be made again."""
    linear, growth = pool.members.linear, pool.members.growth
    parts = [pool.has_finished, pool.members.width, linear.n_features, linear.members, growth, *linear.views.values()]
    for member in linear.members:
        parts += member.state, member.objective
    for context in pool.contexts:
        parts += context.mixture.corrections, context.frozen.losses
    return parts if growth is None else [*parts, *growth.awake]
