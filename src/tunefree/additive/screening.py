"""Which pairs pay: those whose cells explain what curves leave of the gradient of the loss.

Lou, Caruana, Gehrke, Hooker: Accurate intelligible models with pairwise interactions (KDD 2013) rank pairs (FAST) by
how much a piecewise constant function of four quadrants lowers the squared error of the residuals. Here the function is
constant on a grid of CELLS x CELLS cells, the residuals are gradients of the loss in K margins, and what functions of
one column would explain is left out. With G the sum of the gradients of the n rows of a cell, the gain of a pair is

    sum_cells G^2 / n  -  sum_rows G^2 / n  -  sum_columns G^2 / n  +  (sum G)^2 / n.

Where a pair does not matter, this is about the variance of the gradients times a chi-square variable.
"""

from __future__ import annotations

import math
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np

from tunefree.additive.pairs import fill_cells, find_positions
from tunefree.core import compiled
from tunefree.core.numbers import CEILING
from tunefree.losses.objectives import true_slope

CELLS = 8  # of each column
MOST_NUMBERS = 2**23  # in memory for sums; pairs beyond are not looked at
DEVIATIONS = 4.0  # by how many standard deviations of the noise a gain has to exceed its mean


class Screening(NamedTuple):
    """Sums over the rows for each candidate."""

    first: np.ndarray  # (m,) int64: a source
    second: np.ndarray  # (m,) int64: another one
    counts: np.ndarray  # (m, CELLS, CELLS) weights of the rows, in place
    gradients: np.ndarray  # (m, CELLS, CELLS, K) sums of gradients, in place
    squares: np.ndarray  # (K,) sums of squared gradients, times squared weights, over all rows, in place
    total: np.ndarray  # () sum of weights, in place
    unit: np.ndarray  # () of gradients: the size of the first one that is not 0, in place

    @classmethod
    def create(cls, n_sources: int, n_outputs: int) -> Screening:
        """Nothing is known of any pair of the sources."""
        most = MOST_NUMBERS // (CELLS * CELLS * (1 + n_outputs))
        pairs = np.array(list(islice(combinations(range(n_sources), 2), most)), np.int64).reshape(-1, 2)
        grid = len(pairs), CELLS, CELLS
        sums = np.zeros(grid), np.zeros((*grid, n_outputs)), np.zeros(n_outputs)
        return cls(pairs[:, 0].copy(), pairs[:, 1].copy(), *sums, np.zeros(()), np.zeros(()))


@compiled.entry
def screen(screening, objective, curves, sources, cell_of, code_sources, table, y, weight, predictions):
    """Add rows, of which ``predictions`` (n, K) were made without pairs."""
    n_sources, n_curves = len(sources.sizes), len(curves.counts)
    intervals, places = np.zeros(n_curves, np.int64), np.zeros(n_curves)
    counts, coarse = np.zeros(n_sources, np.int64), np.zeros(n_sources, np.int64)
    cells, heights = np.zeros((n_sources, 2), np.int64), np.zeros((n_sources, 2))
    slopes = np.zeros(predictions.shape[1])
    for i in range(len(y)):
        if weight[i] > 0.0:
            true_slope(objective, y[i], predictions[i], slopes)
            for k in range(len(slopes)):
                if screening.unit[()] == 0.0:
                    screening.unit[()] = abs(slopes[k])
                slopes[k] = slopes[k] / screening.unit[()] if screening.unit[()] > 0.0 else 0.0
                slopes[k] = min(max(slopes[k], -1e6), 1e6)
                screening.squares[k] += (weight[i] * slopes[k]) * (weight[i] * slopes[k])
            screening.total[()] += weight[i]
            find_positions(curves, table, i, intervals, places)
            fill_cells(
                curves, sources.sizes, cell_of, code_sources, table, i, intervals, places, counts, cells, heights
            )
            for s in range(n_sources):
                coarse[s] = coarse_cell(s < n_curves, sources.sizes[s], counts[s], cells[s], heights[s])
            for p in range(len(screening.first)):
                a, b = coarse[screening.first[p]], coarse[screening.second[p]]
                screening.counts[p, a, b] += weight[i]
                for k in range(len(slopes)):
                    screening.gradients[p, a, b, k] += weight[i] * slopes[k]


@compiled.inline
def coarse_cell(is_numeric, size, count, cells, heights):
    """The cell of the grid in which a row is; the last one where nothing is known of a code."""
    if not is_numeric:
        return cells[0] % CELLS if count > 0 else CELLS - 1
    nearest = 0 if count == 0 else cells[1] if count == 2 and heights[1] > heights[0] else cells[0]
    return min(nearest * CELLS // size, CELLS - 1)


def gains(screening: Screening) -> np.ndarray:
    """What each pair explains (m,) beyond what noise would, in standard deviations of the noise."""
    n, G = screening.counts, screening.gradients
    filled = n > 0.0
    freedom = np.maximum(filled.sum((1, 2)) - filled.any(1).sum(1) - filled.any(2).sum(1) + 1, 1)
    with np.errstate(over="ignore", invalid="ignore"):  # weights of 1e200
        explained = _explained(G, n, (1, 2))
        explained -= _explained(G.sum(1), n.sum(1), (1,)) + _explained(G.sum(2), n.sum(2), (1,))
        explained += _explained(G.sum((1, 2)), n.sum((1, 2)), ())
        variance = screening.squares / max(float(screening.total), math.ulp(0.0))
        noise = np.maximum(variance.sum(), 1.0 / CEILING)
        spread = math.sqrt(2.0) * np.maximum(np.sqrt((variance**2).sum()), 1.0 / CEILING)
        return (explained - freedom * noise) / (np.sqrt(freedom) * spread)


def _explained(sums: np.ndarray, counts: np.ndarray, over: tuple[int, ...]) -> np.ndarray:
    """Sums of G^2 / n over the cells and outputs."""
    parts = (sums**2).sum(-1) / np.maximum(counts, math.ulp(0.0))
    return np.where(counts > 0.0, parts, 0.0).sum(over)


def best_pairs(screening: Screening, known: set[tuple[int, int]], costs: np.ndarray, budget: float) -> np.ndarray:
    """The places of the candidates that pay most, in order of their gain, within a budget.

    Parameters
    ----------
    screening : Screening
    known : set of (int, int)
        Pairs that are learned already.
    costs : (m,) array
        Non-zeros a row that each candidate costs.
    budget : float
        Non-zeros a row for all of them.
    """
    gain = gains(screening)
    chosen: list[int] = []
    for p in np.argsort(-gain, kind="stable"):
        if not gain[p] >= DEVIATIONS:  # NaN is no gain
            break
        if (int(screening.first[p]), int(screening.second[p])) in known or costs[p] > budget:
            continue
        budget -= costs[p]
        chosen.append(int(p))
    return np.array(chosen, np.int64)
