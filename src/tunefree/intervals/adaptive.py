"""Adaptive conformal inference: on a stream, the levels of quantiles adapt to the observed coverage.

Gibbs, Candes: Adaptive conformal inference under distribution shift (NeurIPS 2021), separately for each level tau: the
next score is predicted to be below the quantile of level a_t of the latest scores, and

    a_(t+1) = a_t + gamma (tau - b_t),      b_t = 1 if the score was below, else 0                    (their eq. 2)

No step gamma has to be chosen. Gibbs, Candes: Conformal inference for online prediction with arbitrary distribution
shifts (JMLR 2024): several experts have steps gamma = STEPS min(tau, 1 - tau), and their levels are mixed with weights

    w_k ~ (1 - sigma) w_k exp(-eta l(beta_t, a_k)) + sigma / K                                (their algorithm 1)

where beta_t is the smallest level whose quantile is above the score, l is the pinball loss of tau, and eta and sigma
are the values of their theorem for intervals of LATEST rows.

Mixed levels alone do not guarantee the coverage. As in Angelopoulos, Candes, Tibshirani: Conformal PID control for time
series prediction (NeurIPS 2023, their eq. 4), a saturating function of the sum of past errors is added:

    a_t = sum_k w_k a_k + 2 min(tau, 1 - tau) clip(E_t / BUDGET, -1, 1)^3,      E_t = sum_(s < t) (tau - b_s).

Levels of experts are kept within min(tau, 1 - tau) of tau. So for tau of at least 1/2, where E_t is BUDGET or more,
a_t is 1 or more, where the quantile is infinite and no score is above it: E_t is never more than BUDGET + 1. For tau of
at most 1/2 it is likewise never less than -BUDGET - 1. So for any rows, the number of scores beyond a quantile is at
most

    min(tau, 1 - tau) T + BUDGET + 1                                                   (as their Proposition 2)
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple, Self

import numpy as np

from tunefree.compiled.functions import compiled
from tunefree.core.numbers import clip
from tunefree.core.schema import FROM_ZERO

LATEST = 512  # number of the latest scores that are kept
FINEST, N_STEPS = 0.0125, 6  # the smallest step, and the number of steps; each step is twice the previous one
BUDGET = 40.0  # scale of the sum of errors E_t, in rows


class Adaptive(NamedTuple):
    """The latest scores of a stream, and adaptive levels of quantiles; updated in place."""

    targets: Annotated[np.ndarray, "float64[levels]"]  # tau, ascending
    levels: Annotated[np.ndarray, "float64[levels, steps]"]  # a_k of the experts
    weights: Annotated[np.ndarray, "float64[levels, steps]", FROM_ZERO]  # w_k
    below: Annotated[np.ndarray, "float64[levels]"]  # number of scores below the quantile
    latest: Annotated[np.ndarray, "float64[latest]"]  # the score of row t is at index t mod LATEST
    ordered: Annotated[np.ndarray, "float64[latest]"]  # the same scores, ascending
    rows: Annotated[np.ndarray, "float64[1]", FROM_ZERO]  # number of scores so far

    @classmethod
    def create(cls, targets: tuple[float, ...]) -> Self:
        """Quantiles at these levels, before any score.

        >>> adaptive = Adaptive.create((0.1, 0.9))
        >>> follow(adaptive, np.tile(np.arange(10.0), 100))
        >>> adaptive.quantile(0.9), (adaptive.below / adaptive.rows).round(2)
        (9.0, array([0.1, 0.9]))
        """
        ends = np.array(targets)
        levels, weights = np.repeat(ends[:, None], N_STEPS, axis=1), np.full((len(ends), N_STEPS), 1.0 / N_STEPS)
        return cls(ends, levels, weights, np.zeros(len(ends)), np.zeros(LATEST), np.zeros(LATEST), np.zeros(1))

    @property
    def n_latest(self) -> int:
        """The number of the latest scores that are kept."""
        return int(min(self.rows[0], LATEST))

    def quantile(self, target: float) -> float:
        """The quantile of the next score at a level ``target``; levels between two targets are interpolated."""
        mixed = [level_of(self, j) for j in range(len(self.targets))]
        knots, levels = np.append(np.append(0.0, self.targets), 1.0), np.append(np.append(0.0, mixed), 1.0)
        level = float(np.interp(target, knots, levels))
        return float(quantile_of(self.ordered, self.n_latest, target, level))


def most_missed(target: float, rows: int) -> float:
    """The largest number of scores that can be beyond a quantile among so many rows."""
    return min(target, 1.0 - target) * rows + BUDGET + 1.0


def level_of(state, j):
    """The level a_t of the target of number j."""
    target, mixed = state.targets[j], 0.0
    for k in range(N_STEPS):
        mixed += state.weights[j, k] * state.levels[j, k]
    part = clip((target * state.rows[0] - state.below[j]) / BUDGET, 1.0)
    return mixed + 2.0 * min(target, 1.0 - target) * part * part * part


def rank_of(n, target, level):
    """The finite-sample rank of the quantile of n scores, towards the tail in which the target lies."""
    place = level * (n + 1.0)
    return math.floor(place + 1e-9) if target < 0.5 else math.ceil(place - 1e-9)


def quantile_of(ordered, n, target, level):
    """The quantile of n scores; it is infinite where they are too few for the target, or the level is 0 or 1."""
    is_low, least = target < 0.5, rank_of(n, target, target)
    if level <= 0.0 or (is_low and least < 1):
        return -math.inf
    if level >= 1.0 or (not is_low and least > n):
        return math.inf
    return ordered[min(max(rank_of(n, target, level), 1), n) - 1]


def is_under(ordered, n, target, level, score):
    """1 if a score is below the quantile, else 0."""
    bound = quantile_of(ordered, n, target, level)
    is_below = score < bound if target < 0.5 else score <= bound
    return 1.0 if is_below else 0.0


def rate_of(target):
    """eta of the paper for intervals of LATEST rows."""
    tail = min(target, 1.0 - target)
    rest, numerator = 1.0 - tail, math.log(N_STEPS * LATEST) + 2.0
    return math.sqrt(3.0 / LATEST * numerator / (rest * rest * tail * tail * tail + rest * rest * rest * tail * tail))


def place_of(ordered, n, score, is_behind):
    """The number of scores, of n, that are smaller, or with ``is_behind`` not larger."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < score or (is_behind and ordered[middle] == score):
            low = middle + 1
        else:
            high = middle
    return low


