"""Running a learner over a stream, for the contract tests."""

from itertools import pairwise
from typing import Any

import numpy as np

from tunefree.compiled import functions
from tunefree.core.rows import n_rows, part
from tunefree.learners.weights import read
from tunefree.losses.objectives import measured
from tunefree.pool import passes


def run(state: Any, objective: Any, X: Any, y: Any, weight: Any, n_outputs: int, cuts: tuple[int, ...] = ()) -> Any:
    """Learn a stream, cut into batches at ``cuts``; returns (state, objective, predictions, losses)."""
    n = n_rows(X)
    predictions = np.empty((n, n_outputs))
    objective = objective.copied()
    for start, stop in pairwise([0, *cuts, n]):
        passes.learn(state, objective, part(X, start, stop), y[start:stop], weight[start:stop], predictions[start:stop])
    return state, objective, predictions, measured(objective, y, predictions)


def weights(state: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """A learner's weights and the units of its features; feature 0, the constant, left out."""
    values, units = read(state, n_features + 1)
    return values[1:], units[1:]


def naive_slope(rows: Any) -> Any:
    """The slope function of the objective of labelled rows, with sample weights, in NumPy."""
    return _derivative(rows, "slope", lambda odds, is_class: odds - is_class)


def naive_curvature(rows: Any) -> Any:
    """The second derivatives of the objective in the margins, with sample weights, in NumPy."""
    return _derivative(rows, "curvature", lambda odds, is_class: odds * (1 - odds))


def _derivative(rows: Any, name: str, of_softmax: Any) -> Any:
    def of_round(t: int, margins: np.ndarray) -> np.ndarray:
        is_class = np.arange(len(margins)) == rows.y[t]
        if rows.objective.is_softmax:
            odds = np.exp(margins - margins.max())
            return rows.weight[t] * of_softmax(odds / odds.sum(), is_class)
        loss = rows.objective.loss
        labels = [rows.y[t]] if rows.n_outputs == 1 else np.where(is_class, 1.0, -1.0)
        derivatives = [getattr(loss, name)(*pair) for pair in zip(labels, margins, strict=True)]
        return rows.weight[t] * np.array(derivatives) / loss.lipschitz

    return of_round


def uncompile(monkeypatch: Any) -> None:
    """Let kernels run as Python until the test ends."""
    monkeypatch.setattr(functions, "IS_COMPILED", False)
