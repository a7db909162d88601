"""Online Newton steps: a second-order learner for few features.

Hazan, Agarwal, Kale: Logarithmic regret algorithms for online convex optimization (Machine Learning 2007), Figure 2,
with the curvature of the loss where they have the square of its slope; for the logistic loss this is the extended
Kalman filter and the online natural gradient (Ollivier: Online natural gradient as a Kalman filter, EJS 2018). For
each output, with C the inverse of the regularised sum of curvature * x x' so far,

    C <- C - (C x)(C x)' s / (1 + s x'C x),    w <- w - C x g,    g the slope, s the curvature in the margin

The step of w has 1 + g^2 x'C x in the denominator where s is smaller than g^2, over the natural loss of the round:
where the loss is nearly linear, a wrong prediction then moves the margin by no more than its natural size. Piecewise
linear losses have g^2 for s.

All weights have the same prior variance, so features should be of about size 1, as the steady view shows them. A
feature that is larger than WIDE gets a unit of its own, a power of two, and its weight starts anew.

The matrix C costs d^2 numbers for an output, and as many operations a row. Corrections of it wait until there are DEPTH
of them, so that it is read and written once for all; those that wait are taken into account. A row with a feature
beyond the largest matrix that is affordable makes the learner give up for good: it predicts 0 from then on, at no
cost.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import LARGEST, bounded
from tunefree.core.rows import entry, size
from tunefree.learners.contract import (
    coordinate,
    factor,
    leave_out,
    magnitude,
    outputs,
    predict,
    records,
    traits,
    update,
)

MOST_NUMBERS = 2**18  # of all matrices together
RESOLVED = 1e-12  # of the variance of x before any row: less cannot be told from rounding, 2.2e-16 an entry and row
DEPTH = 4  # corrections that wait, as many as `take` takes at once
STEEPEST = 1e200
WIDE = 8.0  # what a feature may be in its unit


@traits(
    can_be_averaged=False,
    second_order=True,
    can_replay=True,
    even=("covariance", "corrections", "ratios"),
    odd=("weights",),
    halved=("weights",),
    scratch=("directions",),
)
class Newton(NamedTuple):
    """Online Newton steps with one matrix an output."""

    features: np.ndarray  # (d,) records, in place:
    #   inverse    1 / unit_i; 0 until the feature is first seen
    #   prior      C_ii before the first row with the feature
    coordinates: np.ndarray  # (d, K) records, in place:
    #   weights    unit_i w_i
    covariance: np.ndarray  # (K, side, side) C in units of the features, without the corrections that wait, in place
    corrections: np.ndarray  # (K, DEPTH, 1, side) C x of those that wait, in place
    ratios: np.ndarray  # (DEPTH, K) s / (1 + s x'C x) of those that wait, in place
    directions: np.ndarray  # (side,) C x of the output at hand, in place
    outputs: Any  # what to loop over, see contract.outputs
    waiting: np.ndarray  # () corrections that wait, in place
    used: np.ndarray  # () features below it may have been seen, in place
    given_up: np.ndarray  # () 1 once a row had a feature beyond the matrices, in place
    natural: np.ndarray  # () natural loss of the latest round, in place
    variance: float  # prior variance of a feature's weight, in units of scale.margin and of the natural slope

    @classmethod
    def create(cls, n_features: int, n_outputs: int = 1, variance: float = 1.0) -> Newton:
        """A learner that has seen nothing."""
        statistics = records(("inverse", "prior"), ("weights",), n_features, n_outputs)
        side = min(max(n_features, 2), math.isqrt(MOST_NUMBERS // n_outputs))
        matrices = np.zeros((n_outputs, side, side)), np.zeros((n_outputs, DEPTH, 1, side))
        vectors = np.zeros((DEPTH, n_outputs)), np.zeros(side)
        waiting, used, given_up, natural = np.zeros(()), np.zeros(()), np.zeros(()), np.zeros(())
        return cls(*statistics, *matrices, *vectors, outputs(n_outputs), waiting, used, given_up, natural, variance)

    def blank(self, n_features: int, n_outputs: int) -> Newton:
        return self.create(n_features, n_outputs)

    def begin_outputs(self, places: list[int]) -> None:
        """Give outputs that come later the prior of the features seen, without which they would learn nothing."""
        seen = np.arange(min(int(self.used[()]), self.covariance.shape[1]))
        for k in places:
            self.covariance[k, seen, seen] = self.features["prior"][seen]


@compiled.inline
def see(state, j, x_j, scale):
    """Give feature ``j`` its prior, and a unit: 1, or a power of two so large that the value is at most WIDE units."""
    feature, used = state.features[j], max(int(state.used[()]), j + 1)
    feature.inverse = math.ldexp(1.0, -max(math.frexp(min(abs(x_j), LARGEST) / WIDE)[1], 0))
    state.used[()] = used
    # The natural size of a weight over that of a slope: a typical loss has curvature 1 / prior.
    prior = state.variance * min(max(scale.margin * scale.weight / scale.slope, 1e-30), 1e30)
    feature.prior = prior
    for k in range(len(state.covariance)):
        state.coordinates[j, k].weights = 0.0
        for i in range(used):
            state.covariance[k, j, i] = 0.0
            state.covariance[k, i, j] = 0.0
        for w in range(DEPTH):
            state.corrections[k, w, 0, j] = 0.0
        state.covariance[k, j, j] = prior


@compiled.inline
def take(state, k, i, used):
    """Subtract all corrections from a row of the matrix at once."""
    matrix, ratios = state.covariance[k, i], state.ratios
    one, two = state.corrections[k, 0, 0], state.corrections[k, 1, 0]
    three, four = state.corrections[k, 2, 0], state.corrections[k, 3, 0]
    p, q, r, s = ratios[0, k] * one[i], ratios[1, k] * two[i], ratios[2, k] * three[i], ratios[3, k] * four[i]
    for m in range(used):
        matrix[m] -= (p * one[m] + q * two[m]) + (r * three[m] + s * four[m])


@compiled.inline
def make_room(state):
    """Subtract the corrections that wait from the matrices, if there is no room for more."""
    if state.waiting[()] == DEPTH:
        used = int(state.used[()])
        for k in range(len(state.covariance)):
            for i in range(used):
                take(state, k, i, used)
        state.waiting[()] = 0.0


def settle(state: Newton) -> None:
    """Subtract the corrections that wait from the matrices, however many there are (:func:`make_room`)."""
    used = slice(int(state.used[()]))
    for place in range(int(state.waiting[()])):
        along = state.corrections[:, place, 0, used]
        state.covariance[:, used, used] -= state.ratios[place, :, None, None] * along[:, :, None] * along[:, None, :]
    state.waiting[()] = 0.0


@compiled.inline
def floor_of(state, x, k):
    """The least that x'C x may become: below it rounding, which is relative to the prior, would make C indefinite."""
    reach = 0.0
    for e in range(size(x)):
        j, x_j = entry(x, e)
        ratio = x_j * state.features[j].inverse
        if ratio != 0.0:
            most = max(state.features[j].prior, state.covariance[k, j, j], 0.0)  # the prior is 0 in older files
            reach += abs(ratio) * math.sqrt(most)
    return RESOLVED * (reach * reach)


