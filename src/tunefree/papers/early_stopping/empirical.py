"""The empirical error and its left derivative, row by row: the compiled part of the subgradient method."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from tunefree.core.kernels import Kernel
from tunefree.losses.kinds import arrays_of
from tunefree.losses.loops import Loop


@Loop
def _respond(functions):
    left_slope, loss_at = functions.left_slope, functions.loss_at

    def respond(
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        y: Annotated[np.ndarray, "float64[rows]"],
        weight: Annotated[np.ndarray, "float64[rows]"],
        margins: Annotated[np.ndarray, "float64[rows, outputs]"],
        slopes: Annotated[np.ndarray, "float64[rows, outputs]"],
        losses: Annotated[np.ndarray, "float64[rows]"],
    ) -> None:
        n_outputs = margins.shape[1]
        for i in range(len(y)):
            left_slope(codes, numbers, y[i], n_outputs, margins[i], slopes[i])
            losses[i] = loss_at(codes, numbers, y[i], n_outputs, margins[i])
            for k in range(n_outputs):
                slopes[i, k] *= weight[i]

    return respond


def respond(
    objective: Any, y: np.ndarray, weight: np.ndarray, margins: np.ndarray, slopes: np.ndarray, losses: np.ndarray
) -> None:
    """Write weighted left derivatives (n, K) and losses (n,) of margins (n, K)."""
    _respond(*arrays_of(objective), y, weight, margins, slopes, losses)


@Loop
def _visit(functions):
    left_slope = functions.left_slope

    def visit(
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        y: Annotated[np.ndarray, "float64[rows]"],
        weight: Annotated[np.ndarray, "float64[rows]"],
        steps: Annotated[np.ndarray, "float64[rows]"],
        gram: Annotated[np.ndarray, "float64[rows, rows]"],
        margins: Annotated[np.ndarray, "float64[rows, outputs]"],
        slopes: Annotated[np.ndarray, "float64[rows, outputs]"],
    ) -> None:
        n_outputs = margins.shape[1]
        for i in range(len(y)):
            left_slope(codes, numbers, y[i], n_outputs, margins[i], slopes[i])
            for k in range(n_outputs):
                slopes[i, k] *= weight[i]
                move = steps[i] * slopes[i, k]
                for j in range(i + 1, len(y)):
                    margins[j, k] -= move * gram[i, j]

    return visit


def visit(
    objective: Any,
    y: np.ndarray,
    weight: np.ndarray,
    steps: np.ndarray,
    gram: np.ndarray,
    margins: np.ndarray,
    slopes: np.ndarray,
) -> None:
    """Take rows one after the other: margins (n, K) as of the first row become those at which each row was taken.

    ``gram`` (n, n) has the inner products of the rows, ``slopes`` (n, K) receives the weighted left derivatives.
    """
    _visit(*arrays_of(objective), y, weight, steps, gram, margins, slopes)


def all_kernels() -> list[Kernel]:
    """The kernels of this module."""
    return [_respond.kernel(), _visit.kernel()]
