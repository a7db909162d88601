"""Linear members as they were: they predict rows, and tell their weights, while their group learns on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tunefree.core import threads
from tunefree.core.errors import ModelError
from tunefree.core.part import FIXED, LEARNED, Part, argument, children, number
from tunefree.core.rows import entries_of, n_rows
from tunefree.core.schema import COUNT, Sequence
from tunefree.losses.objectives import Objective
from tunefree.pool import views
from tunefree.pool.meetings import FirstMeetings
from tunefree.pool.rows import Further, Read, ReadWeights, WeightedRows

AT_ONCE = 2**14  # features without a slot whose weights are computed at a time


class LinearSnapshot(Part):
    """The members of a group with the weights, objectives, views and slots that they had.

    It asks the group about features that occurred once, so it is right as long as the group keeps its members and
    outputs, and of such features as long as the group has the rows in which they were met. Its ``counts`` are slots of
    features, and rows in which some features were met first: features that occurred later count nothing.
    """

    group = argument()
    reads = children(ReadWeights, LEARNED)
    views: dict[str, Any] = children(lambda _, __, place: views.ALL[place], FIXED)
    objectives: list[Objective] = children(Objective, FIXED)
    counts: tuple[int, int] = number(FIXED, Sequence(COUNT, 2))

    def __init__(self, group: Any, reads: list[Read], views: dict[str, Any], counts: tuple[int, int]) -> None:
        self.group, self.reads, self.views, self.counts = group, [ReadWeights(*read) for read in reads], views, counts
        self.objectives = [member.objective.copied() for member in group.members]

    def check(self) -> None:
        """Raise a ModelError unless there are weights of all members, of as many outputs."""
        members, n_outputs = self.group.members, self.group.n_outputs
        if {len(self.reads), len(self.objectives)} != {len(members)} or len(self.counts) != 2:
            raise ModelError("a copy has not the members")
        if any(weights.shape[1] != n_outputs for weights, _ in self.reads):
            raise ModelError("a copy has not the weights of its members")

    def predict(self, X: Any) -> np.ndarray:
        """What each member predicted of rows, (M, n, K)."""
        group, (seen, further) = self.group, self._seen(X)
        entries = {view: entries_of(seen[view]) for view in {member.setting.view for member in group.members}}
        predictions = np.empty((len(group.members), n_rows(X), group.n_outputs))

        def predict_member(member: Any, read: Read, objective: Any, written: np.ndarray) -> None:
            written[:] = member.predict(entries[member.setting.view], read, further(member), objective)

        threads.each(
            predict_member, zip(group.members, self.reads, self.objectives, predictions, strict=True), n_rows(X)
        )
        return predictions

    def weighted_rows(self, X: Any, members: list[int]) -> list[WeightedRows]:
        """Rows as the members at some places see them."""
        seen, further = self._seen(X)
        some = [(self.group.members[m], self.reads[m]) for m in members]
        return [WeightedRows(seen[member.setting.view], read[0], read[1], further(member)) for member, read in some]

    def by_slot(self, feature_array: np.ndarray) -> np.ndarray:
        """What belongs to features (d, ...), in the order of the weights of members."""
        meetings = self.group.meetings
        return feature_array if meetings is None else np.asarray(meetings.by_slot(feature_array))

    def weights_by_feature(self, n_features: int) -> Read:
        """Weights (d, K) of the first member, and units (d,), by feature; 0 where it occurred once or never."""
        meetings, member = self.group.meetings or FirstMeetings(), self.group.members[0]
        weights, units = (meetings.by_feature(slot_array, n_features) for slot_array in self.reads[0])
        several = meetings.alone(fewest=2)
        for start in range(0, len(several), AT_ONCE):
            features = several[start : start + AT_ONCE]
            past = meetings.numbered(features)
            read = member.past_weights(meetings.replayed(past, member.setting.view), past)
            if read is not None:
                weights[features], units[features] = read[0][1:], read[1][1:]
        return weights, units

    def _seen(self, X: Any) -> tuple[dict[str, Any], Callable[[Any], Further | None]]:
        """Rows by view, whose features have slots; and for each member their entries without one, with their weights.

        See :meth:`tunefree.pool.meetings.FirstMeetings.alone_in`.
        """
        X, meetings, nothing = views.hidden(X, self.group.hidden), self.group.meetings, np.zeros(n_rows(X))
        seen = {"raw": X} | {name: views.transform(view, X, nothing) for name, view in self.views.items()}
        if meetings is None:
            return seen, lambda member: None
        in_slots = {view: meetings.in_slots(rows) for view, rows in seen.items()}
        alone = meetings.alone_in(X, *self.counts)
        if alone is None:
            return in_slots, lambda member: None
        kept = [view for view in seen if view in meetings.values]
        rows = {view: (alone.rows(seen[view]), meetings.replayed(alone.past, view)) for view in kept}

        def further(member: Any) -> Further | None:
            if member.setting.view not in rows:
                return None
            in_view, occurrences = rows[member.setting.view]
            read = member.past_weights(occurrences, alone.past)
            return None if read is None else Further(in_view, read, np.append(0, alone.features))

        return in_slots, further

    def forget(self, features: np.ndarray) -> None:
        """Predict as if features had never been seen; see ``LinearGroup.forget``."""
        for weights, _ in self.reads:
            weights[features[features < len(weights)]] = 0.0
