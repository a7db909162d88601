"""A linear learner as a member of a model: its state, its objective, and the name of its view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.rows import n_rows
from tunefree.core.states import filled, flatten
from tunefree.learners import ALL, Averaged
from tunefree.learners.contract import check_room, fresh, grow, traits_of
from tunefree.losses.objectives import predictions_of, with_slopes_as_they_come
from tunefree.model import meetings, passes
from tunefree.model.meetings import Met, Past

Read = tuple[np.ndarray, np.ndarray]  # weights (d, K) relative to the units (d,) of the features


class Setting(NamedTuple):
    """Which learner a member is, with which parameters, on which view of the rows."""

    learner: str  # a name in learners.ALL or kernel.learners.ALL
    settings: dict[str, float]  # its parameters
    view: str  # "raw", a name in views.ALL, or one in pool.VIEWS


@dataclass
class Member:
    """A linear learner of a model.

    Parameters
    ----------
    setting : Setting
    average : bool
        Whether its weights are the averages of its iterates.
    state, objective
        As :func:`tunefree.model.passes.learn` takes them.
    """

    setting: Setting
    average: bool
    state: Any
    objective: Any
    log: np.ndarray | None = None  # of rows, for first meetings that are replayed; there is none before the first

    @classmethod
    def create(cls, setting: Setting, average: bool, n_features: int, n_outputs: int, objective: Any) -> Member:
        """A member that has seen no row."""
        try:
            state = ALL[setting.learner].create(n_features, n_outputs, **setting.settings)
        except TypeError:
            raise ModelError(f"{setting.learner} has no setting among {', '.join(setting.settings)}") from None
        if traits_of(ALL[setting.learner]).takes_slopes_as_they_come:
            objective = with_slopes_as_they_come(objective)
        made = Averaged.create(state) if average else state
        check_room(made)
        return cls(setting, average, made, objective)

    @property
    def name(self) -> str:
        """Learner, parameters and view, in words."""
        return name_of(self.setting)

    @property
    def room(self) -> int:
        """Features there is room for."""
        return len(self.state.coordinates)

    def reserve(self, n_features: int, n_outputs: int) -> None:
        """Have room for at least so many features; the room doubles, so that the cost of copies stays small."""
        if n_features > self.room:
            self.resize(max(n_features, 2 * self.room), n_outputs)

    def resize(self, n_features: int, n_outputs: int, first: int = 0) -> None:
        """Have room for at least as many features and outputs as before; the first output becomes output ``first``."""
        self.state = grow(self.state, n_features, n_outputs, first)

    def add_outputs(self, objective: Any, before: int, n_outputs: int) -> None:
        """Have more outputs than the ``before`` so far; the margin of two classes becomes that of class 1.

        The steepest slope so far still bounds the slopes of the new objective.
        """
        first = 1 if before == 1 else 0
        self.resize(self.room, n_outputs, first)
        if self.log is not None:
            self.log = meetings.with_outputs(self.log, n_outputs, first, passes.OF_ROW)
        self.objective = objective._replace(steepest=max(objective.steepest, self.objective.steepest))

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray, predictions: np.ndarray, met: Met | None = None) -> None:
        """Learn rows in order; writes the prediction (n, K) of each row before it was learned.

        ``met`` tells what was left out of them; :meth:`replay` comes before.
        """
        if met is None:
            self.objective = passes.learn(self.state, self.objective, X, y, weight, predictions)
            return
        log = np.zeros((0, passes.OF_ROW + predictions.shape[1])) if self.log is None else self.log
        self.log = meetings.with_room(log, 1 + int(met.places.max(initial=-1)))
        of_rows = X, y, weight, predictions, met.left_out, met.places, self.log
        self.objective = passes.learn(self.state, self.objective, *of_rows)

    def replay(self, X: Any, past: Past) -> None:
        """Learn first meetings, rows of one entry each, of features that have room now."""
        if len(past.sources) and self.log is not None:
            passes.replay_all(self.state, X, past.sources, self.log)

    def weights(self, n_features: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray]:
        """Weights (d, K) relative to the units (d,) of the features: margin = sum of weight * x / unit."""
        weights, units = np.empty((n_features, n_outputs)), np.empty(n_features)
        passes.read(self.state, weights, units)
        return weights, units

    def past_weights(self, X: Any, past: Past) -> tuple[np.ndarray, np.ndarray] | None:
        """What :meth:`weights` would have of features that were met once, rows of one entry each, numbered by slots."""
        if self.log is None:
            return None
        n_features, n_outputs = 1 + int(past.slots.max(initial=1)), self.log.shape[1] - passes.OF_ROW
        state = fresh(self.state, n_features, n_outputs)
        passes.replay_all(state, X, past.sources, self.log)
        weights, units = np.empty((n_features, n_outputs)), np.empty(n_features)
        passes.read(state, weights, units)
        return weights, units

    def predict(self, X: Any, read: Read, further: Any = None) -> np.ndarray:
        """Margins (n, K), or predicted targets (n, 1), of rows in the member's view; ``read``: see :meth:`weights`.

        ``further`` are other entries of these rows (:class:`tunefree.model.group.Further`).
        """
        margins = scored(X, read)
        if further is not None:
            margins += scored(further.X, further.read)
        return predictions_of(self.objective, margins)

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` fills a member of the same setting."""
        arrays, scalars = flatten("learner", self.state, n_features)
        objective = {name: value for name, value in self.objective._asdict().items() if name != "loss"}
        return arrays | ({} if self.log is None else {"log": self.log}), {"scalars": scalars, "objective": objective}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take over what :meth:`save_state` wrote."""
        self.state = filled("learner", self.state, arrays, header["scalars"])
        self.objective = self.objective._replace(**header["objective"])
        self.log = np.array(arrays["log"]) if "log" in arrays else None


def scored(X: Any, read: Read) -> np.ndarray:
    """Margins (n, K) of rows."""
    weights, units = read
    margins = np.empty((n_rows(X), weights.shape[1]))
    passes.score(weights, units, X, margins)
    return margins


def name_of(setting: Setting) -> str:
    """Learner, parameters and view, in words.

    Examples
    --------
    >>> name_of(Setting("nag", {"eta": 2.0}, "steady")), name_of(Setting("scinol2", {}, "raw"))
    ('nag eta=2 steady', 'scinol2')
    """
    parts = [setting.learner, *(f"{name}={value:g}" for name, value in setting.settings.items())]
    return " ".join(parts if setting.view == "raw" else [*parts, setting.view])
