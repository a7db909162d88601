"""Copies of the pool that do not learn: their losses on later rows estimate the loss of predictions far ahead.

A copy is taken when a generation of all rows takes over, each time the number of rows has doubled. It predicts a sample
of the rows up to the next copy. These rows judge the frozen mixture of their context (:mod:`tunefree.pool.contexts`).
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import FIXED, LEARNED, RECORD, Part, argument, child, children, number, scratch
from tunefree.core.schema import ANY, COUNT, Limits, Number
from tunefree.generations.clocks import FIRST
from tunefree.generations.generation import Generation
from tunefree.mixing.mixture import Mixture
from tunefree.pool.contexts import N_CONTEXTS, NEW, Context, by_context
from tunefree.pool.growth import with_ages
from tunefree.pool.ledger import LearnedRows, Ledger, joined
from tunefree.pool.linear_group import LinearSnapshot
from tunefree.pool.members import Members, predictions_of

EARLIEST = 4 * FIRST  # number of learned rows at which the first copy is taken
JUDGED = 512  # the losses of a copy count if it has learned at least so many rows
MOST_ROWS = 1024  # the largest number of rows that a copy predicts
MOST_ROWS_OF_TEXTS = 256  # likewise if there are no columns for trees: the frozen mixture then has no members


class Predicted(NamedTuple):
    """Rows that a copy has predicted."""

    # Predictions of the generations of the copy, of its mixture, and of the mixture that follows the stream.
    predicted: Annotated[np.ndarray, "float64[n, members, outputs]", ANY]
    targets: Annotated[np.ndarray, "float64[n]"]
    weights: Annotated[np.ndarray, "float64[n]"]
    numbers: Annotated[np.ndarray, "uint64[n]"]
    contexts: Annotated[np.ndarray, "uint8[n]", Limits(below=2)]  # see tunefree.pool.contexts
    units: Annotated[np.ndarray, "float64[n]"]
    draws: Annotated[np.ndarray, "float64[n]"]


class Snapshot(Part):
    """Frozen parts of a pool that predict: linear members, generations, and the mixtures of contexts."""

    members: Members = argument()
    rows = number(FIXED, COUNT)
    linear = child(LinearSnapshot, FIXED, make=lambda snapshot, _: LinearSnapshot.bare(group=snapshot.members.linear))
    generations: list[Generation] = children(
        Generation, FIXED, make=lambda snapshot, _: Generation.bare(loss=snapshot.members.loss)
    )
    mixtures: list[Mixture] = children(Mixture, FIXED, make=lambda snapshot, _: Context(snapshot.members).mixture)

    def __init__(self, members: Members, rows: int, mixtures: list[Mixture]) -> None:
        assert members.growth is not None
        self.members, self.rows, self.mixtures = members, rows, [mixture.copied() for mixture in mixtures]
        self.linear = members.linear.snapshot()
        self.generations = [generation.frozen() for *_, generation in members.growth.generations()]

    def predict(self, X: Any, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predictions (n, M, K) of the copied members, and predictions (n, K) of the copied mixtures."""
        online, matrix = self.linear.predict(X), self.members.matrix(X)
        predictions = predictions_of(self.members, online, with_ages(self.generations), matrix)

        def mix_context(number: int, rows: Any) -> np.ndarray:
            some = np.ascontiguousarray(predictions[rows])
            has_mixture = number < len(self.mixtures)
            return self.mixtures[number if has_mixture else NEW].predict(some, is_base=not has_mixture)

        return predictions, by_context(contexts, mix_context)

    def check(self) -> None:
        """Raise a ModelError unless the members have trees and each context has a mixture."""
        if self.members.growth is None:
            raise ModelError("there is a copy of trees that are not there")
        if not 0 < len(self.mixtures) <= N_CONTEXTS:
            raise ModelError("a copy has not a mixture of each context")


class Copies(Part):
    """The latest copy of a pool, the rows that it predicted, and the number of rows at which the next one is taken."""

    members: Members = argument()
    next = number(LEARNED, Number(1, 2**62, whole=True))
    copy: Snapshot | None = child(
        Snapshot,
        RECORD,
        blank=lambda _: None,
        may_be_none=True,
        make=lambda copies, _: Snapshot.bare(members=copies.members),
    )
    predicted: list[Predicted] = children(Predicted, RECORD, blank=lambda _: [])  # of one item, or none
    ledger = scratch(lambda _: Ledger())  # rows that wait for the prediction of the copy

    def __init__(self, members: Members) -> None:
        self.members, self.next = members, EARLIEST
        self.forget()

    def forget(self) -> None:
        """Drop the copy."""
        self.copy, self.ledger, self.predicted = None, Ledger(), []

    reduce = forget

    def forget_features(self, features: np.ndarray) -> None:
        """Let the copy predict as if features had never occurred."""
        self.prepare()  # waiting rows may have these features
        if self.copy is not None:
            self.copy.linear.forget(features)

    def observe(self, rows: LearnedRows) -> None:
        """Queue a sample of the rows of a weight above 0 for prediction by the copy; full queues are flushed."""
        if self.copy is None:
            return
        growth = self.members.growth
        has_trees = growth is not None and bool(growth.columns.keys)
        thinning = max(self.copy.rows // (MOST_ROWS if has_trees else MOST_ROWS_OF_TEXTS), 1)
        some = np.flatnonzero((rows.judging > 0.0) & (rows.numbers % thinning == 0))
        if len(some):
            for waiting in self.ledger.waiting[:1]:
                if [one.widths for one in waiting.units] != [one.widths for one in rows.units]:
                    self.prepare()
            is_full = self.ledger.add(rows.at(some))
            if is_full or self.members.linear.meetings.assigns_slots:  # their log does not keep features forever
                self.prepare()

    def prepare(self) -> None:
        """Let the copy predict the rows that wait."""
        self.ledger.flush(self._predict)

    def _predict(self, rows: LearnedRows) -> None:
        assert self.copy is not None  # rows wait for it
        members, X, contexts = self.members, rows.X, rows.contexts
        predictions, mixed = self.copy.predict(X, contexts)
        born = predictions[:, members.places_as_born]
        predicted = np.concatenate([born, mixed[:, None], rows.mixed[:, None]], axis=1)
        matrix = members.matrix(X)
        score_units = by_context(
            contexts, lambda number, some: rows.units[number].of(matrix[some], mixed[some, 0], rows.weight[some])
        )
        judged = rows.y, rows.judging, rows.numbers.astype(np.uint64), contexts, score_units, rows.draws
        self.predicted = [joined([*self.predicted, Predicted(predicted, *judged)])]

    def learn(self, contexts: list[Context]) -> None:
        """Judge the frozen mixtures on the rows that the copy predicted, let them learn these, and drop the copy."""
        self.prepare()
        for rows in self.predicted:
            for index, context in enumerate(contexts):
                in_context = Predicted(*(array[rows.contexts == index] for array in rows))
                context.frozen.learn(self.members, in_context, self.copy is not None and self.copy.rows >= JUDGED)
        self.forget()

    def take(self, contexts: list[Context], rows: int) -> None:
        """Take a copy of a pool that has learned so many rows."""
        self.learn(contexts)
        self.copy = Snapshot(self.members, rows, [context.mixture for context in contexts])
        while self.next <= rows:
            self.next *= 2
