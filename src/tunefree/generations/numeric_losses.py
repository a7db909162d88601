"""What growing trees for a loss of numbers asks of the loss: its slopes in rows, and its minimiser in a leaf."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from tunefree.compiled.functions import Compiled, compiled
from tunefree.compiled.programs import Call
from tunefree.core.numbers import clip
from tunefree.generations.trees import LEAF
from tunefree.losses.loops import Loop
from tunefree.losses.objectives import Objective
from tunefree.losses.places import IS_LOG, LOSS
from tunefree.losses.tweedie_loss import power_of_e

LONGEST_STEP = 2.0  # of a logarithm
BISECTIONS = 40  # of the range of residuals, where a leaf takes the minimiser of a loss


def minimiser_of(slope: Callable[..., float]) -> Callable[..., float]:
    """The search for the minimiser of a loss, from the switch over the slopes of losses."""

    def minimiser(loss, numbers, targets, weights, rows, margins):
        """The step of the margins of some rows at which their loss is least, by bisection."""
        low, high = math.inf, -math.inf
        for r in rows:
            low, high = min(low, targets[r] - margins[r, 0]), max(high, targets[r] - margins[r, 0])
        for _ in range(BISECTIONS):
            middle = 0.5 * low + 0.5 * high
            total = 0.0
            for r in rows:
                total += weights[r] * clip(slope(loss, numbers, targets[r], margins[r, 0] + middle), 1e100)
            if total < 0.0:
                low = middle
            else:
                high = middle
        return 0.5 * low + 0.5 * high

    return minimiser


@Loop
def _minimise(functions):
    minimiser = minimiser_of(functions.slope_of)

    def write_minimisers(
        rows: Annotated[np.ndarray, "uint32[places]"],
        first: Annotated[np.ndarray, "int64[numbered]"],
        last: Annotated[np.ndarray, "int64[numbered]"],
        loss: int,
        numbers: Annotated[np.ndarray, "float64[facts]"],
        nodes: Annotated[np.ndarray, "int32[nodes, 2]"],
        margins: Annotated[np.ndarray, "float64[rows, 1]"],
        targets: Annotated[np.ndarray, "float64[rows]"],
        weights: Annotated[np.ndarray, "float64[rows]"],
        rate: float,
        steps: Annotated[np.ndarray, "float64[leaves]"],
    ) -> None:
        n_leaves = 0
        for v in range(len(nodes)):
            if nodes[v, 0] == LEAF:
                rows_of_leaf = rows[first[v] : last[v]]
                steps[n_leaves] = rate * minimiser(loss, numbers, targets, weights, rows_of_leaf, margins)
                n_leaves += 1

    return write_minimisers


@Loop
def _differentiate(functions):
    slope, curvature = functions.slope_of, functions.curvature_of

    def write_derivatives(
        loss: int,
        numbers: Annotated[np.ndarray, "float64[facts]"],
        margins: Annotated[np.ndarray, "float64[rows, 1]"],
        targets: Annotated[np.ndarray, "float64[rows]"],
        weights: Annotated[np.ndarray, "float64[rows]"],
        steep: float,
        gradients: Annotated[np.ndarray, "float32[rows, 1]"],
        curvatures: Annotated[np.ndarray, "float32[rows, 1]"],
    ) -> None:
        for i in range(len(margins)):
            gradients[i, 0] = weights[i] * clip(slope(loss, numbers, targets[i], margins[i, 0]) / steep, 1e6)
            curvatures[i, 0] = weights[i]
            if numbers[IS_LOG] > 0.0:  # of a target that is its mean, as expected
                mean = power_of_e(margins[i, 0])
                curvatures[i, 0] = weights[i] * min(curvature(loss, numbers, mean, margins[i, 0]) / steep, 1e6)

    return write_derivatives


def all_compiled() -> list[Compiled]:
    """The compiled functions of this module."""
    return [_minimise.compiled(), _differentiate.compiled()]


def minimising(work: Any, loss: Any, nodes: np.ndarray, of_rows: tuple[np.ndarray, ...], *results: Any) -> Call:
    """The call that writes the best step of each leaf of a tree, times a rate.

    ``of_rows`` are the margins (n, 1), the targets and the weights of all rows, ``results`` the rate and the steps.
    """
    objective = Objective("regression", loss)
    of_loss = objective.codes.item(LOSS), objective.numbers
    return _minimise.compiled(), work.rows, work.first, work.last, *of_loss, nodes, *of_rows, *results


def differentiating(loss: Any, of_rows: tuple[np.ndarray, ...], steep: float, *results: np.ndarray) -> Call:
    """The call that writes slopes of a loss in units of ``steep``, and weights for second derivatives.

    Many losses lack these. Of a loss with a logarithmic link they are those expected, in the same unit.
    """
    objective = Objective("regression", loss)
    return _differentiate.compiled(), objective.codes.item(LOSS), objective.numbers, *of_rows, steep, *results


@compiled
def write_steps_of_logarithms(
    sums: Annotated[np.ndarray, "float64[leaves, 1, 2]"],
    rate: float,
    prior: float,
    values: Annotated[np.ndarray, "float64[leaves, 1]"],
) -> None:
    """Write shrunk steps of Fisher's scoring for a loss with a logarithmic link, by the sums of leaves.

    With expected curvatures of sum H and slopes of sum G the mean of a leaf is 1 - G / H times what it was. A prior of
    so many events more, at the mean that was, makes the step shorter. The logarithm of the ratio would be too small on
    average.
    """
    for leaf in range(len(values)):
        step = -sums[leaf, 0, 0] / (max(sums[leaf, 0, 1], 0.0) + prior)
        values[leaf, 0] = rate * clip(step, LONGEST_STEP)
