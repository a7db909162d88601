"""ScInOL1: scale-invariant online learning with stakes.

Kempka, Kotlowski, Warmuth: Adaptive scale-invariant online algorithms for learning linear models (ICML 2019),
Algorithm 1, with bounds on slopes and in units as in :mod:`tunefree.learners.scinol`.
"""

from __future__ import annotations

import math

import numpy as np

from tunefree.core.fields import EVEN, ODD, per_coordinate, setting, single
from tunefree.core.numbers import CEILING
from tunefree.learners.contract import Traits
from tunefree.learners.scinol import add_gradient, update_magnitudes, variance_of
from tunefree.learners.units import ScaledLearner, write_margins


class ScInOL1(ScaledLearner):
    """Scale-invariant online learner 1 (Algorithm 1)."""

    gradients = per_coordinate("G_i / unit_i: minus the sum of gradients", parity=ODD)
    squares = per_coordinate("S_i^2 / unit_i^2: sum of squared gradients", parity=EVEN)
    stake_scale = per_coordinate("scale.margin that beta_i is in units of", parity=EVEN)
    stakes = per_coordinate("beta_i", parity=EVEN, is_halved=True)
    bets = per_coordinate("unit_i w_i in the latest round with feature i", is_saved=False)
    rounds = single("t")
    epsilon = setting(1.0, "initial stake, in units of scale.margin")
    traits = Traits(invariant_to_scale_of="each feature", theorem="Kempka, Kotlowski, Warmuth 2019, Theorem 3.1")

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

    def regret_bound(self, weights: np.ndarray) -> float:
        """Theorem 3.1, with 1 / beta_T,i instead of T / epsilon and the conjugate of Lemma C.1 instead of its bound.

        Features that were never seen contribute nothing.
        """
        seen = self.inverse > 0.0
        spread = np.sqrt(self["squares"] + self.largest[:, None] ** 2)[seen]  # S_hat_i / unit_i
        reach, stakes = 2.0 * self.in_units(weights) * spread, self["stakes"][seen]
        conjugate = (reach + stakes) * np.log1p(reach / stakes) - reach
        terms = conjugate + self.epsilon[0] * (1.0 + math.log(max(self.rounds[0], 1.0)))
        return float(terms[self["stake_scale"][seen] > 0.0].sum())


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
