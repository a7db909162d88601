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

from tunefree.compiled.prefetching import fetch_line, prefetch
from tunefree.core.fields import EVEN, ODD, per_coordinate, per_feature, setting, single
from tunefree.core.numbers import CEILING
from tunefree.learners.contract import Traits
from tunefree.learners.units import ScaledLearner, exceeds, new_unit, write_margins


def update_magnitudes(state, row, slope):
    """M_i <- max(M_i, slope |x_i|)."""
    for e in range(len(row.indices)):
        j, size = row.indices[e], slope * abs(row.values[e])
        if exceeds(state, j, size):
            ratio = new_unit(state, j, size)
            for k in range(state.gradients.shape[1]):
                state.gradients[j, k] *= ratio
                state.squares[j, k] *= ratio * ratio


def add_gradient(state, j, k, step):
    """G_i <- G_i - g x_i,  S_i^2 <- S_i^2 + (g x_i)^2."""
    state.gradients[j, k] -= step
    state.squares[j, k] += step * step


def variance_of(state, j, k):
    """S_i^2 + M_i^2, in units."""
    return state.squares[j, k] + state.largest[j] * state.largest[j]


class ScInOL1(ScaledLearner):
    """Scale-invariant online learner 1 (Algorithm 1)."""

    gradients = per_coordinate("G_i / unit_i: minus the sum of gradients", parity=ODD)
    squares = per_coordinate("S_i^2 / unit_i^2: sum of squared gradients", parity=EVEN)
    stake_scale = per_coordinate("scale.margin that beta_i is in units of", parity=EVEN)
    stakes = per_coordinate("beta_i", parity=EVEN, is_halved=True)
    bets = per_coordinate("unit_i w_i in the latest round with feature i", is_saved=False)
    rounds = single("t")
    epsilon = setting(1.0, "initial stake, in units of scale.margin")
    traits = Traits(invariant_to_scale_of="each feature")

    def predict(state, row, scale, margins):
        update_magnitudes(state, row, scale.slope)
        rounds = state.rounds[0] + 1.0
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            ratio = scale.slope * value * state.inverse[j]
            share = ratio * ratio * rounds
            if value != 0.0:
                for k in range(len(margins)):
                    if share > 0.0:  # a row that will be learned
                        limit_stake(state, j, k, share, scale)
                    state.bets[j, k] = bet_scinol1(state, j, k)
        write_margins(state, row, margins)

    def update(state, row, gradient, curvature):
        for e in range(len(row.indices)):
            j = row.indices[e]
            ratio = row.values[e] * state.inverse[j]
            for k in range(len(gradient)):
                add_gradient(state, j, k, gradient[k] * ratio)
        state.rounds[0] += 1.0

    def coordinate(state, j, k):
        return bet_scinol1(state, j, k) * state.largest[j]


def limit_stake(state, j, k, share, scale):
    """beta_i <- min(beta_i, epsilon (S_i^2 + M_i^2) / (x_i^2 t)), as if the natural margin had been known before."""
    epsilon, stake, before = state.epsilon[0] * scale.margin, state.stakes[j, k], state.stake_scale[j, k]
    if scale.margin > before:
        stake = stake / before * scale.margin if before > 0.0 else epsilon
        state.stake_scale[j, k] = scale.margin
    state.stakes[j, k] = min(stake, epsilon * variance_of(state, j, k) / share)


def bet_scinol1(state, j, k):
    """unit_i w_i = beta_i sgn(theta_i) (exp(|theta_i| / 2) - 1) / (2 S_hat_i)  with  theta_i = G_i / S_hat_i,
    S_hat_i^2 = S_i^2 + M_i^2."""
    spread = math.sqrt(variance_of(state, j, k))
    if spread == 0.0:  # never seen
        return 0.0
    theta = state.gradients[j, k] / spread
    growth = math.expm1(min(abs(theta) / 2.0, 300.0))
    return math.copysign(min(state.stakes[j, k] * growth / (2.0 * spread), CEILING), theta)


class ScInOL2(ScaledLearner):
    """Scale-invariant online learner 2 (Algorithm 2)."""

    gradients = per_coordinate("G_i / unit_i: minus the sum of gradients", parity=ODD)
    squares = per_coordinate("S_i^2 / unit_i^2: sum of squared gradients", parity=EVEN)
    wealth_scale = per_feature("scale.margin for which eta_i was given epsilon")
    wealth = per_coordinate("eta_i", parity=EVEN, is_halved=True)
    bets = per_coordinate("unit_i w_i in the latest round with feature i", is_saved=False)
    epsilon = setting(1.0, "initial wealth, in units of scale.margin")
    traits = Traits(invariant_to_scale_of="each feature", can_replay=True)

    def predict(state, row, scale, margins):
        update_magnitudes(state, row, scale.slope)
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            if len(margins) == 1 or value != 0.0:
                # The wealth has epsilon for each unit of the natural margin, which may grow.
                growth = max(scale.margin - state.wealth_scale[j], 0.0)
                state.wealth_scale[j] = max(state.wealth_scale[j], scale.margin)
                for k in range(len(margins)):
                    state.wealth[j, k] += state.epsilon[0] * growth
                    state.bets[j, k] = bet_scinol2(state, j, k)
        write_margins(state, row, margins)

    def update(state, row, gradient, curvature):
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            if len(gradient) == 1 or value != 0.0:
                ratio = value * state.inverse[j]
                for k in range(len(gradient)):
                    step = gradient[k] * ratio
                    add_gradient(state, j, k, step)
                    # eta_i <- eta_i - g x_i w_i
                    state.wealth[j, k] = min(max(state.wealth[j, k] - step * state.bets[j, k], 0.0), CEILING)

    def fetch(state, j):
        prefetch(state.inverse, j, 0)
        fetch_line(state.gradients, 4, j)

    def coordinate(state, j, k):
        return bet_scinol2(state, j, k) * state.largest[j]

    def prepare_outputs(self, outputs: list[int]) -> None:
        """Give outputs that come late the wealth of the features seen."""
        self.wealth[:, outputs] = self.epsilon[0] * self.wealth_scale[:, None]


def bet_scinol2(state, j, k):
    """unit_i w_i = sgn(theta_i) min(|theta_i|, 1) eta_i / (2 S_hat_i)  with  theta_i = G_i / S_hat_i,
    S_hat_i^2 = S_i^2 + M_i^2, without a branch that would be mispredicted every other time."""
    variance, gradients = variance_of(state, j, k), state.gradients[j, k]
    reach = max(variance, abs(gradients) * math.sqrt(variance))
    return 0.5 * gradients * state.wealth[j, k] / reach if reach > 0.0 else 0.0
