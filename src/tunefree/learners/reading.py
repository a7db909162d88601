"""The weights of a learner."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Annotated, Any

import numpy as np

from tunefree.compiled.functions import Compiled
from tunefree.core.numbers import bounded
from tunefree.learners import ALL
from tunefree.learners.averaging import with_averages
from tunefree.learners.contract import Learner


def reading_of(learner: type[Learner]) -> Callable[..., None]:
    """The loop over features in which the weights of a learner are read."""
    magnitude, coordinate, factor = learner.magnitude, learner.coordinate, learner.factor

    def read(
        state: Any,
        weights: Annotated[np.ndarray, "float64[features, outputs]"],
        units: Annotated[np.ndarray, "float64[features]"],
    ) -> None:
        for j in range(len(units)):
            units[j] = magnitude(state, j)
            for k in range(weights.shape[1]):
                weights[j, k] = bounded(coordinate(state, j, k) * factor(state, k)) if units[j] > 0.0 else 0.0

    return read


@cache
def reading(learner: Any, has_one_output: bool) -> Compiled:
    """The compiled function that reads the weights of a class of learners."""
    kind = f"{learner.__module__}.{learner.__name__}".removeprefix("tunefree.")
    lengths = {"padded": 1, "outputs": 1} if has_one_output else {}
    name = f"read.{kind}.{'one' if has_one_output else 'several'}"
    return Compiled(reading_of(learner), name, {"state": learner}, lengths)


def all_compiled() -> list[Compiled]:
    """The compiled functions of the learners of this package, and of the averages of their iterates."""
    return compiled_of(ALL[name] for name in ALL)


def compiled_of(learners: Iterable[type[Learner]]) -> list[Compiled]:
    """The compiled functions of learners, and of the averages of their iterates."""
    return [reading(learner, has_one) for learner in with_averages(learners) for has_one in (True, False)]


def read(state: Learner, n_features: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The weights (d, K) of the first features, or of all, relative to their units (d,); 0 where nothing is known.

    >>> from tunefree.learners.adagrad import AdaGrad
    >>> weights, units = read(AdaGrad(3, 2))
    >>> weights.shape, units
    ((3, 2), array([0., 0., 0.]))
    """
    n = state.n_features if n_features is None else n_features
    weights, units = np.empty((n, state.n_outputs)), np.empty(n)
    reading(type(state), state.n_outputs == 1)(state, weights, units)  # type: ignore[arg-type]
    return weights, units
