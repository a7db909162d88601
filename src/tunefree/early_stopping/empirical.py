"""The empirical error and its left derivative, row by row: the compiled part of the subgradient method."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core import compiled
from tunefree.core.generic import generic
from tunefree.losses import left_slope
from tunefree.losses.objectives import Binary, Multinomial, OneAgainstAll, loss_at, true_slope_multinomial


@generic
def left_gradient(objective: Any, y: float, margins: np.ndarray, slopes: np.ndarray) -> None:
    """Write the left derivative (K,) of the loss in each margin; of smooth losses this is the gradient."""
    raise TypeError(f"{type(objective).__name__} is not an objective")


left_gradient.register(Multinomial)(true_slope_multinomial)


@left_gradient.register(Binary)
def left_gradient_binary(objective, y, margins, slopes):
    slopes[0] = left_slope(objective.loss, y, margins[0])


@left_gradient.register(OneAgainstAll)
def left_gradient_one_against_all(objective, y, margins, slopes):
    for k in range(len(margins)):
        slopes[k] = left_slope(objective.loss, 1.0 if k == y else -1.0, margins[k])


@compiled.entry
def respond(objective, y, weight, margins, slopes, losses):
    """Write weighted slopes (n, K) and losses (n,) of margins (n, K)."""
    for i in range(len(y)):
        left_gradient(objective, y[i], margins[i], slopes[i])
        losses[i] = loss_at(objective, y[i], margins[i])
        for k in range(slopes.shape[1]):
            slopes[i, k] *= weight[i]


@compiled.entry
def losses_of_rows(objective, y, margins, losses):
    """Write the losses (n,) of margins (n, K)."""
    for i in range(len(y)):
        losses[i] = loss_at(objective, y[i], margins[i])


@compiled.entry
def visit(objective, y, weight, steps, gram, margins, slopes):
    """Take rows one after the other: margins (n, K) as of the first row become those that each row met.

    ``gram`` (n, n) has the inner products of the rows, ``slopes`` (n, K) receives the weighted slopes.
    """
    for i in range(len(y)):
        left_gradient(objective, y[i], margins[i], slopes[i])
        for k in range(slopes.shape[1]):
            slopes[i, k] *= weight[i]
            move = steps[i] * slopes[i, k]
            for j in range(i + 1, len(y)):
                margins[j, k] -= move * gram[i, j]
