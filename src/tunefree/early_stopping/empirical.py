"""The empirical error and its left derivative, row by row: the compiled part of the subgradient method."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import numpy as np

from tunefree.core.kernels import Kernel
from tunefree.losses.kinds import Functions, arrays_of, functions_over
from tunefree.losses.switch import loss_classes


def responding_of(functions: Functions) -> Callable[..., None]:
    """The loop that answers margins of rows by losses and slopes."""
    left_slope, loss_at = functions.left_slope, functions.loss_at

    def respond(
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        targets: Annotated[np.ndarray, "float64[rows]"],
        weights: Annotated[np.ndarray, "float64[rows]"],
        margins: Annotated[np.ndarray, "float64[rows, outputs]"],
        slopes: Annotated[np.ndarray, "float64[rows, outputs]"],
        losses: Annotated[np.ndarray, "float64[rows]"],
    ) -> None:
        n_outputs = margins.shape[1]
        for i in range(len(targets)):
            left_slope(codes, numbers, targets[i], n_outputs, margins[i], slopes[i])
            losses[i] = loss_at(codes, numbers, targets[i], n_outputs, margins[i])
            for k in range(n_outputs):
                slopes[i, k] *= weights[i]

    return respond


def visiting_of(functions: Functions) -> Callable[..., None]:
    """The loop that takes one step for each row."""
    left_slope = functions.left_slope

    def visit(
        codes: Annotated[np.ndarray, "int64[2]"],
        numbers: Annotated[np.ndarray, "float64[facts]"],
        targets: Annotated[np.ndarray, "float64[rows]"],
        weights: Annotated[np.ndarray, "float64[rows]"],
        steps: Annotated[np.ndarray, "float64[rows]"],
        gram: Annotated[np.ndarray, "float64[rows, rows]"],
        margins: Annotated[np.ndarray, "float64[rows, outputs]"],
        slopes: Annotated[np.ndarray, "float64[rows, outputs]"],
    ) -> None:
        n_outputs = margins.shape[1]
        for i in range(len(targets)):
            left_slope(codes, numbers, targets[i], n_outputs, margins[i], slopes[i])
            for k in range(n_outputs):
                slopes[i, k] *= weights[i]
                move = steps[i] * slopes[i, k]
                for j in range(i + 1, len(targets)):
                    margins[j, k] -= move * gram[i, j]

    return visit


@cache
def _responding(losses: tuple[type, ...]) -> Kernel:
    return Kernel(responding_of(functions_over(losses)), "early_stopping.empirical.respond")


@cache
def _visiting(losses: tuple[type, ...]) -> Kernel:
    return Kernel(visiting_of(functions_over(losses)), "early_stopping.empirical.visit")


def all_kernels() -> list[Kernel]:
    """The kernels of this module."""
    return [_responding(loss_classes()), _visiting(loss_classes())]


def respond(
    objective: Any, y: np.ndarray, weight: np.ndarray, margins: np.ndarray, slopes: np.ndarray, losses: np.ndarray
) -> None:
    """Write weighted left derivatives (n, K) and losses (n,) of margins (n, K)."""
    _responding(loss_classes())(*arrays_of(objective), y, weight, margins, slopes, losses)


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
    _visiting(loss_classes())(*arrays_of(objective), y, weight, steps, gram, margins, slopes)
