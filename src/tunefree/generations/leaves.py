"""Living leaves: the learners of the papers add a correction on the leaves that a row reaches, from zero.

The prediction is the trees' own plus the sum of the weights of the row's leaves, one in each tree. Nothing is replayed:
a learner sees the rows after the trees were grown, each once. Numbers are learned as what the trees leave of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core import compiled, states
from tunefree.core.coordinates import room
from tunefree.core.rows import OneHot, n_rows, row
from tunefree.learners import ALL
from tunefree.learners.contract import Scale, coordinate, factor, magnitude, predict, update, with_outputs
from tunefree.losses import loss_of, objectives
from tunefree.losses.kinds import arrays_of
from tunefree.losses.loops import Loop

# Initial wealth of a leaf, per unit of margin: flat between a third and three times these (measured on eight tables).
WEALTH = {"boosted": 0.03, "randomised": 0.1}
RATE = 2.0  # of NAG, which follows changes


@Loop
def _follow(functions):
    scale_of, respond, differentiate = functions.scale_of, functions.respond, functions.differentiate

    def follow(state, codes, numbers, leaves, offsets, y, weight, predictions):
        n_outputs = predictions.shape[1]
        scratch = np.zeros((3, room(n_outputs)))
        margins, gradient, curvature = scratch[0, :n_outputs], scratch[1, :n_outputs], scratch[2, :n_outputs]
        for i in range(n_rows(leaves)):
            known = scale_of(numbers, weight[i]) if weight[i] > 0.0 else Scale(0.0, 0.0, 0.0)  # which changes no state
            x = row(leaves, i)
            predict(state, x, known, margins)
            for k in range(n_outputs):
                margins[k] += offsets[i, k]
            respond(codes, numbers, n_outputs, margins, predictions[i])
            if weight[i] > 0.0:
                differentiate(codes, numbers, y[i], weight[i], n_outputs, margins, gradient, curvature)
                update(state, x, gradient, curvature)

    return follow


def log_probabilities(margins: np.ndarray, n_classes: int, rows: int) -> np.ndarray:
    """Log-probabilities (n, n_classes) of margins, which may be of fewer classes.

    Parameters
    ----------
    margins : (n, K) array
        One of two classes, or one for each class that the member knows.
    n_classes : int
    rows : int
        That the member learned: a class that it does not know has 1 / (rows + n_classes).

    Examples
    --------
    >>> np.exp(log_probabilities(np.array([[0.0]]), 3, 7)).round(3)
    array([[0.45, 0.45, 0.1 ]])
    """
    if margins.shape[1] == 1:
        with np.errstate(invalid="ignore"):  # NaN of a member that sleeps stays NaN
            logs = np.column_stack([-np.logaddexp(0.0, margins[:, 0]), -np.logaddexp(0.0, -margins[:, 0])])
    else:
        logs = margins - margins.max(axis=1, keepdims=True)
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    missing = n_classes - logs.shape[1]
    if missing > 0:
        unknown = 1.0 / (rows + n_classes)
        rest = np.full((len(logs), missing), np.log(unknown))
        logs = np.concatenate([logs + np.log1p(-missing * unknown), rest], axis=1)
    return logs


@compiled.entry
def _write_weights(state, weights):
    for j in range(len(weights)):
        for k in range(weights.shape[1]):
            unit = magnitude(state, j)
            weights[j, k] = coordinate(state, j, k) * factor(state, k) / unit if unit > 0.0 else 0.0


@compiled.entry
def _add_weights(weights, leaves, sums):
    for i in range(len(leaves)):
        for t in range(leaves.shape[1]):
            for k in range(sums.shape[1]):
                sums[i, k] += weights[leaves[i, t], k]


class LivingLeaves:
    """A learner on the leaves of some trees.

    Parameters
    ----------
    learner : str
        A name in ``learners.ALL``.
    settings : dict
        Its parameters.
    n_leaves, n_outputs : int
        Of all trees together; margins of a row.
    objective : objective
        See :mod:`tunefree.losses.objectives`.
    """

    def __init__(self, learner: str, settings: dict[str, float], n_leaves: int, n_outputs: int, objective: Any) -> None:
        self.objective, self.learner = objective, learner
        self.state = ALL[learner].create(n_leaves, n_outputs, **settings)
        if learner == "nag":  # as if each leaf had been met once, at a slope of 1: the first row moves it by less
            self.state.features["inverse"] = self.state.features["largest"] = 1.0
            self.state.coordinates["squares"] = 1.0

    @property
    def is_of_numbers(self) -> bool:
        """Whether targets are numbers."""
        return bool(self.objective.task == "regression")

    def follow(self, leaves: np.ndarray, margins: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Predict rows, and learn each after that.

        Parameters
        ----------
        leaves : (n, trees) int32 array
        margins : (n, K) array
            What the trees themselves predict.
        y : (n,) array
            Targets as the objective takes them.
        weight : (n,) array
            A row of weight 0 is predicted only.

        Returns
        -------
        (n, K) array
            Margins, or predicted numbers.
        """
        predictions, arrays = np.empty(margins.shape), arrays_of(self.objective)
        if self.is_of_numbers:
            with np.errstate(over="ignore"):
                rest = np.clip(y - margins[:, 0], -1e300, 1e300)
            _follow(self.state, *arrays, OneHot(leaves), np.zeros(margins.shape), rest, weight, predictions)
            predictions += margins
        else:
            _follow(self.state, *arrays, OneHot(leaves), margins, y, weight, predictions)
        self.objective = arrays.restored(self.objective)
        return predictions

    def frozen(self) -> FrozenLeaves:
        """What the leaves have learned, which learns no more."""
        weights = np.empty((len(self.state.features), self.state.coordinates.shape[1]))
        _write_weights(self.state, weights)
        largest = float(np.abs(weights).max(initial=0.0))
        levels = (
            (weights / largest).astype(np.float16) if largest > 0.0 else np.zeros((0, weights.shape[1]), np.float16)
        )
        return FrozenLeaves(self.objective, levels, largest)

    def add_class(self, n_classes: int) -> None:
        """Have one more output, of which nothing is known."""
        n_before = len(self.state.outputs)
        first = 1 if n_before == 1 else 0
        self.state = with_outputs(self.state, n_classes, first, mirrors=first == 1)
        if self.learner == "nag":
            self.state.coordinates["squares"][:, first + n_before :] = 1.0
        self.objective = objective_of(n_classes, None)

    @property
    def nbytes(self) -> int:
        """Bytes of its statistics."""
        return states.size_of(self.state)

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same."""
        arrays, scalars = states.flatten("leaves", self.state, len(self.state.features))
        objective = {name: value for name, value in self.objective._asdict().items() if name != "loss"}
        return arrays, {"scalars": scalars, "objective": objective}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take over what :meth:`save_state` gave, of as many leaves."""
        self.state = states.filled("leaves", self.state, arrays, header["scalars"])
        self.objective = self.objective._replace(**header["objective"])


