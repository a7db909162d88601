"""Online Newton steps: a second-order learner for few features.

Hazan, Agarwal, Kale: Logarithmic regret algorithms for online convex optimization (Machine Learning 2007), Figure 2,
with the curvature of the loss instead of its squared slope. For the logistic loss this is the extended Kalman filter
and the online natural gradient (Ollivier: Online natural gradient as a Kalman filter, EJS 2018). For each output, with
C the inverse of the regularised sum of curvature * x x' so far,

    C <- C - (C x)(C x)' s / (1 + s x'C x),    w <- w - C x g,    g the slope, s the curvature in the margin

The step of w is divided by 1 + max(s, g^2 / l) x'C x, with l the natural loss of the round: where the loss is nearly
linear, a wrong prediction moves the margin by no more than its natural size. Piecewise linear losses have s = g^2 / l.

All weights have the same prior variance, so features should have size about 1, as in the robustly scaled view. A
feature larger than WIDE gets a power of two as its unit, and its weight restarts at 0.

The matrix C has d^2 numbers for each output, and each row takes as many operations. Corrections of C are collected
until there are DEPTH of them, so that C is read and written once for all of them. After a row with a feature beyond the
largest allowed matrix, the learner predicts 0.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from tunefree.core.fields import EVEN, FEATURE, ODD, OUTPUT, Field, per_coordinate, per_feature, setting, single
from tunefree.core.numbers import LARGEST, bounded, unit_below
from tunefree.core.schema import Limits
from tunefree.learners.contract import Learner, Traits

MOST_NUMBERS = 2**18  # in all matrices together
RESOLVED = 1e-12  # part of the prior value of x'C x: less is lost in rounding, 2.2e-16 per entry and row
DEPTH = 4  # number of collected corrections, all of which `subtract` subtracts at once
STEEPEST = 1e200
WIDE = 8.0  # largest size of a feature in its unit
SIDE, DEEP = "side", "depth"  # names of axes: features in the matrices, and collected corrections


class Newton(Learner):
    """Online Newton steps with one matrix per output."""

    inverse = per_feature("1 / unit_i; 0 until the feature is first seen")
    prior = per_feature("C_ii before the first row with the feature")
    weights = per_coordinate("unit_i w_i", parity=ODD, is_halved=True)
    covariance: Any = Field((OUTPUT, SIDE, SIDE), "C in units, without the corrections that wait", parity=EVEN)
    corrections: Any = Field((OUTPUT, DEEP, SIDE), "C x of those that wait", parity=EVEN)
    ratios: Any = Field((OUTPUT, DEEP), "s / (1 + s x'C x) of those that wait", parity=EVEN)
    directions: Any = Field((SIDE,), "C x of the output at hand", is_saved=False)
    waiting = single("corrections that wait", limits=Limits(0, DEPTH + 1))
    used = single("features below it may have been seen", limits=Limits(0, "side+1"))
    is_off = single("1 once a row had a feature beyond the matrices")
    natural = single("natural loss of the latest round")
    variance = setting(1.0, "prior variance of a weight, in units of scale.margin and of the natural slope")
    axes_of_files: ClassVar = {FEATURE: SIDE}  # files contain as many features as the matrices
    traits = Traits(can_be_averaged=False, can_replay=True)

    def __init__(self, n_features: int, n_outputs: int = 1, **settings: float) -> None:
        super().__init__(self.lengths(n_features, n_outputs)[SIDE], n_outputs, **settings)

    @classmethod
    def lengths(cls, n_features: int, n_outputs: int) -> dict[str, int]:
        """The side of the largest allowed matrices, and the number of collected corrections."""
        return {SIDE: min(max(n_features, 2), math.isqrt(MOST_NUMBERS // n_outputs)), DEEP: DEPTH}

    def predict(state, row, scale, margins):
        margins[:] = 0.0
        state.natural[0] = scale.slope * scale.margin
        prepare(state, row, scale)
        if state.is_off[0] == 0.0:
            for e in range(len(row.indices)):
                j = row.indices[e]
                ratio = bounded(ratio_of(state, row, e))
                if ratio != 0.0:
                    for k in range(len(margins)):
                        margins[k] += state.weights[j, k] * ratio
            for k in range(len(margins)):
                margins[k] = bounded(margins[k])

    def update(state, row, gradient, curvature):
        if state.is_off[0] == 0.0 and state.natural[0] > 0.0:
            if state.waiting[0] == DEPTH:
                subtract_all(state)
            for k in range(len(state.covariance)):
                spread, least = project(state, row, k), least_spread(state, row, k)
                steepness = min(gradient[k] * gradient[k] / state.natural[0], STEEPEST)
                step = gradient[k] / (1.0 + max(curvature[k], steepness) * spread)
                for i in range(int(state.used[0])):
                    state.weights[i, k] = bounded(state.weights[i, k] - step * state.directions[i])
                correct(state, k, curvature[k] if curvature[k] > 0.0 else steepness, spread, least)
            state.waiting[0] += 1.0

    def coordinate(state, j, k):
        return state.weights[j, k] if state.is_off[0] == 0.0 else 0.0

    def magnitude(state, j):
        return 1.0 / state.inverse[j] if state.inverse[j] > 0.0 else 0.0

    def leave_out(state, scale, n_features):
        state.is_off[0] = 1.0  # only features beyond the matrices are left out, see tunefree.pool.occurrences

    def prepare_outputs(self, outputs: list[int]) -> None:
        """Give later outputs the prior of the features seen; without it they would learn nothing."""
        seen = np.arange(min(int(self.used[0]), self.covariance.shape[1]))
        for k in outputs:
            self.covariance[k, seen, seen] = self.prior[seen]


def prepare(state, row, scale):
    """Give new features their prior and their unit, too large ones a larger unit; or stop for good."""
    side = state.covariance.shape[1]
    if state.used[0] > side:  # with more outputs the matrices have fewer features
        state.is_off[0] = 1.0
    for e in range(len(row.indices)):
        j, value = row.indices[e], row.values[e]
        if value != 0.0 and state.is_off[0] == 0.0:
            if j >= side:
                state.is_off[0] = 1.0
            elif state.natural[0] > 0.0 and (state.inverse[j] == 0.0 or abs(value) * state.inverse[j] > WIDE):
                begin_feature(state, j, value, scale)


def begin_feature(state, j, value, scale):
    """Give feature ``j`` its prior, and a unit: 1, or a power of two so large that the value is at most WIDE units."""
    used = max(int(state.used[0]), j + 1)
    state.inverse[j] = 1.0 / unit_below(max(min(abs(value), LARGEST) / (WIDE / 2.0), 1.0))
    state.used[0] = used
    # The natural size of a weight over the natural size of a slope: a typical loss has curvature 1 / prior.
    prior = state.variance[0] * min(max(scale.margin * scale.weight / scale.slope, 1e-30), 1e30)
    state.prior[j] = prior
    for k in range(len(state.covariance)):
        state.weights[j, k] = 0.0
        for i in range(used):
            state.covariance[k, j, i] = 0.0
            state.covariance[k, i, j] = 0.0
        for w in range(DEPTH):
            state.corrections[k, w, j] = 0.0
        state.covariance[k, j, j] = prior


def ratio_of(state, row, e):
    """The value of an entry in the unit of its feature; of features beyond the matrices it is 0."""
    return row.values[e] * state.inverse[row.indices[e]] if row.values[e] != 0.0 else 0.0


def subtract_all(state):
    """Subtract the DEPTH corrections that wait from the matrices."""
    used = int(state.used[0])
    for k in range(len(state.covariance)):
        for i in range(used):
            subtract(state, k, i, used)
    state.waiting[0] = 0.0


def subtract(state, k, i, used):
    """Subtract all corrections from a row of the matrix at once."""
    matrix, ratios = state.covariance[k, i], state.ratios[k]
    one, two = state.corrections[k, 0], state.corrections[k, 1]
    three, four = state.corrections[k, 2], state.corrections[k, 3]
    p, q, r, s = ratios[0] * one[i], ratios[1] * two[i], ratios[2] * three[i], ratios[3] * four[i]
    for m in range(used):
        matrix[m] -= (p * one[m] + q * two[m]) + (r * three[m] + s * four[m])


def subtract_waiting(state: Newton) -> None:
    """Subtract all collected corrections from the matrices, in place."""
    used = slice(int(state.used[0]))
    for w in range(int(state.waiting[0])):
        along = state.corrections[:, w, used]
        state.covariance[:, used, used] -= state.ratios[:, w, None, None] * along[:, :, None] * along[:, None, :]
    state.waiting[0] = 0.0


def project(state, row, k):
    """Write C x to ``directions``; returns x'C x. Features beyond the matrices are 0 in these rows."""
    along, used = state.directions, int(state.used[0])
    for i in range(used):
        along[i] = 0.0
    for e in range(len(row.indices)):
        j = row.indices[e]
        ratio = ratio_of(state, row, e)
        if ratio != 0.0:
            matrix = state.covariance[k, j]
            for i in range(used):
                along[i] += ratio * matrix[i]
    for w in range(int(state.waiting[0])):
        correction = state.corrections[k, w]
        part = state.ratios[k, w] * product(state, row, correction)
        for i in range(used):
            along[i] -= part * correction[i]
    return max(product(state, row, along), 0.0)


def product(state, row, vector):
    """The product of a row, in units, with a vector of the matrices' side."""
    total = 0.0
    for e in range(len(row.indices)):
        j = row.indices[e]
        ratio = ratio_of(state, row, e)
        if ratio != 0.0:
            total += vector[j] * ratio
    return total


def least_spread(state, row, k):
    """The least that x'C x may become: below it rounding, which is relative to the prior, would make C indefinite."""
    reach = 0.0
    for e in range(len(row.indices)):
        j = row.indices[e]
        ratio = ratio_of(state, row, e)
        if ratio != 0.0:
            reach += abs(ratio) * math.sqrt(max(state.prior[j], state.covariance[k, j, j]))
    return RESOLVED * (reach * reach)


def correct(state, k, curvature, spread, least):
    """Let the correction (C x)(C x)' s / (1 + s x'C x) wait, with C x in ``directions``."""
    w = int(state.waiting[0])
    for i in range(int(state.used[0])):
        state.corrections[k, w, i] = state.directions[i]
    if curvature * spread * least > spread - least:  # x'C x would fall below the least
        curvature = (spread - least) / spread / least if spread > least else 0.0
    state.ratios[k, w] = curvature / (1.0 + curvature * spread)
