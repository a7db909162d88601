"""Linear members on the features as they are given, the views that they share, and the members as they were."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tunefree.core import threads
from tunefree.core.errors import ModelError
from tunefree.core.part import FIXED, LEARNED, Part, argument, child, children, number, scratch
from tunefree.core.rows import Rows, entries_of, n_rows
from tunefree.core.schema import COUNT, Sequence
from tunefree.losses.objectives import Objective
from tunefree.pool.linear_members import Member, Setting
from tunefree.pool.occurrences import LOGGED, MOST, FirstMeetings, Met, Past
from tunefree.pool.rows import Further, LabelledRows, Read, ReadWeights, WeightedRows
from tunefree.pool.views import Steady, hidden, transform

AT_ONCE = 2**14  # features without a slot whose weights are computed at a time


class LinearGroup(Part):
    """Linear learners, or none, each on its view of the rows; members with the same view share it.

    Their weights may be the averages of their iterates. If they all can replay, features may get slots by their
    ``meetings``: wherever weights are indexed by features here, it is by slots then. Members do not see the dense
    columns of the features that are ``monotone``. The ``latest`` rows with slots, None of rows that were learned again,
    have with them the features that were met, None where features have the slots of their own numbers.
    """

    n_features_of_rows, n_features, n_outputs, n_changes = argument(), argument(), argument(), argument()
    has_classes, hidden = argument(), argument()
    n_known: int | None = argument()  # features that files have; all without it
    meetings: FirstMeetings | None = child(
        FirstMeetings,
        LEARNED,
        may_be_none=True,
        make=lambda *_: FirstMeetings(),
        read=lambda group: group.meetings if group.meetings is not None and group.meetings.first else None,
        write=lambda group, saved: group._have_met(saved),
    )
    members: list[Member] = children(Member, LEARNED)
    views: dict[str, Steady] = children(Steady, LEARNED, axes={"columns": "P"})
    latest: tuple[Rows | None, Met | None] = scratch(lambda _: (None, None))
    _weights: list[tuple[np.ndarray, np.ndarray]] | None = scratch()

    def __init__(
        self,
        settings: list[Setting],
        objective: Any,
        n_features: int,
        n_outputs: int,
        average: bool,
        meetings: FirstMeetings | None = None,
        monotone: Iterable[int] = (),
    ) -> None:
        self.meetings, self.hidden = meetings, np.array([*monotone], np.intp)
        self.latest = None, None
        self.n_features_of_rows, self.n_known = n_features, None  # known from the start
        self.n_features, self.n_outputs = self.n_slots(n_features), n_outputs
        self.has_classes = objective.task == "classification"
        member_arguments = average, self.n_features, n_outputs, objective
        self.members = [Member.create(setting, *member_arguments) for setting in settings]
        self.views = {}  # by name, from the first rows on; raw rows need none
        self._weights = None  # until a member changes
        self.n_changes = 0  # of the members so far

    @property
    def n_columns(self) -> int | None:
        """The number of dense columns; None before the first row, and where no member has a view."""
        return next((len(view.centres) for view in self.views.values()), None)

    def reserve(self, n_features: int = 0, n_slots: int = 0, exactly: bool = False) -> None:
        """Reserve capacity for at least so many features, as far as they have slots, or for slots that may be given.

        It doubles, unless it has to be of so many slots ``exactly``.
        """
        if n_features:
            self.n_features = max(self.n_features, self.n_slots(n_features))
            self.complete()
        for member in self.members:
            member.reserve(max(n_slots, self.n_features), self.n_outputs, exactly)

    def n_slots(self, n_features: int) -> int:
        """The number of slots of the first ``n_features`` features."""
        return n_features if self.meetings is None else self.meetings.n_slots(n_features)

    def settle(self) -> tuple[Past | None, Any]:
        """Learn all occurrences that are kept, and from now on each feature at once; these, as they were given."""
        past = None if self.meetings is None else self.meetings.settle()
        if self.meetings is None or past is None:
            return None, None
        self.reserve(self.meetings.first)
        self._replay(past)
        return past, self.meetings.replayed(past, "raw")

    def forget(self, features: np.ndarray) -> None:
        """Forget some features, whose slots have the same numbers."""
        assert self.meetings is None
        self.complete()
        for member in self.members:
            member.state.forget(features[features < member.state.n_features])

    def reduce(self) -> None:
        """Keep only the state for predictions.

        Features without a slot stay rows' slopes in the log: as weights they would take K numbers each.
        """
        for member in self.members:
            member.fix(self.n_features, self.n_outputs)
        self.complete()

    def _meet(self, seen: dict[str, Any], weight: np.ndarray) -> Met | None:
        """Give slots to features of rows, which are in some views, and replay first occurrences."""
        met = None if self.meetings is None else self.meetings.meet(seen["raw"], weight, self.n_outputs)
        if met is not None and self.meetings is not None:
            for view in seen.keys() - {"raw"}:
                seen[view] = self.meetings.shown(met, view, seen[view])
            seen["raw"] = met.X
            self.reserve(self.meetings.first, met.n_slots)
            self._replay(met.past)
        return met

    def _replay(self, past: Past) -> None:
        """Let all members learn first occurrences."""
        if self.meetings is not None and len(past.sources):
            rows = {view: self.meetings.replayed(past, view) for view in self.meetings.values}
            each = [(member, rows[member.setting.view]) for member in self.members if member.setting.view in rows]
            threads.each(lambda member, X: member.replay(X, past), each, len(past.sources))

    def learn(self, rows: LabelledRows, again: bool = False) -> np.ndarray:
        """Learn rows with classes or numbers; predictions (M, n, K) of members, for each row before it is learned.

        If they were learned before, ``again``, views learn nothing from them.
        """
        X, y, weight, _ = rows
        if self.has_classes and self.n_outputs == 1:
            y = np.where(y == 1.0, 1.0, -1.0)
        y = np.ascontiguousarray(y, np.float64)
        predictions = np.empty((len(self.members), len(y), self.n_outputs))
        self.complete()
        shown, learns = hidden(X, self.hidden), np.zeros(len(y)) if again else weight
        seen = {"raw": X} | {name: transform(self._view(name, X), shown, learns) for name in self._view_names - {"raw"}}
        met = self._meet(seen, weight)
        names = self._view_names if again else self._view_names | {"raw"}
        entries = {view: entries_of(seen[view]) for view in names}
        self.latest = entries.get("raw"), met
        if len(self.hidden):
            entries["raw"] = entries_of(hidden(seen["raw"], self.hidden))
        threads.each(
            lambda member, written: member.learn(entries[member.setting.view], y, weight, written, met),
            list(zip(self.members, predictions, strict=True)),
            len(y),
        )
        if met is not None and met.visited.start < met.visited.stop:
            for member in self.members:
                member.state.forget(met.visited)
        return predictions

    def present(self, X: Any = None) -> LinearSnapshot:
        """The members as they are now, until they learn; rows, if any are to be predicted, bring their views."""
        for name in () if X is None else self._view_names - {"raw"}:
            self._view(name, X)
        return LinearSnapshot(self, self._reads(), self.views, (MOST, MOST))

    def snapshot(self) -> LinearSnapshot:
        """The members as they are now: their predictions stay the same to the bit while the group learns on."""
        reads, self._weights = self._reads(), None  # they are the snapshot's from here on
        counts = (0, 0) if self.meetings is None else (self.n_features, self.meetings.n_logged)
        return LinearSnapshot(self, reads, copy.deepcopy(self.views), counts)

    @property
    def _view_names(self) -> set[str]:
        """The views that members have."""
        return {member.setting.view for member in self.members}

    def _view(self, name: str, X: Any) -> Steady:
        """The view of this name, of rows like these."""
        if name not in self.views:
            self.views[name] = Steady.create(X.numbers.shape[1])
        return self.views[name]

    def _reads(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each member its weights (d, K) relative to the units (d,) of the features in its view."""
        if self._weights is None:
            self._weights = [member.weights(self.n_features, self.n_outputs) for member in self.members]
        return self._weights

    def keep(self, stays: list[int]) -> None:
        """Go on with some of the members."""
        self.members = [self.members[m] for m in stays]
        self.complete()

    def add_class(self, objective: Any, n_outputs: int) -> None:
        """Add a class, from which on members have ``n_outputs`` outputs and this objective.

        A second class needs no further margin. A third one turns one into three, in which the old one is that of class
        1.
        """
        if n_outputs > self.n_outputs:
            for member in self.members:
                member.add_outputs(objective, self.n_outputs, n_outputs)
            self.n_outputs = n_outputs
            self.complete()

    def prepare(self) -> None:
        """Drop spare capacity, which depends on how rows came in blocks, before a file is written."""
        for member in self.members:
            member.n_known = self.n_features if self.n_known is None else self.n_slots(self.n_known)
            member.n_logged = None if self.meetings is None else min(self.meetings.n_logged, LOGGED)
        if self.meetings is not None:
            self.meetings.n_known = self.n_known

    def _have_met(self, meetings: FirstMeetings | None) -> None:
        """Have slots for features that were met; dense numbers have slots, however many there are."""
        if meetings is not None:
            self.meetings = meetings
            self.reserve(max(self.n_features_of_rows, len(meetings.slot_of)))

    def complete(self) -> None:
        """Take note that the weights of members are others than before."""
        self._weights, self.n_changes = None, self.n_changes + 1


