"""What is learned from and what is counted: losses by their names, labels, and sums over a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tunefree import losses
from tunefree.errors import ModelError

CLASSIFICATION_LOSSES: dict[str, Any] = {
    "logistic": losses.Logistic,
    "hinge": losses.Hinge,
    "smoothed-hinge": losses.SmoothedHinge,
    "squared-hinge": losses.SquaredHinge,
    "exponential": losses.Exponential,
    "square": losses.Square,
}
REGRESSION_LOSSES: dict[str, Any] = {
    "square": losses.Square,
    "absolute": losses.Absolute,
    "power": losses.power_loss,
    "epsilon-insensitive": losses.epsilon_insensitive,
    "huber": losses.huber,
    "quantile": losses.quantile,
}


def loss_of(task: str, name: str | None) -> Any:
    """The loss called ``name``, its parameters behind colons: ``logistic``, ``huber:1.5``, ``quantile:0.9``.

    Parameters
    ----------
    task : {"classification", "regression"}
    name : str or None
        None for the logistic loss, or the square loss in regression.

    Raises
    ------
    ModelError
        For a name or parameters that make no loss of this task.

    Examples
    --------
    >>> loss_of("regression", "huber:2").delta
    2.0
    """
    known = REGRESSION_LOSSES if task == "regression" else CLASSIFICATION_LOSSES
    kind, *parameters = (name or next(iter(known))).split(":")
    if kind not in known:
        raise ModelError(f"unknown loss {kind!r} for {task}; choose one of {', '.join(known)}")
    if parameters and isinstance(known[kind], type):
        raise ModelError(f"the {kind} loss has no parameter; write {kind}")
    try:
        return known[kind](*map(float, parameters))
    except (TypeError, ValueError) as error:
        raise ModelError(f"loss {name!r}: {error}") from None


class Labels(NamedTuple):
    """The labels of some rows: distinct values, and which of them each row has."""

    values: list[Any]
    codes: np.ndarray  # (n,) int64

    @classmethod
    def of(cls, y: Any) -> Labels:
        """From an array of labels."""
        values, codes = np.unique(np.asarray(y), return_inverse=True)
        return cls(values.tolist(), codes.reshape(-1).astype(np.int64))


@dataclass
class Tally:
    """Sums over the rows of a stream, each predicted before it was learned."""

    rows: int = 0
    weight: float = 0.0  # sum of sample weights
    loss: float = 0.0  # weighted sum of losses
    errors: float = 0.0  # weighted sum of wrong classes, or of absolute errors in regression

    def add(self, weight: np.ndarray, suffered: np.ndarray, errors: np.ndarray) -> None:
        """Add a batch; sums run row by row, so that they do not depend on where batches are cut."""
        self.rows += len(weight)
        self.weight = _running(self.weight, weight)
        with np.errstate(over="ignore"):
            self.loss = _running(self.loss, weight * suffered)
            self.errors = _running(self.errors, weight * errors)

    def mean_loss(self) -> float:
        return self.loss / self.weight if self.weight > 0 else 0.0

    def mean_error(self) -> float:
        return self.errors / self.weight if self.weight > 0 else 0.0


def _running(start: float, terms: np.ndarray) -> float:
    with np.errstate(over="ignore"):
        return float(np.minimum(np.cumsum(np.concatenate([[start], terms]))[-1], 1e308))


def chosen(margins: np.ndarray) -> np.ndarray:
    """The class with the largest margin; with one margin, class 1 where it is positive."""
    return (margins[:, 0] > 0).astype(np.int64) if margins.shape[1] == 1 else margins.argmax(axis=1)