@compiled.inline
def correct(state, k, curvature, spread, floor):
    """Let the correction (C x)(C x)' s / (1 + s x'C x) wait, with C x in ``directions``."""
    used, place = int(state.used[()]), int(state.waiting[()])
    for i in range(used):
        state.corrections[k, place, 0, i] = state.directions[i]
    if curvature * spread * floor > spread - floor:  # x'C x would fall below the floor
        curvature = (spread - floor) / spread / floor if spread > floor else 0.0
    state.ratios[place, k] = curvature / (1.0 + curvature * spread)


@compiled.inline
def project(state, x, k):
    """Write C x to ``directions``; returns x'C x. Features beyond the matrices are 0 in these rows."""
    along, used = state.directions, int(state.used[()])
    for i in range(used):
        along[i] = 0.0
    for e in range(size(x)):
        j, x_j = entry(x, e)
        ratio = x_j * state.features[j].inverse
        if ratio != 0.0:
            matrix = state.covariance[k, j]
            for i in range(used):
                along[i] += ratio * matrix[i]
    for w in range(int(state.waiting[()])):
        part = 0.0
        for e in range(size(x)):
            j, x_j = entry(x, e)
            ratio = x_j * state.features[j].inverse
            if ratio != 0.0:
                part += state.corrections[k, w, 0, j] * ratio
        part *= state.ratios[w, k]
        correction = state.corrections[k, w, 0]
        for i in range(used):
            along[i] -= part * correction[i]
    spread = 0.0
    for e in range(size(x)):
        j, x_j = entry(x, e)
        ratio = x_j * state.features[j].inverse
        if ratio != 0.0:
            spread += along[j] * ratio
    return max(spread, 0.0)


@predict.register(Newton)
def predict_newton(state, x, scale, margins):
    margins[:] = 0.0
    state.natural[()] = scale.slope * scale.margin
    side = state.covariance.shape[1]
    if state.used[()] > side:  # more outputs can afford fewer features
        state.given_up[()] = 1.0
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0 and state.given_up[()] == 0.0:
            if j >= side:
                state.given_up[()] = 1.0
            elif state.natural[()] > 0.0 and (
                abs(x_j) * state.features[j].inverse > WIDE or state.features[j].inverse == 0.0
            ):
                see(state, j, x_j, scale)
    if state.given_up[()] == 0.0:
        for e in range(size(x)):
            j, x_j = entry(x, e)
            ratio = bounded(x_j * state.features[j].inverse)
            for k in range(len(state.outputs)):
                margins[k] += state.coordinates[j, k].weights * ratio
        for k in range(len(state.outputs)):
            margins[k] = bounded(margins[k])


@leave_out.register(Newton)
def leave_out_newton(state, scale, n_features):
    state.given_up[()] = 1.0  # only features beyond the matrices are left out, see tunefree.model.meetings


@update.register(Newton)
def update_newton(state, x, gradient, curvature):
    if state.given_up[()] == 0.0 and state.natural[()] > 0.0:
        make_room(state)
        for k in range(len(state.covariance)):
            spread, floor = project(state, x, k), floor_of(state, x, k)
            steepness = min(gradient[k] * gradient[k] / state.natural[()], STEEPEST)
            step = gradient[k] / (1.0 + max(curvature[k], steepness) * spread)
            for i in range(int(state.used[()])):
                own = state.coordinates[i, k]
                own.weights = bounded(own.weights - step * state.directions[i])
            correct(state, k, curvature[k] if curvature[k] > 0.0 else steepness, spread, floor)
        state.waiting[()] += 1.0


@coordinate.register(Newton)
def coordinate_newton(state, j, k):
    return state.coordinates[j, k].weights if state.given_up[()] == 0.0 else 0.0


@factor.register(Newton)
def factor_newton(state, k):
    return 1.0


@magnitude.register(Newton)
def magnitude_newton(state, j):
    return 1.0 / state.features[j].inverse if state.features[j].inverse > 0.0 else 0.0