class LinearSnapshot(Part):
    """The members of a group with the weights, objectives, views and slots that they had.

    It asks the group about features that occurred once, so it is right as long as the group keeps its members and
    outputs, and of such features as long as the group has the rows in which they were met. Its ``counts`` are slots of
    features, and rows in which some features were met first: features that occurred later count nothing.
    """

    group: LinearGroup = argument()
    reads = children(ReadWeights, LEARNED)
    views: dict[str, Steady] = children(Steady, FIXED)
    objectives: list[Objective] = children(
        Objective, FIXED, make=lambda snapshot, _: snapshot.group.members[0].objective.copied()
    )
    counts: tuple[int, int] = number(FIXED, Sequence(COUNT, 2))

    def __init__(
        self, group: LinearGroup, reads: list[Read], views: dict[str, Steady], counts: tuple[int, int]
    ) -> None:
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
        """Predictions (M, n, K) of the members for rows."""
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
        """An array (d, ...) by feature in the order of the weights of members."""
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

        See :meth:`tunefree.pool.occurrences.FirstMeetings.alone_in`.
        """
        X, meetings, nothing = hidden(X, self.group.hidden), self.group.meetings, np.zeros(n_rows(X))
        seen = {"raw": X} | {name: transform(view, X, nothing) for name, view in self.views.items()}
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
