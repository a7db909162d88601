"""A linear member that stands still: its weights were found by all rows at once, and no row changes them.

It is a member of a group like others, on one of its views, so the mixture weighs it by its losses on rows that it did
not learn, and explanations, copies and files have it like any member with weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.model.group import Read
from tunefree.model.meetings import Met, Past
from tunefree.model.members import Member, Setting, split, with_offsets

LEARNER = "batch"  # the name of its learner in settings, which is not in learners.ALL
MERGED = "merged-"  # what the name of a learner begins with whose weights are means over learners of parts of the rows


class StandingMember(Member):
    """A member whose weights no row changes.

    Parameters
    ----------
    setting : Setting
    n_features, n_outputs : int
    objective : objective
        Of the members beside it, by which margins become predictions.

    Examples
    --------
    >>> from tunefree.core.rows import dense
    >>> from tunefree.losses import Logistic, objectives
    >>> member = StandingMember(Setting(LEARNER, {}, "raw"), 2, 1, objectives.Binary(Logistic(), 0.0))
    >>> member.take(np.array([[1.0], [6.0]]), np.array([1.0, 2.0]))
    >>> X, predictions = dense([[1.0]]), np.empty((1, 1))
    >>> member.learn(X, np.array([-1.0]), np.ones(1), predictions)
    >>> predictions, member.predict(X, member.weights(2, 1))
    (array([[4.]]), array([[4.]]))
    """

    def __init__(self, setting: Setting, n_features: int, n_outputs: int, objective: Any) -> None:
        super().__init__(setting, False, None, objective)
        self.take(np.zeros((n_features, n_outputs)), np.zeros(n_features))

    def take(self, weights: np.ndarray, units: np.ndarray) -> None:
        """Take over weights (d, K) relative to the units (d,) of the features."""
        self._read: Read = weights, units

    @property
    def room(self) -> int:
        return len(self._read[1])

    def resize(self, n_features: int, n_outputs: int, first: int = 0) -> None:
        self.take(*self._placed(n_features, n_outputs, first))

    def _add_outputs(self, n_outputs: int, first: int, mirrors: bool) -> None:
        self.resize(self.room, n_outputs, first)
        if mirrors:
            self.take(split(self._read[0]), self._read[1])
        if self.offsets is not None:
            self.take(*with_offsets(self._read, self.offsets))
            self.offsets = None

    def _placed(self, n_features: int, n_outputs: int, first: int = 0) -> Read:
        """The weights among those of so many features and outputs; others are 0."""
        weights, units = self._read
        placed = np.zeros((n_features, n_outputs)), np.zeros(n_features)
        kept = min(n_features, len(units))
        placed[0][:kept, first : first + weights.shape[1]] = weights[:kept]
        placed[1][:kept] = units[:kept]
        return placed

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray, predictions: np.ndarray, met: Met | None = None) -> None:
        """Predict rows (n, K), and learn nothing."""
        self._count(weight)
        predictions[:] = self.predict(X, self._read)

    def replay(self, X: Any, past: Past) -> None:
        """Learn nothing."""

    def past_weights(self, X: Any, past: Past) -> Read | None:
        """Features that were met once have no weights here."""
        return None

    def weights(self, n_features: int, n_outputs: int) -> Read:
        return self._placed(n_features, n_outputs)

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        weights, units = self._placed(n_features, self._read[0].shape[1])
        objective = {name: value for name, value in self.objective._asdict().items() if name != "loss"}
        return {"learner.weights": weights, "learner.units": units}, {
            "scalars": {},
            "objective": objective,
            "rows": self.rows,
            "mass": self.mass,
        }

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        self.take(arrays["learner.weights"], arrays["learner.units"])
        self.objective = self.objective._replace(**header["objective"])
        self.rows, self.mass = header.get("rows", 0), header.get("mass", 0.0)


def created(setting: Setting, average: bool, n_features: int, n_outputs: int, objective: Any) -> Member:
    """A member of either kind that has seen no row."""
    if setting.learner == LEARNER or setting.learner.startswith(MERGED):
        return StandingMember(setting, n_features, n_outputs, objective)
    return Member.create(setting, average, n_features, n_outputs, objective)
