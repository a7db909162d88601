"""PiSTOL for linear models, and one copy of it a coordinate.

Orabona: Simultaneous model selection and optimization through parameter-free stochastic learning (NIPS 2014),
Algorithm 3 with the linear kernel, and Appendix A.

The paper assumes ||x_t|| <= 1 and slopes of at most L. Here M = max bound_t ||x_t|| with ``bound_t`` the known bound on
the round's slope, and the paper's algorithm with L = 1 is run on bound * x / M; written out in the data's scale,

    alpha_{t-1} = a M (M + sum |s| ||x||),    w_t = g_{t-1} (b / alpha_{t-1}) exp(||g_{t-1}||^2 / (2 alpha_{t-1})).

Slopes come divided by the loss's Lipschitz constant L: a and b here are the paper's a / L and b / L. The theorem asks
for a of at least 2.25, where its bound is beyond all numbers (b exp(1652) ln T); the default is near the least bound.
The exponential is taken of the sum of logarithms, so it cannot overflow before the weight itself would.
"""

from __future__ import annotations

import math

import numpy as np

from tunefree.core.fields import EVEN, per_coordinate, per_feature, per_output, setting, single
from tunefree.core.numbers import CEILING, LARGEST, LOG_CEILING, bounded, power_below
from tunefree.learners.contract import Learner, Traits
from tunefree.papers.pistol_bound import growing_pistol_bound, pistol_regret


class PiSTOL(Learner):
    """PiSTOL with the linear kernel (Algorithm 3): invariant to the scale of the data as a whole."""

    gradients = per_coordinate("g / unit: minus the sum of gradients")
    norms = per_output("||g / unit||^2")
    slopes = per_output("sum of |s| ||x|| / unit", parity=EVEN)
    unit = single("power of two next below the largest value of the first row that is not 0; 0 before it")
    largest = single("M / unit")
    first = single("M / unit after the first row that was learned; 0 before it")
    norm = single("||x_t|| / unit of the latest row")
    rounds = single("t")
    margin = single("scale.margin of the latest round", start=1.0)
    a = setting(3.0, "the theory asks for at least 2.25")
    b = setting(1.0, "in units of scale.margin; 0 for sqrt(2 a t), as in the paper's experiments")
    traits = Traits(
        invariant_to_scale_of="all features alike",
        theorem="Orabona 2014, Theorem 1, with a growing norm of the rows",
    )

    def predict(state, row, scale, margins):
        margins[:] = 0.0
        unit = state.unit[0] if state.unit[0] > 0.0 else unit_of(row)
        norm = norm_of(row, unit) if unit > 0.0 else 0.0
        state.unit[0], state.norm[0], state.margin[0] = unit, norm, scale.margin
        state.rounds[0] += 1.0 if scale.weight > 0.0 else 0.0
        size = min(scale.slope * norm, CEILING)
        if state.largest[0] == 0.0:
            state.first[0] = size
        state.largest[0] = max(state.largest[0], size)
        if state.largest[0] > 0.0:
            for e in range(len(row.indices)):
                j, ratio = row.indices[e], relative(row.values[e], unit)
                for k in range(len(margins)):
                    margins[k] += state.gradients[j, k] * ratio
            for k in range(len(margins)):
                margins[k] = bounded(margins[k] * factor_of(state, k))

    def update(state, row, gradient, curvature):
        if state.unit[0] > 0.0:
            for k in range(len(gradient)):
                state.slopes[k] = min(state.slopes[k] + abs(gradient[k]) * state.norm[0], CEILING)
            for e in range(len(row.indices)):
                j, ratio = row.indices[e], relative(row.values[e], state.unit[0])
                for k in range(len(gradient)):
                    step, before = gradient[k] * ratio, state.gradients[j, k]
                    state.gradients[j, k] = bounded(before - step)
                    # ||g - s x||^2 - ||g||^2, coordinate by coordinate
                    change = step * (step - 2.0 * before)
                    state.norms[k] = min(max(state.norms[k] + change, 0.0), LARGEST)

    def coordinate(state, j, k):
        return state.gradients[j, k]

    def factor(state, k):
        return factor_of(state, k)

    def magnitude(state, j):
        return state.unit[0]

    def regret_bound(self, weights: np.ndarray) -> float:
        """Theorem 1.

        M may grow. Then alpha grows in the same round, which lowers the potential, so the proof holds with
        ln(1 + A_T / M_1), A_T = sum |s_t| ||x_t||, in place of ln(1 + T); M_1 is that of the first row learned.
        """
        return pistol_regret(self, np.sqrt(((weights * self.unit[0]) ** 2).sum(0)))


