"""Derivatives of losses for boosted trees: gradients and second derivatives of rows, and values of leaves."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from tunefree.compiled.functions import Call, Compiled, compiled
from tunefree.core.numbers import clip
from tunefree.generations.trees import LEAF
from tunefree.losses.deviances import power_of_e as exponential
from tunefree.losses.functions import Loop
from tunefree.losses.numbers import IS_LOG, LOSS
from tunefree.losses.objectives import Objective

LEAST_CURVATURE = 1e-12
FARTHEST = 700.0  # largest exponent of e
LOG2_OF_E, LOG_OF_2 = math.log2(math.e), math.log(2.0)
ROUNDING = 1.5 * 2.0**52  # added to a number, it leaves the nearest integer in the lowest bits
BIAS, MANTISSA_BITS = 1023, 52
BISECTIONS = 40  # of the range of residuals, to find the minimiser of a loss in a leaf


class Rows(NamedTuple):
    """All rows that trees are grown on."""

    margins: np.ndarray  # (n, K) predictions of earlier trees
    targets: np.ndarray  # (n,)
    weights: np.ndarray  # (n,)


def power_of_e(power):
    """exp(power) by its series, with a relative error of 2e-10, which processors run for several numbers at a time."""
    x = min(max(power, -FARTHEST), FARTHEST)
    shifted = x * LOG2_OF_E + ROUNDING
    f = x - (shifted - ROUNDING) * LOG_OF_2  # at most log(2) / 2
    whole = np.float64(shifted).view(np.int64) - np.float64(ROUNDING).view(np.int64)
    series = 1 / 120 + f * (1 / 720 + f * (1 / 5040 + f * (1 / 40320)))
    series = 1.0 + f * (1.0 + f * (1 / 2 + f * (1 / 6 + f * (1 / 24 + f * series))))
    return series * np.int64((whole + BIAS) << MANTISSA_BITS).view(np.float64)


def differentiate_two(margins, targets, weights, gradients, curvatures):
    """Write derivatives of the log-loss of two classes, by the log-odds."""
    for i in range(len(margins)):
        p = 1.0 / (1.0 + power_of_e(-margins[i]))
        gradients[i] = weights[i] * (p - targets[i])
        curvatures[i] = weights[i] * max(p * (1.0 - p), LEAST_CURVATURE)


def differentiate_classes(margins, targets, weights, powers, gradients, curvatures):
    """Write derivatives of the log-loss of several classes: shares of powers of e are probabilities.

    Steps of margins are bounded, so that sums of powers are finite.
    """
    for q in range(len(margins)):
        powers[q] = power_of_e(margins[q])
    n_outputs = len(margins) // max(len(targets), 1)
    for i in range(len(targets)):
        total, weight, first = 0.0, weights[i], i * n_outputs
        for q in range(first, first + n_outputs):
            total += powers[q]
        over = 1.0 / total
        for q in range(first, first + n_outputs):
            p = powers[q] * over
            gradients[q] = weight * p
            curvatures[q] = weight * max(p * (1.0 - p), LEAST_CURVATURE)
        target_margin = first + np.int64(targets[i])
        gradients[target_margin] = weight * (powers[target_margin] * over - 1.0)


def differentiate_squares(margins, targets, weights, gradients, curvatures):
    """Write derivatives of half of the square loss, of targets in units of their spread."""
    for i in range(len(margins)):
        gradients[i] = weights[i] * clip(margins[i] - targets[i], 1e15)
        curvatures[i] = weights[i]


@Loop
def _differentiate(functions):
    slope, curvature = functions.slope_of, functions.curvature_of

    def write_derivatives(
        n_classes: int,
        loss: int,
        numbers: Annotated[np.ndarray, "float64[facts]"],
        steep: float,
        margins: Annotated[np.ndarray, "float64[entries]"],
        targets: Annotated[np.ndarray, "float64[rows]"],
        weights: Annotated[np.ndarray, "float64[rows]"],
        powers: Annotated[np.ndarray, "float64[entries]"],
        gradients: Annotated[np.ndarray, "float32[entries]"],
        curvatures: Annotated[np.ndarray, "float32[entries]"],
    ) -> None:
        if n_classes > 2:
            differentiate_classes(margins, targets, weights, powers, gradients, curvatures)
        elif n_classes > 0:
            differentiate_two(margins, targets, weights, gradients, curvatures)
        elif steep == 0.0:
            differentiate_squares(margins, targets, weights, gradients, curvatures)
        for i in range(len(margins) if steep > 0.0 else 0):
            gradients[i] = weights[i] * clip(slope(loss, numbers, targets[i], margins[i]) / steep, 1e6)
            curvatures[i] = weights[i]
            if numbers[IS_LOG] > 0.0:  # the expected curvature, for a target that equals its mean
                mean = exponential(margins[i])
                curvatures[i] = weights[i] * min(curvature(loss, numbers, mean, margins[i]) / steep, 1e6)

    return write_derivatives


def differentiating(n_classes: int, loss: Any, steep: float, rows: Rows, *written: np.ndarray) -> Call:
    """The call that writes gradients and second derivatives (n, K) of rows.

    For a loss of numbers, gradients are slopes in units of ``steep`` (0 without a loss), and second derivatives are
    weights, as many losses lack them. With a logarithmic link they are expected ones, in the same unit.
    """
    objective = Objective("regression", loss)
    flat = (array.reshape(-1) for array in (*rows, np.empty_like(rows.margins), *written))
    return _differentiate.compiled(), n_classes, objective.codes.item(LOSS), objective.numbers, steep, *flat


@compiled
def write_leaves(
    sums: Annotated[np.ndarray, "float64[leaves, outputs, 2]"],
    rate: float,
    prior: float,
    longest: float,
    values: Annotated[np.ndarray, "float64[leaves, outputs]"],
) -> None:
    """Write the values of leaves, shrunk Newton steps, by their sums of gradients and second derivatives.

    With a logarithmic link, expected curvatures of sum H and slopes of sum G, the mean of a leaf is 1 - G / H times
    what it was. The prior, of so many events more at the mean that was, makes the step shorter. The logarithm of the
    ratio would be too small on average.
    """
    for leaf in range(len(values)):
        for k in range(values.shape[1]):
            values[leaf, k] = rate * clip(-sums[leaf, k, 0] / (sums[leaf, k, 1] + prior), longest)


@Loop
def _minimise(functions):
    slope = functions.slope_of

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


def minimising(work: Any, loss: Any, nodes: np.ndarray, rows: Rows, rate: float, steps: np.ndarray) -> Call:
    """The call that writes the best step of each leaf of a tree, times a rate."""
    objective, ranges = Objective("regression", loss), (work.rows, work.first, work.last)
    return _minimise.compiled(), *ranges, objective.codes.item(LOSS), objective.numbers, nodes, *rows, rate, steps


def all_compiled() -> list[Compiled]:
    """The compiled functions of this module."""
    return [_minimise.compiled(), _differentiate.compiled()]
