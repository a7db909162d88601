"""Banks of linear learners: on features that are made of the rows as the first rows fix them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tunefree.core import threads
from tunefree.core.rows import n_entries, n_rows, part, rows_with_weight
from tunefree.core.states import under
from tunefree.model.group import LabelledRows, Read
from tunefree.model.members import Setting
from tunefree.model.standing import created
from tunefree.model.warmup import WarmupBank

CHUNK = 512  # rows whose features are known at a time


class LinearBank(WarmupBank):
    """A bank of linear learners; subclasses say which features the members see.

    Parameters
    ----------
    settings : list of Setting
        The members.
    objective : objective
    n_outputs : int
    average : bool
        Whether the members' weights are the averages of their iterates.
    """

    def __init__(self, settings: list[Setting], objective: Any, n_outputs: int, average: bool) -> None:
        members = [created(own, average, self.n_member_features, n_outputs, objective) for own in settings]
        super().__init__(members, n_outputs)

    @property
    def n_member_features(self) -> int:
        """Features that members may have met, the constant included."""
        raise NotImplementedError

    def _seen(self, X: Any, members: list[int]) -> dict[str, Any]:
        """Rows as some members see them, by the view that their settings name."""
        raise NotImplementedError

    def _learn_seen(
        self,
        seen: dict[str, Any],
        rows: LabelledRows,
        predictions: np.ndarray,
        members: list[int],
        beside: Sequence[Callable[[], None]] = (),
    ) -> None:
        """Let some members learn a chunk of rows, and write what they predicted before (M, n, K).

        What is done ``beside`` has nothing to do with these rows.
        """

        def of_member(m: int) -> None:
            member = self.members[m]
            member.learn(seen[member.setting.view], rows.y, rows.weight, predictions[m])

        entries = {view: n_entries(rows_with_weight(shown, rows.weight)) for view, shown in seen.items()}
        self.work += sum(entries[self.members[m].setting.view] for m in members) * self.n_outputs
        threads.run([*beside, *(partial(of_member, m) for m in members)], len(rows.y))
        if self.observer is not None:
            self.observer(seen, rows, predictions, members)

    def reads(self, n_features: int) -> list[Read] | None:
        return self._weights() if self.frozen else None

    def add(self, member: Any) -> None:
        counts = [(other.rows, other.mass) for other in (member, *self.members)]
        member.rows, member.mass = max(counts)
        self.members, self._read = [*self.members, member], None

    def with_weights(self, reads: list[Read]) -> LinearBank:
        other = copy.copy(self)
        other._read = reads
        return other

    def n_weights(self, n_features: int) -> int:
        return len(self.members) * self.n_member_features * self.n_outputs

    def shown(self, X: Any, moving: dict[str, Any], n_features: int) -> dict[str, Any]:
        self._check_kind(X)
        return self._seen(X, list(range(len(self.members))))

    def _weights(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each member its weights (d, K) relative to the units (d,) of the features."""
        if self._read is None:
            self._read = [member.weights(self.n_member_features, self.n_outputs) for member in self.members]
        weights: list[tuple[np.ndarray, np.ndarray]] = self._read
        return weights

    def _predict(self, X: Any) -> np.ndarray:
        predictions = np.empty((len(self.members), n_rows(X), self.n_outputs))
        for start in range(0, n_rows(X), CHUNK):
            stop = min(start + CHUNK, n_rows(X))
            seen = self._seen(part(X, start, stop), list(range(len(self.members))))
            for member, read, written in zip(self.members, self._weights(), predictions, strict=True):
                written[start:stop] = member.predict(seen[member.setting.view], read)
        return predictions

    def add_class(self, objective: Any, n_outputs: int, n_classes: int) -> None:
        before = self.n_outputs
        super().add_class(objective, n_outputs, n_classes)
        if n_outputs > before:
            for member in self.members:
                member.add_outputs(objective, before, n_outputs)

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, header = super().save_state(n_features)
        header["members"] = []
        for m, member in enumerate(self.members):
            own, own_header = member.save_state(self.n_member_features)
            arrays |= {f"{m}.{name}": array for name, array in own.items()}
            header["members"].append(own_header)
        return arrays, header

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        super().restore(arrays, header)
        for m, (member, saved) in enumerate(zip(self.members, header["members"], strict=True)):
            member.restore(under(f"{m}.", arrays), saved)

    def __deepcopy__(self, memo: dict[int, Any]) -> LinearBank:
        """A copy that learns apart from this bank, which is not frozen; states of learners have their own layout."""
        made = copy.copy(self)
        made.members = [copy.copy(member) for member in self.members]
        for member in made.members:
            member.resize(member.room, self.n_outputs)
        return made
