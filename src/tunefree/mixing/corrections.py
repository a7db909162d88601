"""Corrections: learners on the predictions of members that start from the base mixture.

A correction adds sum_i w_i x_i to the base, with weights w learned from zero. For classes, x_i has a value for each
class: the log-probabilities of member i minus those of the base, centred over the classes, so that all classes share
one weight. One more feature is the base itself (a temperature), and each class has an indicator feature (a bias). For
numbers, x_i is the difference of member i from the base, in units of the base's typical residual.

In each round a learner gets two rows. It predicts a row of the ranges max_k x_ik - min_k x_ik, which bound the gradient
in w_i. It learns a row of the gradients g_i = sum_k (p_k - 1[k = y]) x_ik, with slope 1, and with the curvature c such
that c |g|^2 is the trace of the second derivative sum_k p_k (x_k - m) (x_k - m)', m = sum_k p_k x_k. With two classes,
and for numbers, c g g' equals the second derivative.

So a learner whose regret against w = 0 is at most a constant (ScInOL2: its initial wealth, 1 per feature) loses at most
this constant against the base, on any stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, Self

import numpy as np

from tunefree.core.numbers import CEILING, bounded
from tunefree.core.rows import Row
from tunefree.learners.contract import Learner, Scale
from tunefree.learners.newton import Newton
from tunefree.learners.scinol import ScInOL2
from tunefree.learners.weights import read

UNIT = 4.0  # divisor of features, so that features within +-30 stay below the bound WIDE of Newton
MOST_CURVATURE = 1e6  # largest c, which matters where gradients vanish
CAUTION = 1e-30  # rounds in which the squared norm of the gradient is smaller are not learned

# Kernels of mixing take the two corrections as states of one output.
STATES: dict[str, type[Learner]] = {"first": ScInOL2, "second": Newton}
LENGTHS = {"padded": 1}


class Corrections(NamedTuple):
    """Two corrections: one with a small regret, and one that learns fast."""

    first: ScInOL2
    second: Newton

    @classmethod
    def create(cls, n_features: int) -> Self:
        """Corrections before the first round."""
        return cls(ScInOL2(n_features, epsilon=1.0), Newton(n_features, variance=1.6))


def resized(state: Learner, n_features: int) -> Any:
    """A copy of a correction with another number of features; the first features keep their statistics."""
    copy = state.grown(n_features, 1)
    if isinstance(copy, Newton):  # its matrix then contains only the remaining features
        copy["used"][0] = min(copy["used"][0], n_features)
    return copy


class Scratch(NamedTuple):
    """Arrays for the computation of a round, for F features of the corrections."""

    indices: Annotated[np.ndarray, "uint32[features]"]  # 0, 1, .. of the features
    ranges: Annotated[np.ndarray, "float64[features]"]
    weights: Annotated[np.ndarray, "float64[2, features]"]  # of the corrections
    gradient: Annotated[np.ndarray, "float64[features]"]
    margin: Annotated[np.ndarray, "float64[1]"]
    slope: Annotated[np.ndarray, "float64[1]"]
    curvature: Annotated[np.ndarray, "float64[1]"]
    steps: Annotated[np.ndarray, "float64[2]"]  # predictions of the corrections; clipped with a logarithmic link only


def writer_of_weights(cls: type[Learner]) -> Callable[..., None]:
    """The function that writes the weights of a correction before a round."""
    predict, coordinate, factor, magnitude = cls.predict, cls.coordinate, cls.factor, cls.magnitude

    def write_weights(state, c, scratch, slope, weight):
        """Write the weights of correction ``c`` before a round, whose slope is bounded; if it will be learned, its
        ranges are seen before."""
        if weight > 0.0:
            predict(state, Row(scratch.indices, scratch.ranges), Scale(slope * weight, 1.0, weight), scratch.margin)
        for i in range(len(scratch.ranges)):
            unit = magnitude(state, i)
            scratch.weights[c, i] = bounded(coordinate(state, i, 0) * factor(state, 0) / unit) if unit > 0.0 else 0.0

    return write_weights


def learner_of_gradients(cls: type[Learner]) -> Callable[..., None]:
    """The function with which a correction learns a round."""
    update = cls.update

    def learn_gradient(state, scratch, second_derivative, weight):
        """Learn the gradient of a round, whose second derivative has this trace."""
        gradient, norm = scratch.gradient, 0.0
        for i in range(len(gradient)):
            norm += gradient[i] * gradient[i]
        if norm > CAUTION:
            scratch.slope[0] = weight
            scratch.curvature[0] = weight * min(second_derivative / norm, MOST_CURVATURE)
            update(state, Row(scratch.indices, gradient), scratch.slope, scratch.curvature)

    return learn_gradient


write_first, write_second = writer_of_weights(ScInOL2), writer_of_weights(Newton)
learn_first, learn_second = learner_of_gradients(ScInOL2), learner_of_gradients(Newton)


def write_both(first, second, scratch, slopes, weight, keeps_order, n_members):
    """Write the weights of both corrections before a round, whose slopes (2,) are bounded."""
    write_first(first, 0, scratch, slopes[0], weight)
    write_second(second, 1, scratch, slopes[1], weight)
    for c in range(2 if keeps_order else 0):
        keep_order(scratch.weights[c], n_members)


def keep_order(weights, n_members):
    """Change the weights of a correction, of the members and then of the base, so that its prediction rises with each
    member and with the base: no member's weight is below 0, and their sum is at most the weight of the base."""
    weights[n_members] = max(weights[n_members], -UNIT)
    total, room = 0.0, UNIT + min(weights[n_members], 0.0)
    for i in range(n_members):
        weights[i] = max(weights[i], 0.0)
        total += weights[i]
    for i in range(n_members if total > room else 0):
        weights[i] *= room / total


def weights_of(state: Learner) -> np.ndarray:
    """The weights (F,) of a correction."""
    weights, units = read(state)
    with np.errstate(over="ignore"):
        return np.clip(np.divide(weights[:, 0], units, out=np.zeros(len(units)), where=units > 0.0), -CEILING, CEILING)