def relative(value, unit):
    """A value in units of the first row, small enough to be squared."""
    return bounded(value / unit)


def norm_of(row, unit):
    """The norm of a row in units."""
    total = 0.0
    for e in range(len(row.values)):
        ratio = relative(row.values[e], unit)
        total += ratio * ratio
    return math.sqrt(min(total, LARGEST))


def unit_of(row):
    """Power of two next below the largest value of a row; 0 for a row of zeros."""
    largest = 0.0
    for e in range(len(row.values)):
        largest = max(largest, abs(row.values[e]))
    return power_below(largest) if largest > 0.0 else 0.0


def factor_of(state, k):
    """(b / alpha) exp(||g||^2 / (2 alpha))."""
    largest = state.largest[0]
    if largest == 0.0:
        return 0.0
    # log alpha = log a + log M + log(M + A): alpha itself could overflow
    log_alpha = math.log(state.a[0]) + math.log(largest) + math.log(largest + state.slopes[k])
    norm = state.norms[k]
    exponent = math.exp(min(math.log(norm / 2.0) - log_alpha, LOG_CEILING)) if norm > 0.0 else 0.0
    b = state.b[0] if state.b[0] > 0.0 else math.sqrt(2.0 * state.a[0] * state.rounds[0])
    return b * state.margin[0] * math.exp(min(exponent - log_alpha, LOG_CEILING))


class CoordinatePiSTOL(Learner):
    """One copy of PiSTOL a coordinate (Appendix A): invariant to the scale of each feature."""

    largest = per_feature("M_i")
    first = per_feature("M_i after the first row with feature i that was learned")
    gradients = per_coordinate("g_i / M_i: minus the sum of gradients")
    slopes = per_coordinate("sum of |s x_i| / M_i", parity=EVEN)
    margin = single("scale.margin of the latest round", start=1.0)
    a = setting(3.0, "the theory asks for at least 2.25")
    b = setting(1.0, "in units of scale.margin; the paper's choice is 1 / d")
    traits = Traits(invariant_to_scale_of="each feature", theorem="Orabona 2014, Corollary 3, with growing values")

    def predict(state, row, scale, margins):
        margins[:] = 0.0
        state.margin[0] = scale.margin
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            size = min(scale.slope * abs(value), LARGEST)
            if size > state.largest[j]:
                enlarge(state, j, size)
            if value != 0.0 and state.largest[j] > 0.0:
                ratio = bounded(value / state.largest[j])  # large only in a row of weight 0
                for k in range(len(margins)):
                    bet = bet_of(state, j, k) * (state.b[0] * scale.margin)
                    margins[k] = bounded(margins[k] + bet * ratio)

    def update(state, row, gradient, curvature):
        for e in range(len(row.indices)):
            j, value = row.indices[e], row.values[e]
            if value != 0.0 and state.largest[j] > 0.0:
                ratio = value / state.largest[j]
                for k in range(len(gradient)):
                    state.gradients[j, k] -= gradient[k] * ratio
                    state.slopes[j, k] += abs(gradient[k] * ratio)

    def coordinate(state, j, k):
        return bet_of(state, j, k)

    def factor(state, k):
        return state.b[0] * state.margin[0]

    def magnitude(state, j):
        return state.largest[j]

    def regret_bound(self, weights: np.ndarray) -> float:
        """Theorem 1 for each coordinate."""
        seen = self.largest > 0.0
        largest, slopes = self.largest[seen, None], self["slopes"][seen]
        growth = slopes * (largest / self.first[seen, None])
        norms = np.abs(weights[seen]) * largest
        return float(growing_pistol_bound(norms, slopes, growth, self.a[0], self.b[0]).sum())


def enlarge(state, j, size):
    """Let M_i grow to the size of a value that exceeds it; the statistics relative to it shrink."""
    ratio = state.largest[j] / size
    if state.largest[j] == 0.0:
        state.first[j] = size
    state.largest[j] = size
    for k in range(state.gradients.shape[1]):
        state.gradients[j, k] *= ratio
        state.slopes[j, k] *= ratio


def bet_of(state, j, k):
    """M_i w_i / b."""
    gradient, alpha = state.gradients[j, k], state.a[0] * (1.0 + state.slopes[j, k])
    return gradient / alpha * math.exp(min(gradient * gradient / (2.0 * alpha), LOG_CEILING))
