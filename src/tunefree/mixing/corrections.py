"""Corrections: learners of this package on members' predictions, which begin at the base mixture.

A correction adds sum_i w_i x_i to the base, with weights w learned from zero. For classes x_i holds a number for each
class: that of member i is the difference of its log-probabilities from the base's, centred over the classes, so that
one weight serves all classes; one more feature is the base itself (a temperature), and one each class has (a bias).
For numbers x_i is the difference of member i from the base, in units of the base's typical residual.

A learner sees such a round as follows. Before it: a row of the ranges max_k x_ik - min_k x_ik, which bound the gradient
in w_i. After it: a row of the gradients g_i = sum_k (p_k - 1[k = y]) x_ik itself, with slope 1, and with the curvature
c for which c |g|^2 is the trace of the second derivative sum_k p_k (x_k - m) (x_k - m)', m = sum_k p_k x_k. With two
classes, and for numbers, c g g' is the second derivative itself.

A learner that loses at most a constant against w = 0 (ScInOL2: its initial wealth, 1 a feature) so loses at most that
against the base, on any stream.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import bounded
from tunefree.core.rows import DenseRow
from tunefree.learners import ALL
from tunefree.learners.contract import Scale, coordinate, factor, magnitude, predict, update

LEARNERS = (("scinol2", {"epsilon": 1.0}), ("newton", {"variance": 1.6}))  # one loses little, one learns fast
UNIT = 4.0  # features are divided by it, so that those within +-30 stay below what Newton takes for wide
MOST_CURVATURE = 1e6  # of c: where gradients vanish
CAUTION = 1e-30  # squared norm of a gradient below which a round teaches nothing


class Round(NamedTuple):
    """What a round is computed in: scratch for F features, of which classes have more than ``features``."""

    features: np.ndarray  # of classes (M + 1, K), of numbers (F,)
    candidates: np.ndarray  # predictions of the base and the corrections, of classes (3, K)
    losses: np.ndarray  # (3,) of these
    ranges: np.ndarray  # (F,)
    weights: np.ndarray  # (2, F) of the corrections
    gradient: np.ndarray  # (F,)
    margin: np.ndarray  # (1,)
    slopes: np.ndarray  # (2, 1)


@compiled.inline
def round_of(features, candidates, n):
    """Scratch for ``n`` features."""
    of_features = np.empty(n), np.empty((2, n)), np.empty(n)
    return Round(features, candidates, np.empty(3), *of_features, np.empty(1), np.empty((2, 1)))


@compiled.inline
def write_weights(state, c, row, slope, weight):
    """Write the weights of correction ``c`` before a round, whose slope is bounded; if it will be learned, its ranges
    are seen before."""
    if weight > 0.0:
        predict(state, DenseRow(row.ranges[1:], row.ranges[0]), Scale(slope * weight, 1.0, weight), row.margin)
    for i in range(len(row.ranges)):
        unit = magnitude(state, i)
        row.weights[c, i] = bounded(coordinate(state, i, 0) * factor(state, 0) / unit) if unit > 0.0 else 0.0


@compiled.inline
def learn_gradient(state, row, second_derivative, weight):
    """Learn the gradient of a round, whose second derivative has this trace."""
    gradient, slopes, norm = row.gradient, row.slopes, 0.0
    for i in range(len(gradient)):
        norm += gradient[i] * gradient[i]
    if norm > CAUTION:
        slopes[0, 0], slopes[1, 0] = weight, weight * min(second_derivative / norm, MOST_CURVATURE)
        update(state, DenseRow(gradient[1:], gradient[0]), slopes[0], slopes[1])


def created(n_features: int) -> list[Any]:
    """The learners, which know nothing."""
    return [ALL[name].create(n_features, 1, **settings) for name, settings in LEARNERS]
