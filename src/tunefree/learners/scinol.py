"""ScInOL1 and ScInOL2: scale-invariant online learning.

Kempka, Kotlowski, Warmuth: Adaptive scale-invariant online algorithms for learning linear models (ICML 2019),
Algorithms 1 and 2.

The paper assumes |g_t| <= 1. Here a round's slope is bounded by a number ``scale.slope`` known before the round (the
sample's weight, times the steepest slope so far where the loss has no Lipschitz constant). The paper's algorithm is run
on g/bound and bound * x, whose product is the gradient as it is, so only M_i changes: M_i = max bound_t |x_{t,i}|.

M_i, G_i and S_i are kept in units of the power of two next below M_i, see :mod:`tunefree.learners.units`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tunefree.core import compiled
from tunefree.core.numbers import CEILING
from tunefree.core.rows import entry, size
from tunefree.learners.contract import coordinate, factor, magnitude, matters, outputs, predict, records, traits, update
from tunefree.learners.units import combine, largest_value, rescale, update_magnitudes


@traits(
    invariant_to_scale_of="each feature",
    even=("squares", "wealth_scale", "stakes"),
    odd=("gradients",),
    halved=("stakes",),
)
class ScInOL1(NamedTuple):
    """Scale-invariant online learner 1 (Algorithm 1)."""

    features: np.ndarray  # (d,) records, in place:
    #   inverse    1 / unit_i; 0 until the feature is first seen
    #   largest    M_i / unit_i, from 1 to 2
    coordinates: np.ndarray  # (d, K) records, in place:
    #   gradients  G_i / unit_i: minus the sum of gradients
    #   squares    S_i^2 / unit_i^2: sum of squared gradients
    #   wealth_scale  scale.margin that beta_i is in units of
    #   stakes     beta_i
    #   bets       unit_i w_i in the latest round with feature i
    outputs: Any  # what to loop over, see contract.outputs
    rounds: np.ndarray  # () t, in place
    epsilon: float  # initial stake in units of scale.margin

    @classmethod
    def create(cls, n_features: int, n_outputs: int = 1, epsilon: float = 1.0) -> ScInOL1:
        """A learner that has seen nothing."""
        names = ("inverse", "largest"), ("gradients", "squares", "wealth_scale", "stakes", "bets")
        return cls(*records(*names, n_features, n_outputs), outputs(n_outputs), np.zeros(()), epsilon)

    def blank(self, n_features: int, n_outputs: int) -> ScInOL1:
        return self.create(n_features, n_outputs)


@traits(
    invariant_to_scale_of="each feature",
    can_replay=True,
    even=("squares", "wealth", "wealth_scale"),
    odd=("gradients",),
    halved=("wealth",),
    scratch=("bets",),
)
class ScInOL2(NamedTuple):
    """Scale-invariant online learner 2 (Algorithm 2)."""

    features: np.ndarray  # (d,) records, in place:
    #   inverse    1 / unit_i; 0 until the feature is first seen
    #   largest    M_i / unit_i, from 1 to 2
    coordinates: np.ndarray  # (d, K) records, in place:
    #   gradients  G_i / unit_i: minus the sum of gradients
    #   squares    S_i^2 / unit_i^2: sum of squared gradients
    #   wealth_scale  scale.margin for which eta_i was given epsilon
    #   wealth     eta_i
    #   bets       unit_i w_i in the latest round with feature i
    outputs: Any  # what to loop over, see contract.outputs
    epsilon: float  # initial wealth in units of scale.margin

    @classmethod
    def create(cls, n_features: int, n_outputs: int = 1, epsilon: float = 1.0) -> ScInOL2:
        """A learner that has seen nothing."""
        names = ("inverse", "largest"), ("gradients", "squares", "wealth_scale", "wealth", "bets")
        return cls(*records(*names, n_features, n_outputs), outputs(n_outputs), epsilon)

    def blank(self, n_features: int, n_outputs: int) -> ScInOL2:
        return self.create(n_features, n_outputs)


@predict.register(ScInOL1)
def predict_scinol1(state, x, scale, margins):
    update_magnitudes(state, x, scale.slope)
    rounds, epsilon = state.rounds[()] + 1.0, state.epsilon * scale.margin
    for e in range(size(x)):
        j, x_j = entry(x, e)
        feature = state.features[j]
        share = (scale.slope * x_j * feature.inverse) ** 2 * rounds
        if x_j != 0.0:
            for k in range(len(state.outputs)):
                own = state.coordinates[j, k]
                if share > 0.0:  # a row that will be learned
                    if scale.margin > own.wealth_scale:  # as if the natural margin had been known before
                        own.stakes = own.stakes / own.wealth_scale * scale.margin if own.wealth_scale > 0.0 else epsilon
                        own.wealth_scale = scale.margin
                    own.stakes = min(own.stakes, epsilon * (own.squares + feature.largest**2) / share)
                own.bets = bet_scinol1(feature, own)
    combine(state, x, margins)


@compiled.inline
def bet_scinol1(feature, own):
    spread = math.sqrt(own.squares + feature.largest**2)
    if spread == 0.0:  # never seen
        return 0.0
    theta = own.gradients / spread
    growth = math.expm1(min(abs(theta) / 2.0, 300.0))
    return math.copysign(min(own.stakes * growth / (2.0 * spread), CEILING), theta)


@update.register(ScInOL1)
def update_scinol1(state, x, gradient, curvature):
    for e in range(size(x)):
        j, x_j = entry(x, e)
        ratio = x_j * state.features[j].inverse
        for k in range(len(state.outputs)):
            own, step = state.coordinates[j, k], gradient[k] * ratio
            own.gradients -= step
            own.squares += step * step
    state.rounds[()] += 1.0


@coordinate.register(ScInOL1)
def coordinate_scinol1(state, j, k):
    return bet_scinol1(state.features[j], state.coordinates[j, k]) * state.features[j].largest


@predict.register(ScInOL2)
def predict_scinol2(state, x, scale, margins):
    update_magnitudes(state, x, scale.slope)
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if matters(state, x_j):
            for k in range(len(state.outputs)):
                own = state.coordinates[j, k]
                if scale.margin > own.wealth_scale:  # epsilon for each unit of the natural margin, which may grow
                    own.wealth += state.epsilon * (scale.margin - own.wealth_scale)
                    own.wealth_scale = scale.margin
                own.bets = bet_scinol2(state.features[j], own)
    combine(state, x, margins)


@compiled.inline
def bet_scinol2(feature, own):
    variance = own.squares + feature.largest**2
    # sgn(theta) min(|theta|, 1) / (2 S_hat), without a branch that would be mispredicted every other time
    reach = max(variance, abs(own.gradients) * math.sqrt(variance))
    return 0.5 * own.gradients * own.wealth / reach if reach > 0.0 else 0.0


@update.register(ScInOL2)
def update_scinol2(state, x, gradient, curvature):
    for e in range(size(x)):
        j, x_j = entry(x, e)
        if matters(state, x_j):
            ratio = x_j * state.features[j].inverse
            for k in range(len(state.outputs)):
                own, step = state.coordinates[j, k], gradient[k] * ratio
                own.gradients -= step
                own.squares += step * step
                own.wealth = min(max(own.wealth - step * own.bets, 0.0), CEILING)


@coordinate.register(ScInOL2)
def coordinate_scinol2(state, j, k):
    return bet_scinol2(state.features[j], state.coordinates[j, k]) * state.features[j].largest


for learner in (ScInOL1, ScInOL2):

    @rescale.register(learner)
    def rescale_gradients(state, j, shrink):
        for k in range(len(state.outputs)):
            state.coordinates[j, k].gradients *= shrink
            state.coordinates[j, k].squares *= shrink * shrink

    @factor.register(learner)
    def factor_one(state, k):
        return 1.0

    @magnitude.register(learner)
    def magnitude_largest(state, j):
        return largest_value(state, j)
