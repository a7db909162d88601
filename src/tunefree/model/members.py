"""One learner within a model: its state, its objective, and the rows as it sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tunefree.core.errors import ModelError
from tunefree.core.rows import n_rows
from tunefree.core.states import filled, flatten
from tunefree.learners import ALL, Averaged
from tunefree.learners.contract import grow
from tunefree.model import passes


class Setting(NamedTuple):
    """A member of the pool: a learner, what is set, and how it sees rows."""

    learner: str
    settings: dict[str, float]
    view: str


@dataclass
class Member:
    """A learner that learns.

    Parameters
    ----------
    setting : Setting
        Learner, its parameters, and its view of the rows.
    average : bool
        Whether its weights are the averages of its iterates.
    state, objective
        As :func:`tunefree.model.passes.learn` takes them.
    """

    setting: Setting
    average: bool
    state: Any
    objective: Any

    @classmethod
    def create(cls, setting: Setting, average: bool, n_features: int, n_outputs: int, objective: Any) -> Member:
        """A learner that has seen nothing."""
        try:
            state = ALL[setting.learner].create(n_features, n_outputs, **setting.settings)
        except TypeError:
            raise ModelError(f"{setting.learner} has no setting among {', '.join(setting.settings)}") from None
        return cls(setting, average, Averaged.create(state) if average else state, objective)

    @property
    def name(self) -> str:
        """Learner, parameters and view, in words."""
        return name_of(self.setting)

    @property
    def room(self) -> int:
        """Features there is room for."""
        return len(self.state.coordinates)

    def grow(self, n_features: int, n_outputs: int, first: int = 0) -> None:
        """Have room for more features or outputs; ``first`` is what the first output becomes."""
        self.state = grow(self.state, n_features, n_outputs, first)

    def learn(self, X: Any, y: np.ndarray, weight: np.ndarray, predictions: np.ndarray) -> None:
        """Learn rows in order; writes the predictions (n, K) made before each."""
        self.objective = passes.learn(self.state, self.objective, X, y, weight, predictions)

    def linear(self, n_features: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray]:
        """Weights (d, K) relative to the units (d,) of the features: margin = sum of weight * x / unit."""
        weights, units = np.empty((n_features, n_outputs)), np.empty(n_features)
        passes.read(self.state, weights, units)
        return weights, units

    def predict(self, X: Any, linear: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Margins (n, K), or predicted numbers (n, 1), of a block of rows as the member sees it."""
        weights, units = linear
        margins = np.empty((n_rows(X), weights.shape[1]))
        passes.score(weights, units, X, margins)
        return responded(self.objective, margins)

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` fills a member of the same setting."""
        arrays, scalars = flatten("learner", self.state, n_features)
        objective = {name: value for name, value in self.objective._asdict().items() if name != "loss"}
        return arrays, {"scalars": scalars, "objective": objective}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Become the member that :meth:`save_state` wrote down."""
        self.state = filled("learner", self.state, arrays, header["scalars"])
        self.objective = self.objective._replace(**header["objective"])


def responded(objective: Any, margins: np.ndarray) -> np.ndarray:
    """Margins as they are predicted: in regression, numbers like the targets."""
    if not hasattr(objective, "centre"):
        return margins
    with np.errstate(over="ignore"):
        return np.clip((objective.centre + margins) * objective.unit, -1e308, 1e308)


def name_of(setting: Setting) -> str:
    """Learner, parameters and view, in words.

    Examples
    --------
    >>> name_of(Setting("nag", {"eta": 2.0}, "steady")), name_of(Setting("scinol2", {}, "raw"))
    ('nag eta=2 steady', 'scinol2')
    """
    parts = [setting.learner, *(f"{name}={value:g}" for name, value in setting.settings.items())]
    return " ".join(parts if setting.view == "raw" else [*parts, setting.view])


def joined(pieces: list[np.ndarray], n_outputs: int) -> np.ndarray:
    """Margins of pieces with ever more outputs; a class not yet known has the margin of a class never chosen."""
    joined = [np.full((len(piece), n_outputs), -np.inf) for piece in pieces]
    for wide, piece in zip(joined, pieces, strict=True):
        if piece.shape[1] == n_outputs:
            wide[:] = piece
        elif piece.shape[1] == 1:
            wide[:, 0], wide[:, 1] = 0.0, piece[:, 0]
        else:
            wide[:, : piece.shape[1]] = piece
    return np.concatenate(joined) if joined else np.empty((0, n_outputs))
