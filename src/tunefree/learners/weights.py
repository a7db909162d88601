"""The weights of a learner: its latest iterate, or the average of its iterates (online-to-batch conversion).

The clock of an output is the sum of its factors so far. A coordinate that is unchanged since the clock was
``average_since`` contributes coordinate * (clock - since), which is added when the feature is next seen. So an average
costs only the non-zeros of each row. Rounds count by their weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.compiled.functions import Compiled
from tunefree.core.errors import ModelError
from tunefree.core.fields import per_coordinate, per_feature, per_output, single
from tunefree.core.numbers import bounded
from tunefree.core.schema import FROM_ZERO
from tunefree.learners.contract import Learner


class ReadWeights(NamedTuple):
    """Weights of a learner relative to the units of the features; the unit of an unknown feature is 0."""

    weights: Annotated[np.ndarray, "float64[d, outputs]"]
    units: Annotated[np.ndarray, "float64[d]", FROM_ZERO]


class Averaged(Learner):
    """A learner that keeps the sum of its weights over the rounds; :func:`averaged` derives one from any class."""

    average_units = per_feature("the learner's magnitude of the feature when it was last seen")
    average_totals = per_coordinate("sum of coordinates times factors, up to average_since")
    average_since = per_coordinate("the clock when the coordinate was last counted")
    average_clocks = per_output("sum of the factors of all rounds")
    average_rounds = single("sum of the rounds' weights")

    def factor(state, k):
        return 1.0

    def magnitude(state, j):
        return state.average_units[j]


@cache
def averaged(learner: type[Learner]) -> Any:
    """The subclass of a learner whose weights are the averages of its iterates.

    >>> from tunefree.learners.nag import NAG
    >>> state = averaged(NAG)(3, eta=0.25)
    >>> type(state).__name__, state.settings, averaged(type(state)) is type(state)
    ('AveragedNAG', {'eta': 0.25}, True)
    """
    if issubclass(learner, Averaged):
        return learner
    if not learner.traits.can_be_averaged:
        raise ModelError(
            f"{learner.__name__} moves all weights in every round, so no average of them is kept; "
            "leave out the average or choose another learner"
        )
    members = {
        "predict": _predict(learner.predict, learner.coordinate, learner.factor, learner.magnitude),
        "coordinate": _coordinate(learner.coordinate),
        "traits": learner.traits._replace(can_replay=False),
        "__doc__": f"The average of the iterates of {learner.__name__}.",
        "__module__": learner.__module__,
    }
    return type(f"Averaged{learner.__name__}", (Averaged, learner), members)


def with_averages(learners: Iterable[Any]) -> list[Any]:
    """The classes of learners, then their averaged classes, without duplicates."""
    classes = list(learners)
    return list(dict.fromkeys([*classes, *(averaged(cls) for cls in classes if cls.traits.can_be_averaged)]))


def _predict(
    predict_iterate: Callable[..., None],
    iterate: Callable[..., float],
    factor: Callable[..., float],
    magnitude: Callable[..., float],
) -> Callable[..., None]:
    def add_still(state, j, n_outputs):
        """Add a coordinate to its total for the rounds in which it stood still."""
        for k in range(n_outputs):
            still = iterate(state, j, k) * (state.average_clocks[k] - state.average_since[j, k])
            state.average_totals[j, k] = bounded(state.average_totals[j, k] + still)
            state.average_since[j, k] = state.average_clocks[k]

    def predict(state, row, scale, margins):
        for e in range(len(row.indices)):
            if row.values[e] != 0.0:
                add_still(state, row.indices[e], len(margins))
        predict_iterate(state, row, scale, margins)
        for e in range(len(row.indices)):
            j = row.indices[e]
            if row.values[e] != 0.0:
                # converts the total to the present unit of the feature, which grows with its largest value
                unit = magnitude(state, j)
                exchange = unit / state.average_units[j] if state.average_units[j] > 0.0 else 1.0
                for k in range(len(margins)):
                    share = factor(state, k) * scale.weight
                    total = bounded(state.average_totals[j, k] * exchange)
                    state.average_totals[j, k] = bounded(total + iterate(state, j, k) * share)
                    state.average_since[j, k] = state.average_clocks[k] + share
                state.average_units[j] = unit
        for k in range(len(margins)):
            state.average_clocks[k] = bounded(state.average_clocks[k] + factor(state, k) * scale.weight)
        state.average_rounds[0] += scale.weight

    return predict


def _coordinate(iterate: Callable[..., float]) -> Callable[..., float]:
    def coordinate(state, j, k):
        if state.average_rounds[0] == 0.0:
            return 0.0
        still = iterate(state, j, k) * (state.average_clocks[k] - state.average_since[j, k])
        return bounded(state.average_totals[j, k] + still) / state.average_rounds[0]

    return coordinate


@cache
def reading(learner: Any, has_one_output: bool) -> Compiled:
    """The compiled function that reads the weights of a class of learners."""
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

    kind = f"{learner.__module__}.{learner.__name__}".removeprefix("tunefree.")
    lengths = {"padded": 1, "outputs": 1} if has_one_output else {}
    return Compiled(read, f"read.{kind}.{'one' if has_one_output else 'several'}", {"state": learner}, lengths)


def read(state: Learner, n_features: int | None = None) -> ReadWeights:
    """The weights (d, K) of the first features, or of all, relative to their units (d,); 0 for unseen features.

    >>> from tunefree.learners.adagrad import AdaGrad
    >>> weights, units = read(AdaGrad(3, 2))
    >>> weights.shape, units
    ((3, 2), array([0., 0., 0.]))
    """
    n = state.n_features if n_features is None else n_features
    weights, units = np.empty((n, state.n_outputs)), np.empty(n)
    reading(type(state), state.n_outputs == 1)(state, weights, units)  # type: ignore[arg-type]
    return ReadWeights(weights, units)
