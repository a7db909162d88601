"""Linear members as they were: they predict rows while the members of their group learn on."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core import threads
from tunefree.core.errors import ModelError
from tunefree.core.part import FIXED, LEARNED, Part, argument, children, number
from tunefree.core.rows import entries_of, n_rows
from tunefree.core.schema import COUNT, Mapping, Number, Sequence
from tunefree.losses.kinds import numbers_of
from tunefree.model import views
from tunefree.model.group import Read, ReadWeights


class LinearSnapshot(Part):
    """The members of a group with the weights, views and slots that they had.

    It asks the group about features that occurred once, so it is right as long as the group keeps its members and
    outputs, and of such features as long as the group has the rows in which they were met.

    Parameters
    ----------
    group : LinearGroup
    reads : list of Read
        Weights of each member.
    views : dict of str to view
        By name.
    counts : (int, int)
        Slots of features, and rows in which some features were met first. Features that occurred later count nothing.

    Attributes
    ----------
    objectives : list of objective
        Of each member.
    """

    group = argument()
    reads = children(ReadWeights, LEARNED)
    views: dict[str, Any] = children(lambda _, __, place: views.ALL[place], FIXED)
    objectives: list[Any] = argument()
    numbers = number(
        FIXED,
        Sequence(Mapping(Number())),
        lambda snapshot: [numbers_of(objective) for objective in snapshot.objectives],
        lambda snapshot, numbers: snapshot._have_numbers(numbers),
    )
    counts: tuple[int, int] = number(FIXED, Sequence(COUNT, 2))

    def __init__(self, group: Any, reads: list[Read], views: dict[str, Any], counts: tuple[int, int]) -> None:
        self.group, self.reads, self.views, self.counts = group, [ReadWeights(*read) for read in reads], views, counts
        self.objectives = [member.objective for member in group.members]

    def _have_numbers(self, numbers: list[dict[str, float]]) -> None:
        """Have these numbers in the objectives."""
        pairs = zip(self.objectives, numbers, strict=True)
        self.objectives = [objective._replace(**of_member) for objective, of_member in pairs]

    def check(self) -> None:
        """Raise a ModelError unless there are weights of all members, of as many outputs."""
        members, n_outputs = self.group.members, self.group.n_outputs
        if len(self.reads) != len(members) or len(self.counts) != 2:
            raise ModelError("a copy has not the members")
        if any(weights.shape[1] != n_outputs for weights, _ in self.reads):
            raise ModelError("a copy has not the weights of its members")

    def predict(self, X: Any) -> np.ndarray:
        """What each member predicted of rows, (M, n, K)."""
        group, nothing = self.group, np.zeros(n_rows(X))
        seen = {"raw": X} | {name: views.transform(view, X, nothing) for name, view in self.views.items()}
        alone, seen = group.alone_in(seen, *self.counts), group.with_slots(seen)
        entries = {view: entries_of(seen[view]) for view in group.view_names}
        predictions = np.empty((len(group.members), n_rows(X), group.n_outputs))

        def of_member(member: Any, read: Read, objective: Any, written: np.ndarray) -> None:
            written[:] = member.predict(entries[member.setting.view], read, alone(member), objective)

        threads.each(of_member, zip(group.members, self.reads, self.objectives, predictions, strict=True), n_rows(X))
        return predictions

    def forget(self, features: np.ndarray) -> None:
        """Predict as if features had never been seen; see ``LinearGroup.forget``."""
        for weights, _ in self.reads:
            weights[features[features < len(weights)]] = 0.0
