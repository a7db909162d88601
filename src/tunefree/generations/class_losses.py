"""What growing trees for classes asks of the log-loss: its gradients and second derivatives in rows."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from tunefree.compiled.functions import compiled

LEAST_CURVATURE = 1e-12
FARTHEST = 700.0  # power of e
LOG2_OF_E, LOG_OF_2 = math.log2(math.e), math.log(2.0)
ROUNDING = 1.5 * 2.0**52  # added to a number it leaves the next whole one, in its lowest bits
BIAS, MANTISSA_BITS = 1023, 52


def power_of_e(power):
    """exp(power) by its series, with a relative error of 2e-10, which processors run for several numbers at a time."""
    x = min(max(power, -FARTHEST), FARTHEST)
    shifted = x * LOG2_OF_E + ROUNDING
    f = x - (shifted - ROUNDING) * LOG_OF_2  # at most log(2) / 2
    whole = np.float64(shifted).view(np.int64) - np.float64(ROUNDING).view(np.int64)
    series = 1 / 120 + f * (1 / 720 + f * (1 / 5040 + f * (1 / 40320)))
    series = 1.0 + f * (1.0 + f * (1 / 2 + f * (1 / 6 + f * (1 / 24 + f * series))))
    return series * np.int64((whole + BIAS) << MANTISSA_BITS).view(np.float64)


@compiled
def write_derivatives_of_two(
    margins: Annotated[np.ndarray, "float64[rows]"],
    targets: Annotated[np.ndarray, "float64[rows]"],
    weights: Annotated[np.ndarray, "float64[rows]"],
    gradients: Annotated[np.ndarray, "float32[rows]"],
    curvatures: Annotated[np.ndarray, "float32[rows]"],
) -> None:
    """Write gradients and second derivatives of two classes, by the log-odds."""
    for i in range(len(margins)):
        p = 1.0 / (1.0 + power_of_e(-margins[i]))
        gradients[i] = weights[i] * (p - targets[i])
        curvatures[i] = weights[i] * max(p * (1.0 - p), LEAST_CURVATURE)


@compiled
def write_powers(
    margins: Annotated[np.ndarray, "float64[entries]"], powers: Annotated[np.ndarray, "float64[entries]"]
) -> None:
    """Write powers of e; steps of margins are bounded, so that sums of these are finite."""
    for i in range(len(margins)):
        powers[i] = power_of_e(margins[i])


@compiled
def write_derivatives_of_classes(
    powers: Annotated[np.ndarray, "float64[rows, outputs]"],
    targets: Annotated[np.ndarray, "float64[rows]"],
    weights: Annotated[np.ndarray, "float64[rows]"],
    gradients: Annotated[np.ndarray, "float32[rows, outputs]"],
    curvatures: Annotated[np.ndarray, "float32[rows, outputs]"],
) -> None:
    """Write gradients and second derivatives of several classes, by powers of e, of which probabilities are shares."""
    n_outputs = powers.shape[1]
    for i in range(len(powers)):
        total, weight = 0.0, weights[i]
        for k in range(n_outputs):
            total += powers[i, k]
        over = 1.0 / total
        for k in range(n_outputs):
            p = powers[i, k] * over
            gradients[i, k] = weight * p
            curvatures[i, k] = weight * max(p * (1.0 - p), LEAST_CURVATURE)
        of_row = np.int64(targets[i])
        gradients[i, of_row] = weight * (powers[i, of_row] * over - 1.0)
