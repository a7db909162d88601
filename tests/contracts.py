"""Running a learner over a stream, for the contract tests."""

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
    edges, objective = [0, *cuts, n], objective.copied()
    for start, stop in zip(edges[:-1], edges[1:], strict=True):
        passes.learn(state, objective, part(X, start, stop), y[start:stop], weight[start:stop], predictions[start:stop])
    return state, objective, predictions, measured(objective, y, predictions)


def weights(state: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """A learner's weights and the units of its features; feature 0, the constant, left out."""
    values, units = read(state, n_features + 1)
    return values[1:], units[1:]


def uncompile(monkeypatch: Any) -> None:
    """Let kernels run as Python until the test ends."""
    monkeypatch.setattr(functions, "IS_COMPILED", False)
