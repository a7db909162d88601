"""Losses of one prediction, by their names."""

from __future__ import annotations

from typing import Any

from tunefree.core.errors import ModelError
from tunefree.losses.pointwise import (
    Absolute,
    EpsilonInsensitive,
    Exponential,
    Hinge,
    Huber,
    Logistic,
    Power,
    Quantile,
    SmoothedHinge,
    Square,
    SquaredHinge,
    curvature,
    epsilon_insensitive,
    huber,
    left_slope,
    power_loss,
    quantile,
    slope,
    value,
)

CLASSIFICATION_LOSSES: dict[str, Any] = {
    "logistic": Logistic,
    "hinge": Hinge,
    "smoothed-hinge": SmoothedHinge,
    "squared-hinge": SquaredHinge,
    "exponential": Exponential,
    "square": Square,
}
REGRESSION_LOSSES: dict[str, Any] = {
    "square": Square,
    "absolute": Absolute,
    "power": power_loss,
    "epsilon-insensitive": epsilon_insensitive,
    "huber": huber,
    "quantile": quantile,
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


__all__ = [
    "CLASSIFICATION_LOSSES",
    "REGRESSION_LOSSES",
    "Absolute",
    "EpsilonInsensitive",
    "Exponential",
    "Hinge",
    "Huber",
    "Logistic",
    "Power",
    "Quantile",
    "SmoothedHinge",
    "Square",
    "SquaredHinge",
    "curvature",
    "epsilon_insensitive",
    "huber",
    "left_slope",
    "loss_of",
    "power_loss",
    "quantile",
    "slope",
    "value",
]
