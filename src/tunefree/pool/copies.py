"""Copies of the pool, which do not learn: how they predict later rows tells how rows to come will be predicted.

A copy is taken when a generation of all rows takes over, at each doubling. It predicts some of the rows up to the next
copy. These rows judge the frozen mixture of their context (:mod:`tunefree.pool.frozen`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.part import FIXED, LEARNED, RECORD, Part, argument, child, children, number, scratch
from tunefree.core.rows import n_rows, rows_at, together
from tunefree.core.schema import COUNT, Number
from tunefree.generations.clocks import FIRST
from tunefree.generations.generation import Generation
from tunefree.intervals.conformal_record import Units
from tunefree.intervals.sets import draws_of
from tunefree.mixing.mixture import Mixture
from tunefree.model.frozen_group import FrozenGroup
from tunefree.pool.contexts import N_CONTEXTS, Context, by_context, predict_by
from tunefree.pool.frozen import JUDGED, Predicted
from tunefree.pool.growth import with_ages
from tunefree.pool.members import Members

EARLIEST = 4 * FIRST  # rows of the first copy
MOST_ROWS = 1024  # that a copy predicts, of those until the next, but
MOST_ROWS_OF_TEXTS = 256  # where there are no columns for trees: the frozen mixture then has no members
TOGETHER = 64  # rows that a copy predicts together at least, where they come one by one


class _Waiting(NamedTuple):
    """Rows that a copy will predict."""

    units: list[Units]  # of the scores of each context
    X: Any
    targets: np.ndarray  # (n,)
    weights: np.ndarray  # (n,)
    numbers: np.ndarray  # (n,) uint64
    contexts: np.ndarray  # (n,) uint8
    exposures: np.ndarray  # (n,)
    mixed: np.ndarray  # (n, K) predictions of the mixtures that followed the stream


class Copy(Part):
    """A pool as it was.

    Parameters
    ----------
    members : Members
    rows : int
        Learned.
    linear : FrozenGroup
    generations : list of Generation
        The newest of each clock and kind first.
    mixtures : list of Mixture
        Of the contexts.
    """

    members: Members = argument()
    rows = number(FIXED, COUNT)
    linear = child(FrozenGroup, FIXED, make=lambda copy, _: _blank_group(copy.members))
    generations: list[Generation] = children(
        Generation, FIXED, make=lambda copy, _: Generation.bare(loss=copy.members.loss)
    )
    mixtures: list[Mixture] = children(Mixture, FIXED, make=lambda copy, _: Context(copy.members).mixture)

    def __init__(
        self, members: Members, rows: int, linear: FrozenGroup, generations: list[Generation], mixtures: list[Mixture]
    ) -> None:
        self.members, self.rows, self.linear = members, rows, linear
        self.generations, self.mixtures = generations, mixtures

    def predict(self, X: Any, contexts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The predictions of its members, which are those of the pool as they were, (n, M, K), and of its mixtures."""
        members = self.members
        predictions, nothing = members.asleep(n_rows(X)), np.zeros(n_rows(X))
        members.place_online(predictions, self.linear.predict(X), self.rows)
        assert members.growth is not None
        matrix = members.growth.columns.matrix(X)
        members.follow(with_ages(self.generations), matrix, nothing, nothing, predictions)
        return predictions, predict_by(self.mixtures, predictions, contexts)

    def check(self) -> None:
        """Raise a ModelError unless there are trees, and a mixture of each context."""
        if self.members.growth is None:
            raise ModelError("there is a copy of trees that are not there")
        if not 0 < len(self.mixtures) <= N_CONTEXTS:
            raise ModelError("a copy has not a mixture of each context")


def _blank_group(members: Members) -> FrozenGroup:
    """The linear members, whose weights are to be taken over."""
    group = members.ensemble.linear
    return FrozenGroup.bare(group=group, objectives=[member.objective.copied() for member in group.members])


