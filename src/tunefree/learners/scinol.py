"""ScInOL1 and ScInOL2: scale-invariant online learning.

Kempka, Kotlowski, Warmuth: Adaptive scale-invariant online algorithms for learning linear models (ICML 2019),
Algorithms 1 and 2.

The paper assumes |g_t| <= 1. Here a round's slope is bounded by a number ``scale.slope`` known before the round (the
sample's weight, times the steepest slope so far where the loss has no Lipschitz constant): the paper's algorithm is run on
g/bound and bound * x, whose product is the gradient as it is, so only M_i changes: M_i = max bound_t |x_{t,i}|.

G_i and S_i are kept divided by M_i, and shrink when M_i grows. All arithmetic is then on x_i / M_i: whatever the scale
of a feature nothing overflows, and multiplying it by a power of two changes no prediction by one bit.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree import compiled
from tunefree.learners.contract import (
    CEILING,
    LARGEST,
    coordinate,
    factor,
    magnitude,
    outputs,
    predict,
    together,
    update,
)
from tunefree.rows import entry, size


class ScInOL1(NamedTuple):
    """Scale-invariant online learner 1 (Algorithm 1)."""

    largest: np.ndarray  # (d,)    M_i, in place
    endowed: np.ndarray  # (d,)    scale.margin that the stakes are in units of, in place
    gradients: np.ndarray  # (d, K)  G_i / M_i: minus the sum of gradients, in place
    squares: np.ndarray  # (d, K)  S_i^2 / M_i^2: sum of squared gradients, in place
    stakes: np.ndarray  # (d, K)  beta_i, in place
    outputs: Any  # what to loop over, see contract.outputs
    rounds: np.ndarray  # ()      t, in place
    epsilon: float  # initial stake in units of scale.margin

    @classmethod
    def create(cls, n_features: int, n_outputs: int = 1, epsilon: float = 1.0) -> ScInOL1:
        """A learner that has seen nothing."""
        names = ("gradients", "squares", "stakes")
        arrays = together({"largest": 0, "endowed": 0} | dict.fromkeys(names, n_outputs), n_features)
        return cls(**arrays, outputs=outputs(n_outputs), rounds=np.zeros(()), epsilon=epsilon)

    def blank(self, n_features: int, n_outputs: int) -> ScInOL1:
        return self.create(n_features, n_outputs)


class ScInOL2(NamedTuple):
    """Scale-invariant online learner 2 (Algorithm 2)."""

    largest: np.ndarray  # (d,)    M_i, in place
    endowed: np.ndarray  # (d,)    scale.margin for which each eta_i was given epsilon, in place
    gradients: np.ndarray  # (d, K)  G_i / M_i: minus the sum of gradients, in place
    squares: np.ndarray  # (d, K)  S_i^2 / M_i^2: sum of squared gradients, in place
    wealth: np.ndarray  # (d, K)  eta_i, in place
    bets: np.ndarray  # (d, K)  M_i w_i in the latest round with feature i, in place
    outputs: Any  # what to loop over, see contract.outputs
    epsilon: float  # initial wealth in units of scale.margin

    @classmethod
    def create(cls, n_features: int, n_outputs: int = 1, epsilon: float = 1.0) -> ScInOL2:
        """A learner that has seen nothing."""
        names = ("gradients", "squares", "wealth", "bets")
        arrays = together({"largest": 0, "endowed": 0} | dict.fromkeys(names, n_outputs), n_features)
        return cls(**arrays, outputs=outputs(n_outputs), epsilon=epsilon)

    def blank(self, n_features: int, n_outputs: int) -> ScInOL2:
        return self.create(n_features, n_outputs)


@compiled.inline
def see(state, j, size_of_x):
    """Let M_i grow to the size of the feature just seen; the statistics relative to it shrink."""
    shrink = state.largest[j] / size_of_x
    state.largest[j] = size_of_x
    for k in range(len(state.outputs)):
        state.gradients[j, k] *= shrink
        state.squares[j, k] *= shrink * shrink


@compiled.inline
def raise_stakes(state, j, margin):
    """Give the stakes of a feature what they would have had, had the natural size of a margin been known before."""
    for k in range(len(state.outputs)):
        known = state.endowed[j] > 0.0
        state.stakes[j, k] = state.stakes[j, k] * (margin / state.endowed[j]) if known else state.epsilon * margin
    state.endowed[j] = margin


@compiled.inline
def endow(state, j, margin):
    """Let a feature have epsilon for each unit of the natural size of a margin, which grows as targets are seen."""
    for k in range(len(state.outputs)):
        state.wealth[j, k] += state.epsilon * (margin - state.endowed[j])
    state.endowed[j] = margin


@predict.register(ScInOL1)
def predict_scinol1(state, x, scale, margins):
    margins[:] = 0.0
    rounds, epsilon = state.rounds[()] + 1.0, state.epsilon * scale.margin
    for e in range(size(x)):
        j, x_j = entry(x, e)
        size_of_x = min(scale.slope * abs(x_j), LARGEST)
        if size_of_x > state.largest[j]:
            see(state, j, size_of_x)
        if x_j != 0.0 and state.largest[j] > 0.0:
            ratio = x_j / state.largest[j]
            share = (size_of_x / state.largest[j]) ** 2 * rounds
            if scale.margin > state.endowed[j]:
                raise_stakes(state, j, scale.margin)
            for k in range(len(state.outputs)):
                state.stakes[j, k] = min(state.stakes[j, k], epsilon * (state.squares[j, k] + 1.0) / share)
                margins[k] += coordinate(state, j, k) * ratio


@coordinate.register(ScInOL1)
def coordinate_scinol1(state, j, k):
    spread = math.sqrt(state.squares[j, k] + 1.0)
    theta = state.gradients[j, k] / spread
    growth = math.expm1(min(abs(theta) / 2.0, 300.0))
    return math.copysign(min(state.stakes[j, k] * growth / (2.0 * spread), CEILING), theta)


@update.register(ScInOL1)
def update_scinol1(state, x, gradient):
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0 and state.largest[j] > 0.0:
            ratio = x_j / state.largest[j]
            for k in range(len(state.outputs)):
                step = gradient[k] * ratio
                state.gradients[j, k] -= step
                state.squares[j, k] += step * step
    state.rounds[()] += 1.0


@predict.register(ScInOL2)
def predict_scinol2(state, x, scale, margins):
    margins[:] = 0.0
    for e in range(size(x)):
        j, x_j = entry(x, e)
        size_of_x = min(scale.slope * abs(x_j), LARGEST)
        if size_of_x > state.largest[j]:
            see(state, j, size_of_x)
        if x_j != 0.0 and state.largest[j] > 0.0:
            ratio = x_j / state.largest[j]
            if scale.margin > state.endowed[j]:
                endow(state, j, scale.margin)
            for k in range(len(state.outputs)):
                state.bets[j, k] = coordinate(state, j, k)
                margins[k] += state.bets[j, k] * ratio


@coordinate.register(ScInOL2)
def coordinate_scinol2(state, j, k):
    gradients, variance = state.gradients[j, k], state.squares[j, k] + 1.0
    if gradients * gradients <= variance:  # |theta| <= 1: no square root
        return 0.5 * gradients * state.wealth[j, k] / variance
    return math.copysign(0.5, gradients) * state.wealth[j, k] / math.sqrt(variance)


@update.register(ScInOL2)
def update_scinol2(state, x, gradient):
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if x_j != 0.0 and state.largest[j] > 0.0:
            ratio = x_j / state.largest[j]
            for k in range(len(state.outputs)):
                step = gradient[k] * ratio
                state.gradients[j, k] -= step
                state.squares[j, k] += step * step
                state.wealth[j, k] = min(state.wealth[j, k] - step * state.bets[j, k], CEILING)


for learner in (ScInOL1, ScInOL2):

    @factor.register(learner)
    def factor_one(state, k):
        return 1.0

    @magnitude.register(learner)
    def magnitude_largest(state, j):
        return state.largest[j]
