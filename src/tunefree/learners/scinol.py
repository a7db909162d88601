"""ScInOL2: scale-invariant online learning.

Kempka, Kotlowski, Warmuth: Adaptive scale-invariant online algorithms for learning linear models (ICML 2019),
Algorithm 2.

The paper assumes |g_t| <= 1. Here a round's slope is bounded by a number ``scale.slope`` known before the round (the
sample's weight, times the steepest slope so far where the loss has no Lipschitz constant). The paper's algorithm is run
on g/bound and bound * x, whose product is the unchanged gradient, so only M_i differs: M_i = max bound_t |x_{t,i}|.

M_i, G_i and S_i are kept in units of the power of two next below M_i, see :mod:`tunefree.learners.units`.
"""

from __future__ import annotations

import math

import numpy as np

from tunefree.compiled.prefetching import fetch_line, prefetch
from tunefree.core.fields import EVEN, ODD, per_coordinate, per_feature, setting
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


class ScInOL2(ScaledLearner):
    """Scale-invariant online learner 2 (Algorithm 2)."""

    gradients = per_coordinate("G_i / unit_i: minus the sum of gradients", parity=ODD)
    squares = per_coordinate("S_i^2 / unit_i^2: sum of squared gradients", parity=EVEN)
    wealth_scale = per_feature("scale.margin for which eta_i was given epsilon")
    wealth = per_coordinate("eta_i", parity=EVEN, is_halved=True)
    bets = per_coordinate("unit_i w_i in the latest round with feature i", is_saved=False)
    epsilon = setting(1.0, "initial wealth, in units of scale.margin")
    traits = Traits(
        invariant_to_scale_of="each feature",
        can_replay=True,
        theorem="Kempka, Kotlowski, Warmuth 2019, Theorem 3.2",
    )

    def predict(state, row, scale, margins):
        update_magnitudes(state, row, scale.slope)
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            if len(margins) == 1 or value != 0.0:
                # The initial wealth is epsilon per unit of the natural margin, which may grow.
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
        """Give later outputs the initial wealth of the features seen."""
        self.wealth[:, outputs] = self.epsilon[0] * self.wealth_scale[:, None]

    def regret_bound(self, weights: np.ndarray) -> float:
        """The regret bound sum_i epsilon - eta_i + u_i G_i, which is at most the bound of Theorem 3.2."""
        seen = self.inverse > 0.0
        linear = np.sign(weights[seen]) * self.in_units(weights) * self["gradients"][seen]
        return float((self.epsilon[0] * self.wealth_scale[seen, None] - self["wealth"][seen] + linear).sum())


def bet_scinol2(state, j, k):
    """unit_i w_i = sgn(theta_i) min(|theta_i|, 1) eta_i / (2 S_hat_i)  with  theta_i = G_i / S_hat_i,
    S_hat_i^2 = S_i^2 + M_i^2, without a branch that would be mispredicted every other time."""
    variance, gradients = variance_of(state, j, k), state.gradients[j, k]
    reach = max(variance, abs(gradients) * math.sqrt(variance))
    return 0.5 * gradients * state.wealth[j, k] / reach if reach > 0.0 else 0.0
