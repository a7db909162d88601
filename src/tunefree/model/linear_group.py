"""Linear members on the features as they are given, and the views that they share."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from tunefree.core import threads
from tunefree.core.rows import n_entries, n_rows, rows_with_weight
from tunefree.core.states import flatten, under
from tunefree.model import views
from tunefree.model.group import Further, LabelledRows, MemberGroup, Read, WeightedRows
from tunefree.model.meetings import MOST, FirstMeetings, Met, Past, with_room
from tunefree.model.members import Member, Setting
from tunefree.model.mixture import failures
from tunefree.model.standing import created
from tunefree.model.views import create_view, transform


class LinearGroup(MemberGroup):
    """Linear learners, each on its view of the rows; members with the same view share it.

    Parameters
    ----------
    settings : list of Setting
        The members; there may be none.
    objective : objective
    n_features, n_outputs : int
    average : bool
        Whether the members' weights are the averages of their iterates.
    meetings : FirstMeetings, optional
        By which features get slots, for members that all can replay. Wherever weights are indexed by features here, it
        is by slots then.
    """

    name = "linear"
    uses_threads = True

    def __init__(
        self,
        settings: list[Setting],
        objective: Any,
        n_features: int,
        n_outputs: int,
        average: bool,
        meetings: FirstMeetings | None = None,
    ) -> None:
        self.meetings = meetings
        self._met: Met | None = None  # of the latest rows
        self.n_features, self.n_outputs = self.n_slots(n_features), n_outputs
        self.members = [created(own, average, self.n_features, n_outputs, objective) for own in settings]
        self.views: dict[str, Any] = {}  # by name, from the first rows on; raw rows need none
        self._weights: list[tuple[np.ndarray, np.ndarray]] | None = None  # until a member changes

    @property
    def n_columns(self) -> int | None:
        """How many dense columns rows have; None before the first row, and where no member has a view."""
        return next((len(view.centres) for view in self.views.values()), None)

    @property
    def is_sparse(self) -> bool | None:
        return None if self.n_columns is None else self.n_columns == 0

    def reserve_features(self, n_features: int) -> None:
        """Have room for at least so many features, as far as they have slots."""
        self.n_features, self._weights = max(self.n_features, self.n_slots(n_features)), None
        self.reserve_slots(self.n_features)

    def reserve_slots(self, n_slots: int) -> None:
        """Have room for so many slots, some of which may be given later."""
        for member in self.members:
            member.reserve(n_slots, self.n_outputs)

    def n_slots(self, n_features: int) -> int:
        """Slots of the first so many features."""
        return n_features if self.meetings is None else self.meetings.n_slots(n_features)

    def settle(self) -> tuple[Past | None, Any]:
        """Learn all first meetings, and from now on each feature when it is first met; these, as they were given."""
        past = None if self.meetings is None else self.meetings.settle()
        if self.meetings is None or past is None:
            return None, None
        self.reserve_features(self.meetings.first)
        self._replay(past)
        return past, self.meetings.replayed(past, "raw")

    def taught(self) -> LinearGroup | None:
        """A copy whose members have learned all first meetings; None if some of these are not known any more."""
        other = copy.deepcopy(self)
        other.settle()
        return None if other.meetings is not None and other.meetings.n_partial else other

    @property
    def n_met(self) -> int:
        """Features that were met in rows that were learned, as far as members know of them."""
        alone = 0 if self.meetings is None else self.meetings.n_met_once
        return alone + max((int(np.count_nonzero(units)) for _, units in self.weights()), default=0)

    @property
    def meetings_held(self) -> Any:
        """What is kept of first meetings, as nested arrays."""
        return () if self.meetings is None else (self.meetings.known, self.meetings.values)

    def take_met(self) -> Met | None:
        """What was met in the latest rows, handed out once; None where features have the slots of their own numbers."""
        taken, self._met = self._met, None
        return taken

    def _meet(self, seen: dict[str, Any], weight: np.ndarray) -> Met | None:
        """Give slots to features of rows, which are in some views, and replay first meetings."""
        met = None if self.meetings is None else self.meetings.meet(seen["raw"], weight)
        if met is not None and self.meetings is not None:
            for view, X in seen.items():
                self.meetings.note(met, view, X)
                seen[view] = self.meetings.shown(met, X)
            self.reserve_features(self.meetings.first)
            self._replay(met.past)
        self._met = met
        return met

    def _replay(self, past: Past) -> None:
        """Let all members learn first meetings."""
        if self.meetings is not None and len(past.sources):
            rows = {view: self.meetings.replayed(past, view) for view in self.meetings.values}
            each = [(member, rows[member.setting.view]) for member in self.members if member.setting.view in rows]
            threads.each(lambda member, X: member.replay(X, past), each, len(past.sources))

    def learn(
        self, rows: LabelledRows, predictions: np.ndarray, busy: list[int] | None = None, again: bool = False
    ) -> None:
        X, y, weight, _ = rows
        self._weights = None
        chosen = range(len(self.members)) if busy is None else busy
        self.work += n_entries(rows_with_weight(X, weight)) * len(chosen) * self.n_outputs
        shown = {self.members[m].setting.view for m in chosen}
        seen = self._transformed(X, shown, np.zeros(len(y)) if again else weight)
        met = self._meet(seen, weight)
        threads.each(
            lambda member, written: member.learn(seen[member.setting.view], y, weight, written, met),
            [(self.members[m], predictions[m]) for m in chosen],
            len(y),
        )
        if self.observer is not None:
            self.observer(seen, rows, predictions, list(chosen))
        for m in chosen:
            failures(predictions[m])

    def predict(self, X: Any) -> np.ndarray:
        seen = self._transformed(X, {member.setting.view for member in self.members}, np.zeros(n_rows(X)))
        alone, seen = self.alone_in(seen), self._with_slots(seen)
        predictions = np.empty((len(self.members), n_rows(X), self.n_outputs))

        def of_member(member: Member, weights: Any, written: np.ndarray) -> None:
            written[:] = member.predict(seen[member.setting.view], weights, alone(member))

        threads.each(of_member, zip(self.members, self.weights(), predictions, strict=True), n_rows(X))
        return predictions

    def _transformed(self, X: Any, shown: set[str], learns: np.ndarray) -> dict[str, Any]:
        """The rows in some views, and as they are; the views learn from rows with ``learns`` above 0."""
        seen = {"raw": X}
        for name in shown - {"raw"}:
            if name not in self.views:
                self.views[name] = create_view(name, X)
            seen[name] = transform(self.views[name], X, learns)
        return seen

    def _shown(self, X: Any, views: set[str]) -> dict[str, Any]:
        """Rows that teach nothing in some views, with slots."""
        return self._with_slots(self._transformed(X, views, np.zeros(n_rows(X))))

    def _with_slots(self, seen: dict[str, Any]) -> dict[str, Any]:
        return seen if self.meetings is None else {view: self.meetings.in_slots(X) for view, X in seen.items()}

    def weights(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each member its weights (d, K) relative to the units (d,) of the features in its view."""
        if self._weights is None:
            self._weights = [member.weights(self.n_features, self.n_outputs) for member in self.members]
        return self._weights

    def reads(self, n_features: int) -> list[Read] | None:
        n_slots = self.n_slots(n_features)
        return [(weights[:n_slots], units[:n_slots]) for weights, units in self.weights()]

    def with_weights(self, reads: list[Read]) -> LinearGroup:
        other = copy.copy(self)
        other._weights = reads
        return other

    def n_weights(self, n_features: int) -> int:
        return len(self.members) * n_features * self.n_outputs

    def alone_in(
        self, seen: dict[str, Any], n_slots: int = MOST, n_met: int = MOST
    ) -> Callable[[Member], Further | None]:
        """For each member the entries of rows that have no slot, though their features were met, and their weights.

        ``seen`` are the rows in the views of the members; see :meth:`tunefree.model.meetings.FirstMeetings.alone_in`.
        """
        found = None if self.meetings is None else self.meetings.alone_in(seen["raw"], n_slots, n_met)
        if self.meetings is None or found is None:
            return lambda member: None
        past, views = found.past, [view for view in seen if view in self.meetings.values]
        rows = {view: (found.rows(seen[view]), self.meetings.replayed(past, view)) for view in views}

        def of_member(member: Member) -> Further | None:
            own = rows.get(member.setting.view)
            read = None if own is None else member.past_weights(own[1], past)
            return None if own is None or read is None else Further(own[0], read, np.append(0, past.features))

        return of_member

    @property
    def moving_views(self) -> dict[str, Any]:
        return self.views

    def shown(self, X: Any, moving: dict[str, Any], n_features: int) -> dict[str, Any]:
        return self._with_slots(self._moved(X, moving))

    @property
    def counts(self) -> tuple[int, int]:
        return (0, 0) if self.meetings is None else (self.n_features, int(self.meetings.known.counts[1]))

    def further(self, X: Any, moving: dict[str, Any], counts: tuple[int, int]) -> Callable[[Member], Further | None]:
        if self.meetings is None:
            return lambda member: None
        return self.alone_in(self._moved(X, moving), *counts)

    def _moved(self, X: Any, moving: dict[str, Any]) -> dict[str, Any]:
        """Rows in all views, with the statistics that these had."""
        nothing = np.zeros(n_rows(X))
        return {"raw": X} | {name: transform(view, X, nothing) for name, view in moving.items()}

    def by_slot(self, of_features: np.ndarray) -> np.ndarray:
        return of_features if self.meetings is None else self.meetings.by_slot(of_features)

    def by_feature(self, of_slots: np.ndarray, n_features: int) -> np.ndarray:
        """What belongs to the weights of members, by feature (d, ...); 0 for features that have none."""
        if self.meetings is not None:
            return self.meetings.by_feature(of_slots, n_features)
        found = np.zeros((n_features, *of_slots.shape[1:]), of_slots.dtype)
        found[: len(of_slots)] = of_slots[:n_features]
        return found

    @property
    def has_weights(self) -> bool:
        return True

    def weighted_rows(self, X: Any, members: list[int]) -> list[WeightedRows]:
        seen = self._transformed(X, {self.members[m].setting.view for m in members}, np.zeros(n_rows(X)))
        alone, seen = self.alone_in(seen), self._with_slots(seen)
        weights = self.weights()
        return [WeightedRows(seen[self.members[m].setting.view], *weights[m], alone(self.members[m])) for m in members]

    def in_view(self, X: Any, view: str) -> Any:
        return self._shown(X, {view})[view]

    def add(self, member: Member) -> None:
        counts = [(other.rows, other.mass) for other in (member, *self.members)]
        member.rows, member.mass = max(counts)
        self.members, self._weights = [*self.members, member], None

    def keep(self, stays: list[int]) -> None:
        self.members, self._weights = [self.members[m] for m in stays], None

    def add_class(self, objective: Any, n_outputs: int, n_classes: int) -> None:
        if n_outputs > self.n_outputs:
            for member in self.members:
                member.add_outputs(objective, self.n_outputs, n_outputs)
            self.n_outputs, self._weights = n_outputs, None

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays: dict[str, np.ndarray] = {}
        header: dict[str, Any] = {"members": [], "views": sorted(self.views)}
        n_slots = self.n_slots(n_features)
        if self.meetings is not None and self.meetings.is_needed:
            of_meetings, header["meetings"] = self.meetings.save_state(n_features)
            arrays |= {f"meetings.{name}": array for name, array in of_meetings.items()}
        for name, view in self.views.items():
            arrays |= flatten(f"views.{name}", view, n_features)[0]
        for m, member in enumerate(self.members):
            own, own_header = member.save_state(n_slots)
            if "log" in own and self.meetings is not None:
                own["log"] = with_room(own["log"], self.meetings.n_logged)[: self.meetings.n_logged]
            arrays |= {f"{m}.{name}": array for name, array in own.items()}
            header["members"].append(own_header)
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        if "meetings" in header and self.meetings is not None:
            self.meetings.restore(under("meetings.", arrays), header["meetings"])
            self.reserve_features(max(self.n_features, len(self.meetings.known.slot_of)))
        for m, (member, saved) in enumerate(zip(self.members, header["members"], strict=True)):
            member.restore(under(f"{m}.", arrays), saved)
        for name in header["views"]:
            self.views[name] = views.restored(name, f"views.{name}", arrays)
        self._weights = None
