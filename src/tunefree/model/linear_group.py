"""Linear members on the features as they are given, and the views that they share."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from tunefree.core import threads
from tunefree.core.rows import n_entries, n_rows, rows_with_weight
from tunefree.core.states import flatten, under
from tunefree.model import views
from tunefree.model.group import LabelledRows, MemberGroup, Read, WeightedRows
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
    """

    name = "linear"
    uses_threads = True

    def __init__(self, settings: list[Setting], objective: Any, n_features: int, n_outputs: int, average: bool) -> None:
        self.members = [created(own, average, n_features, n_outputs, objective) for own in settings]
        self.n_features, self.n_outputs = n_features, n_outputs
        self.views: dict[str, Any] = {}  # by name, from the first rows on; raw rows need none
        self._weights: list[tuple[np.ndarray, np.ndarray]] | None = None  # until a member changes

    @property
    def is_sparse(self) -> bool | None:
        return next((len(view.centres) == 0 for view in self.views.values()), None)

    def reserve_features(self, n_features: int) -> None:
        """Have room for at least so many features."""
        self.n_features, self._weights = max(self.n_features, n_features), None
        for member in self.members:
            member.reserve(self.n_features, self.n_outputs)

    def learn(
        self, rows: LabelledRows, predictions: np.ndarray, busy: list[int] | None = None, again: bool = False
    ) -> None:
        X, y, weight, _ = rows
        self._weights = None
        chosen = range(len(self.members)) if busy is None else busy
        self.work += n_entries(rows_with_weight(X, weight)) * len(chosen) * self.n_outputs
        shown = {self.members[m].setting.view for m in chosen}
        seen = self._transformed(X, shown, np.zeros(len(y)) if again else weight)
        threads.each(
            lambda member, written: member.learn(seen[member.setting.view], y, weight, written),
            [(self.members[m], predictions[m]) for m in chosen],
            len(y),
        )
        for m in chosen:
            failures(predictions[m])

    def predict(self, X: Any) -> np.ndarray:
        seen = self._transformed(X, {member.setting.view for member in self.members}, np.zeros(n_rows(X)))
        predictions = np.empty((len(self.members), n_rows(X), self.n_outputs))

        def of_member(member: Member, weights: Any, written: np.ndarray) -> None:
            written[:] = member.predict(seen[member.setting.view], weights)

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

    def weights(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each member its weights (d, K) relative to the units (d,) of the features in its view."""
        if self._weights is None:
            self._weights = [member.weights(self.n_features, self.n_outputs) for member in self.members]
        return self._weights

    def reads(self, n_features: int) -> list[Read] | None:
        return [(weights[:n_features], units[:n_features]) for weights, units in self.weights()]

    def with_weights(self, reads: list[Read]) -> LinearGroup:
        other = copy.copy(self)
        other._weights = reads
        return other

    def n_weights(self, n_features: int) -> int:
        return len(self.members) * n_features * self.n_outputs

    @property
    def moving_views(self) -> dict[str, Any]:
        return self.views

    def shown(self, X: Any, moving: dict[str, Any], n_features: int) -> dict[str, Any]:
        nothing = np.zeros(n_rows(X))
        return {"raw": X} | {name: transform(view, X, nothing) for name, view in moving.items()}

    @property
    def has_weights(self) -> bool:
        return True

    def weighted_rows(self, X: Any, members: list[int]) -> list[WeightedRows]:
        seen = self._transformed(X, {self.members[m].setting.view for m in members}, np.zeros(n_rows(X)))
        return [WeightedRows(seen[self.members[m].setting.view], *self.weights()[m]) for m in members]

    def in_view(self, X: Any, view: str) -> Any:
        return self._transformed(X, {view}, np.zeros(n_rows(X)))[view]

    def add(self, member: Member) -> None:
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
        for name, view in self.views.items():
            arrays |= flatten(f"views.{name}", view, n_features)[0]
        for m, member in enumerate(self.members):
            own, own_header = member.save_state(n_features)
            arrays |= {f"{m}.{name}": array for name, array in own.items()}
            header["members"].append(own_header)
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        for m, (member, saved) in enumerate(zip(self.members, header["members"], strict=True)):
            member.restore(under(f"{m}.", arrays), saved)
        for name in header["views"]:
            self.views[name] = views.restored(name, f"views.{name}", arrays)
        self._weights = None
