"""Adaptive conformal inference: on a stream, levels of quantiles follow how often targets were below them.

Gibbs, Candes: Adaptive conformal inference under distribution shift (NeurIPS 2021), for each of some levels tau apart:
the next score is expected to lie below the quantile of level a_t of the latest scores, and

    a_(t+1) = a_t + gamma (tau - b_t),      b_t = 1 if the score was below, else 0                    (their eq. 2)

with the step gamma = RATE min(tau, 1 - tau), which is in proportion to what is to be missed. Where a_t is 1 or more the
quantile is infinite, and where it is 0 or less minus infinity. So a_t stays between -gamma and 1 + gamma, and since the
sum of tau - b_t is (a_(T+1) - a_1) / gamma, scores beyond a quantile are, whatever the rows are, at most

    min(tau, 1 - tau) T + 1 / RATE + 1                                                   (as their Proposition 4.1)
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple, Self

import numpy as np

from tunefree.core.kernels import kernel

LATEST = 512  # scores
RATE = 0.05  # from .02 to .2 coverage and width change little


class Adaptive(NamedTuple):
    """The latest scores of a stream, and levels that follow it; all change in place."""

    targets: Annotated[np.ndarray, "float64[levels]"]  # tau, ascending
    levels: Annotated[np.ndarray, "float64[levels]"]  # a_t
    below: Annotated[np.ndarray, "float64[levels]"]  # scores that were below the quantile
    latest: Annotated[np.ndarray, "float64[latest]"]  # scores; that of row t at place t mod LATEST
    ordered: Annotated[np.ndarray, "float64[latest]"]  # the same, ascending
    rows: Annotated[np.ndarray, "float64[1]"]  # scores so far

    @classmethod
    def create(cls, targets: tuple[float, ...]) -> Self:
        """What knows no score.

        Examples
        --------
        >>> adaptive = Adaptive.create((0.1, 0.9))
        >>> follow(adaptive, np.tile(np.arange(10.0), 100))
        >>> adaptive.quantile(0.9), (adaptive.below / adaptive.rows).round(2)
        (9.0, array([0.1, 0.9]))
        """
        levels = np.array(targets)
        nothing = np.zeros(len(levels)), np.zeros(LATEST), np.zeros(LATEST), np.zeros(1)
        return cls(levels, levels.copy(), *nothing)

    @property
    def n_latest(self) -> int:
        """How many of the latest scores there are."""
        return int(min(self.rows[0], LATEST))

    def quantile(self, target: float) -> float:
        """What the next score is expected to lie below with this probability; levels between two are interpolated."""
        places, levels = np.append(np.append(0.0, self.targets), 1.0), np.append(np.append(0.0, self.levels), 1.0)
        level = float(np.interp(target, places, levels))
        return float(quantile_of(self.ordered, self.n_latest, target, level))


def most_missed(target: float, rows: int) -> float:
    """Scores of so many that are beyond a quantile at most, whatever the rows are.

    Examples
    --------
    >>> most_missed(0.5, 1000)
    521.0
    """
    return min(target, 1.0 - target) * rows + 1.0 / RATE + 1.0


def quantile_of(ordered, n, target, level):
    """The quantile of n scores, of the finite-sample rank towards the tail in which the target lies."""
    place = level * (n + 1.0)
    rank = math.floor(place + 1e-9) if target < 0.5 else math.ceil(place - 1e-9)
    if rank < 1:
        return -math.inf
    return ordered[rank - 1] if rank <= n else math.inf


def place_of(ordered, n, score):
    """How many of n scores are smaller."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < score:
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


@kernel
def follow(state: Adaptive, scores: Annotated[np.ndarray, "float64[rows]"]) -> None:
    """Learn scores in their order."""
    most = len(state.latest)
    for i in range(len(scores)):
        score, rows = scores[i], int(state.rows[0])
        n = min(rows, most)
        for j in range(len(state.targets)):
            target = state.targets[j]
            bound = quantile_of(state.ordered, n, target, state.levels[j])
            is_below = score < bound if target < 0.5 else score <= bound
            below = 1.0 if is_below else 0.0
            state.below[j] += below
            state.levels[j] += RATE * min(target, 1.0 - target) * (target - below)
        if n < most:
            settle(state.ordered, n + 1, n, score)
        else:
            settle(state.ordered, n, place_of(state.ordered, n, state.latest[rows % most]), score)
        state.latest[rows % most] = score
        state.rows[0] += 1.0