class Copies(Part):
    """The latest copy of a pool, and the rows that it predicts.

    Attributes
    ----------
    copy : Copy or None
    next : int
        Rows learned from which on the next copy is taken.
    """

    members: Members = argument()
    next = number(LEARNED, Number(1, 2**62, whole=True))
    copy: Copy | None = child(
        Copy, RECORD, blank=lambda _: None, may_be_none=True, make=lambda copies, _: Copy.bare(members=copies.members)
    )
    predicted: list[Predicted] = children(Predicted, RECORD, blank=lambda _: [])
    waiting: list[_Waiting] = scratch(lambda _: [])  # rows that the copy will predict

    def __init__(self, members: Members) -> None:
        self.members, self.next = members, EARLIEST
        self.forget()

    def forget(self) -> None:
        """Have no copy."""
        self.copy, self.waiting, self.predicted = None, [], []

    def reduce(self) -> None:
        """Have no copy."""
        self.forget()

    def forget_features(self, features: np.ndarray) -> None:
        """Let the copy predict as if features had never been seen."""
        self._predict_waiting()  # which know them
        if self.copy is not None:
            self.copy.linear.forget(features)

    def judge(
        self,
        X: Any,
        y: np.ndarray,
        weights: np.ndarray,
        numbers: np.ndarray,
        exposures: np.ndarray,
        mixed: np.ndarray,
        of_contexts: tuple[np.ndarray, list[Units]],
    ) -> None:
        """Let the copy predict some of the rows of a weight above 0; their numbers (n,) count those learned before.

        The copy does not change, so rows wait until it can predict many together. ``mixed`` (n, K) was predicted by
        the mixtures that follow the stream. ``of_contexts`` are the context (n,) of each row, and the units of the
        scores of each context.
        """
        if self.copy is None:
            return
        members, (contexts, units) = self.members, of_contexts
        has_trees = members.growth is not None and members.growth.columns.is_for_trees
        thinning = max(self.copy.rows // (MOST_ROWS if has_trees else MOST_ROWS_OF_TEXTS), 1)
        rows = np.flatnonzero((weights > 0.0) & (numbers % thinning == 0))
        if len(rows):
            if self.waiting and [one.widths for one in self.waiting[0].units] != [one.widths for one in units]:
                self._predict_waiting()
            of_rows = rows_at(X, rows), y[rows], weights[rows], numbers[rows].astype(np.uint64), contexts[rows]
            self.waiting.append(_Waiting(units, *of_rows, exposures[rows], mixed[rows]))
            logs_features = members.ensemble.linear.meetings is not None  # for some time, see FrozenGroup
            if logs_features or sum(len(of.targets) for of in self.waiting) >= TOGETHER:
                self._predict_waiting()

    def _predict_waiting(self) -> None:
        """Let the copy predict the rows that wait."""
        if not self.waiting or self.copy is None:
            return
        members, ((units, *_), X, *arrays) = self.members, zip(*self.waiting, strict=True)
        rows = X[0] if len(X) == 1 else together([*X])
        targets, weights, numbers, contexts, exposures, mixed = map(np.concatenate, arrays)
        predictions, following = self.copy.predict(rows, contexts)
        of_born = predictions[:, members.places_as_born]
        predicted = np.concatenate([of_born, following[:, None], mixed[:, None]], axis=1)
        matrix = members.matrix(rows)
        of_scores = by_context(
            contexts, lambda number, some: units[number].of(matrix[some], following[some, 0], exposures[some])
        )
        judged = targets, weights, numbers, contexts, of_scores, draws_of(rows)
        self.predicted.append(Predicted(predicted, *judged))
        self.waiting = []

    def learn(self, contexts: list[Context]) -> None:
        """Let the rows that the copy predicted judge the frozen mixtures, which then learn them in their order."""
        self._predict_waiting()
        if self.predicted and self.copy is not None:
            rows = Predicted.joined(self.predicted)
            for number, context in enumerate(contexts):
                context.frozen.learn(self.members, rows.of_context(number), self.copy.rows >= JUDGED)
        self.forget()

    def take(self, contexts: list[Context], rows: int) -> None:
        """Take a copy of a pool that has learned so many rows."""
        self.learn(contexts)
        members = self.members
        assert members.growth is not None
        linear = members.ensemble.linear.frozen()
        generations = [generation.frozen() for *_, generation in members.growth.generations()]
        self.copy = Copy(members, rows, linear, generations, [context.mixture.copied() for context in contexts])
        while self.next <= rows:
            self.next *= 2

    def prepare(self) -> None:
        """Let the copy predict the rows that wait, and bring those that were predicted together."""
        self._predict_waiting()
        self.predicted = [Predicted.joined(self.predicted)] if len(self.predicted) > 1 else self.predicted
