"""ScInOL2 and NAG on the leaves of trees: the leaves that a row reaches are features of value 1, all others are 0.

They are :mod:`tunefree.learners.scinol` and :mod:`tunefree.learners.nag`, without statistics that all leaves share.
There may be many leaves, so their statistics are in single precision; arithmetic is in double precision. A sum of n
terms of one size grows up to n = 2^24. Numbers are clipped at CEILING, which single precision can represent.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from tunefree.compiled.prefetching import fetch_line, prefetch
from tunefree.core.fields import EVEN, ODD, per_coordinate, per_feature, setting, single
from tunefree.core.numbers import clip, unit_below
from tunefree.learners.contract import Learner
from tunefree.learners.nag import rate_of

CEILING = 1e30
SMALLEST = 2.0**-100  # smallest unit


class LeafLearner(Learner):
    """A learner whose functions take the leaves of a row in place of the row."""

    dtypes: ClassVar[dict[str, Any]] = {"features": np.float32, "coordinates": np.float32}


class LeafScInOL2(LeafLearner):
    """ScInOL2: M_i is the largest bound of a slope in a row that reached leaf i."""

    inverse = per_feature("1 / unit_i, with unit_i the power of two next below M_i; 0 of a leaf that was not reached")
    largest = per_feature("M_i / unit_i, from 1 to 2")
    wealth_scale = per_feature("scale.margin for which eta_i was given epsilon")
    gradients = per_coordinate("G_i / unit_i: minus the sum of gradients", parity=ODD)
    squares = per_coordinate("S_i^2 / unit_i^2: sum of squared gradients", parity=EVEN)
    wealth = per_coordinate("eta_i", parity=EVEN, is_halved=True)
    epsilon = setting(1.0, "initial wealth, in units of scale.margin")

    def predict(state, leaves, scale, margins):
        for k in range(len(margins)):
            margins[k] = 0.0
        size, margin = min(scale.slope, CEILING), np.float32(min(scale.margin, CEILING))
        for t in range(len(leaves)):
            j = leaves[t]
            if np.float32(size * np.float64(state.inverse[j])) > state.largest[j] or (
                state.inverse[j] == 0.0 and size > 0.0
            ):
                grow_unit(state, j, size)
            if margin > state.wealth_scale[j]:
                growth = np.float64(margin) - np.float64(state.wealth_scale[j])
                state.wealth_scale[j] = margin
                for k in range(len(margins)):
                    state.wealth[j, k] = min(np.float64(state.wealth[j, k]) + state.epsilon[0] * growth, CEILING)
            for k in range(len(margins)):
                margins[k] += bet_of(state, j, k) * np.float64(state.inverse[j])
        for k in range(len(margins)):
            margins[k] = clip(margins[k], CEILING)

    def update(state, leaves, gradient, curvature):
        for t in range(len(leaves)):
            j = leaves[t]
            for k in range(len(gradient)):
                step, bet = clip(gradient[k] * np.float64(state.inverse[j]), CEILING), bet_of(state, j, k)
                state.gradients[j, k] = clip(np.float64(state.gradients[j, k]) - step, CEILING)
                state.squares[j, k] = min(np.float64(state.squares[j, k]) + step * step, CEILING)
                state.wealth[j, k] = min(max(np.float64(state.wealth[j, k]) - step * bet, 0.0), CEILING)

    def fetch(state, j):
        prefetch(state.inverse, j, 0)
        fetch_line(state.gradients, 3, j)

    def coordinate(state, j, k):
        return bet_of(state, j, k) * np.float64(state.largest[j])

    def magnitude(state, j):
        inverse = np.float64(state.inverse[j])
        return np.float64(state.largest[j]) / inverse if inverse > 0.0 else 0.0

    def prepare_outputs(self, outputs: list[int]) -> None:
        """Give later outputs the initial wealth of the leaves reached."""
        self.wealth[:, outputs] = np.minimum(self.epsilon[0] * self.wealth_scale[:, None].astype(np.float64), CEILING)


def grow_unit(state, j, size):
    """Let M_i grow to a size, and have statistics in its unit."""
    inverse = 1.0 / max(unit_below(size), SMALLEST)
    ratio = inverse / np.float64(state.inverse[j]) if state.inverse[j] > 0.0 else 0.0
    state.inverse[j], state.largest[j] = inverse, size * inverse
    for k in range(state.gradients.shape[1]):
        state.gradients[j, k] = np.float64(state.gradients[j, k]) * ratio
        state.squares[j, k] = np.float64(state.squares[j, k]) * (ratio * ratio)


def bet_of(state, j, k):
    """unit_i w_i, see :func:`tunefree.learners.scinol.bet_scinol2`."""
    gradients, largest = np.float64(state.gradients[j, k]), np.float64(state.largest[j])
    variance = np.float64(state.squares[j, k]) + largest * largest
    reach = max(variance, abs(gradients) * math.sqrt(variance))
    return 0.5 * gradients * np.float64(state.wealth[j, k]) / reach if reach > 0.0 else 0.0


class LeafNAG(LeafLearner):
    """NAG with all s_i = 1. Leaves start as if reached once with a slope of 1: the first row moves them less."""

    roots = per_coordinate("sqrt(G_i - 1)", parity=EVEN)
    bets = per_coordinate("w_i", parity=ODD, is_halved=True)
    rounds = single("t: sum of the rounds' weights")
    norms = single("N: sum of the squared norms of the rows, each times its weight")
    margin = single("scale.margin of the latest round", start=1.0)
    eta = setting(0.5, "step size, in units of scale.margin")

    def predict(state, leaves, scale, margins):
        if scale.weight > 0.0:
            state.rounds[0] += scale.weight
            state.norms[0] += scale.weight * len(leaves)
            state.margin[0] = scale.margin
        for k in range(len(margins)):
            margins[k] = 0.0
            for t in range(len(leaves)):
                margins[k] += np.float64(state.bets[leaves[t], k])

    def update(state, leaves, gradient, curvature):
        rate = rate_of(state)
        for t in range(len(leaves)):
            j = leaves[t]
            for k in range(len(gradient)):
                slope, root = clip(gradient[k], CEILING), np.float64(state.roots[j, k])
                sum_of_squares = root * root + slope * slope
                step = rate * (slope / math.sqrt(1.0 + sum_of_squares))
                state.roots[j, k] = min(math.sqrt(sum_of_squares), CEILING)
                state.bets[j, k] = clip(np.float64(state.bets[j, k]) - step, CEILING)

    def fetch(state, j):
        fetch_line(state.roots, 2, j)

    def coordinate(state, j, k):
        return np.float64(state.bets[j, k])

    def magnitude(state, j):
        return 1.0


LEARNERS: dict[str, type[LeafLearner]] = {"scinol2": LeafScInOL2, "nag": LeafNAG}
