"""Contexts: known rows and new rows, each with a mixture of the same members.

A row is *known* if a generation awake was grown on its observation, or its observation is among the latest that were
learned; else it is *new*. Members may remember the target of a known row, so they are judged on the two kinds apart:
the mixture of new rows learns new rows, and that of known rows learns known ones. A row to come is predicted by the
mixture of its kind. Where rows are copies of one another, rows to come are new, and copies did not mislead their
mixture. Where a table has few values, rows to come are known, and their mixture has learned many such rows. Where rows
belong to groups, a row is known if its group is.

The context of known rows begins at the first known row with the members' weights of the other one, and without its
corrections. Before, known rows are predicted by these weights alone: on rows that members remember, corrections that
were learned from other rows may be wrong for certain.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from tunefree.core.part import LEARNED, Part, child, zeros
from tunefree.intervals.conformal_record import ConformalRecord, Judged
from tunefree.mixing.bases import Account, CandidateWeights
from tunefree.mixing.mixture import BASE_ONLY, Mixture
from tunefree.pool.frozen import FOLLOWING, FrozenMixture
from tunefree.pool.groups import starts_of_runs
from tunefree.pool.ledger import LearnedRows
from tunefree.pool.members import Members
from tunefree.pool.relative import RelativeWeights
from tunefree.pool.weights_record import WeightsRecord

NEW, KNOWN, N_CONTEXTS = 0, 1, 2


def by_context(contexts: np.ndarray, mix_context: Callable[[int, Any], np.ndarray]) -> np.ndarray:
    """Results (n, ...) of a function of a context and its rows, in the order of the rows, whose contexts are (n,).

    >>> by_context(np.array([0, 1, 0]), lambda number, rows: 10 * number + np.arange(3)[rows])
    array([ 0, 11,  2])
    """
    is_known = contexts == KNOWN
    n_known = int(np.count_nonzero(is_known))
    if n_known in (0, len(contexts)):
        return mix_context(KNOWN if n_known else NEW, slice(None))
    places = np.flatnonzero(~is_known), np.flatnonzero(is_known)
    parts = [mix_context(number, rows) for number, rows in enumerate(places)]
    results = np.empty((len(contexts), *parts[0].shape[1:]), parts[0].dtype)
    for rows, part in zip(places, parts, strict=True):
        results[rows] = part
    return results


def mixing_of(pool: Any, number: int, is_over: bool) -> tuple[Mixture, list[int] | None, bool]:
    """The mixture that predicts rows of a context, the places of its members, None for all; and if it is its base."""
    context = pool.predicting(number)
    if context is None:
        return pool.contexts[NEW].mixture, None, True
    if is_over and context.frozen.choice != FOLLOWING:
        return context.frozen.mixture, context.frozen.places, context.frozen.choice != 0
    return context.mixture, None, False


class Context(Part):
    """A mixture of the members as they learn, for rows of one kind, whose ``relative`` weights have the mean 1.

    It has a ``frozen`` mixture of generations as they were born, a ``record`` of the members' weights and losses, as
    long as there are generations, and a ``conformal`` one of how far off the mixture was.
    """

    mixture = child(Mixture, LEARNED)
    frozen = child(FrozenMixture, LEARNED)
    record = child(WeightsRecord, LEARNED)
    conformal = child(ConformalRecord, LEARNED)
    relative = child(RelativeWeights, LEARNED)

    def __init__(self, members: Members) -> None:
        self.mixture = Mixture(len(members.names), members.width, members.loss, bool(members.signs))
        self.forget_trees(members)
        self.record = WeightsRecord(len(members.names))
        self.conformal = ConformalRecord(members.loss)
        self.relative = RelativeWeights()

    def forget_trees(self, members: Members) -> None:
        """Forget the records of generations as they were born."""
        self.frozen = FrozenMixture(members.places_as_born, members.width, members.loss, bool(members.signs))

    def observe(self, rows: LearnedRows) -> None:
        """Record how far off the mixture was on rows, and how it and the members predicted them."""
        growth, members = rows.members.growth, rows.members
        columns = ([], []) if growth is None else (growth.columns.keys, growth.columns.fills)
        predicted = rows.observed.matrix, rows.mixed, rows.y
        self.conformal.observe(Judged(*predicted, rows.judging, rows.numbers, rows.draws, rows.weight), *columns)
        judged = np.flatnonzero(rows.relative > 0.0)
        if growth is not None and len(judged):
            predictions, y = np.concatenate([rows.predictions, rows.mixed[:, None]], axis=1)[judged], rows.y[judged]
            starts = None if rows.groups is None else starts_of_runs(rows.groups[judged])
            self.record.observe(members.losses(predictions, y), rows.relative[judged], starts)

    def begun(self) -> Context:
        """A new context that begins with the members' weights of this context, and without its corrections."""
        other = copy.copy(self)
        other.mixture = self.mixture.copied()
        other.mixture.account, other.mixture.top = zeros(Account), CandidateWeights.create()
        for weights, base_alone in zip(other.mixture.top[:2], BASE_ONLY, strict=False):
            weights[:] = base_alone
        other.frozen, other.conformal = self.frozen.copied(), self.conformal.copied()
        other.record, other.relative = WeightsRecord(self.mixture.n_members), RelativeWeights()
        return other

    def weights(self, is_over: bool) -> np.ndarray:
        """The weights (M,) of the members in the base of the mixture that predicts rows to come."""
        weights = self.mixture.base.means if is_over else self.mixture.base.weights
        if is_over and self.frozen.choice != FOLLOWING:
            weights = np.zeros(len(weights))
            weights[self.frozen.places] = self.frozen.mixture.base.means
        return weights

    @property
    def has_events(self) -> bool:
        """Whether a target above 0 was learned, where logarithms are predicted."""
        return bool(self.mixture.range.highest[0] > 0.0)

    def add_class(self) -> None:
        """Add a class to the mixtures."""
        self.mixture.add_class()
        self.frozen.mixture.add_class()