def settle(ordered, n, place, score):
    """Write a score over the one at a place, and move it to where it belongs among n that are otherwise in order."""
    while place < n - 1 and ordered[place + 1] < score:
        ordered[place] = ordered[place + 1]
        place += 1
    while place > 0 and ordered[place - 1] > score:
        ordered[place] = ordered[place - 1]
        place -= 1
    ordered[place] = score


def follow_one(state, j, n, score, smallest):
    """Let the experts of the target of number j learn a score, whose beta_t is the smallest level."""
    target = state.targets[j]
    tail, rate, total, step = min(target, 1.0 - target), rate_of(target), 0.0, FINEST
    for k in range(N_STEPS):
        level = state.levels[j, k]
        off = smallest - level
        loss = target * off if off > 0.0 else (target - 1.0) * off
        state.weights[j, k] *= math.exp(-rate * loss)
        total += state.weights[j, k]
        moved = level + step * tail * (target - is_under(state.ordered, n, target, level, score))
        state.levels[j, k] = min(max(moved, target - tail), target + tail)
        step *= 2.0
    shared = 0.5 / LATEST
    for k in range(N_STEPS):
        state.weights[j, k] = (1.0 - shared) * state.weights[j, k] / total + shared / N_STEPS


@compiled
def follow(state: Adaptive, scores: Annotated[np.ndarray, "float64[rows]"]) -> None:
    """Learn scores in their order."""
    most = len(state.latest)
    for i in range(len(scores)):
        score, rows = scores[i], int(state.rows[0])
        n = min(rows, most)
        smaller, not_larger = place_of(state.ordered, n, score, False), place_of(state.ordered, n, score, True)
        for j in range(len(state.targets)):
            target = state.targets[j]
            level = level_of(state, j)
            smallest = not_larger / (n + 1.0) if target < 0.5 else (smaller + 1.0) / (n + 1.0)
            follow_one(state, j, n, score, smallest)
            state.below[j] += is_under(state.ordered, n, target, level, score)
        if n < most:
            settle(state.ordered, n + 1, n, score)
        else:
            settle(state.ordered, n, place_of(state.ordered, n, state.latest[rows % most], False), score)
        state.latest[rows % most] = score
        state.rows[0] += 1.0