class FrozenLeaves:
    """The weights of leaves that no longer learn.

    Parameters
    ----------
    objective : objective
        As it was.
    levels : (n_leaves, K) float16 array
        Weights relative to the largest one; none where all are 0. Single precision holds them while they are used.
    largest : float
        Absolute value of a weight.
    """

    def __init__(self, objective: Any, levels: np.ndarray, largest: float) -> None:
        self.objective, self.levels, self.largest = objective, levels.astype(np.float32), largest

    def follow(self, leaves: np.ndarray, margins: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Predict rows as :meth:`LivingLeaves.follow` does, and learn nothing."""
        sums = np.zeros(margins.shape)
        if len(self.levels):
            _add_weights(self.levels, leaves, sums)
        sums *= self.largest
        return margins + self.objective.predictions_of(sums)

    def frozen(self) -> FrozenLeaves:
        """The same."""
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of the weights."""
        return self.levels.nbytes

    def save_state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restored` makes the same."""
        objective = {name: value for name, value in self.objective._asdict().items() if name != "loss"}
        return {"levels": self.levels.astype(np.float16)}, {"largest": self.largest, "objective": objective}

    @classmethod
    def restored(cls, objective: Any, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> FrozenLeaves:
        """What :meth:`save_state` wrote down; ``objective`` is a blank one of the same task and loss."""
        return cls(objective._replace(**header["objective"]), np.array(arrays["levels"]), header["largest"])


def objective_of(n_classes: int, loss: Any) -> Any:
    """The objective of a task: classes have log-loss, numbers (``n_classes`` 0) the loss given."""
    if n_classes == 0:
        return objectives.regression(loss)
    return objectives.Binary(loss_of("classification", None), 0.0) if n_classes <= 2 else objectives.Multinomial(1.0)


def learners_of(kind: str) -> list[tuple[str, dict[str, float]]]:
    """The learners on the leaves of a kind of generation, with their parameters; none for one without leaves."""
    return [("scinol2", {"epsilon": WEALTH[kind]}), ("nag", {"eta": RATE})] if kind in WEALTH else []
