"""What a pair of columns adds beyond functions of either column.

The products of a pair can represent any function of one of its columns too. Without a convention nothing would tell
what belongs to the pair. Here it is that of a functional analysis of variance (Lengerich, Tan, Chang, Hooker, Caruana:
Purifying interaction effects with the functional ANOVA, AISTATS 2020). The weights of a pair are a table of cells.
Functions of one column each that fit the table best (least squares, each cell counted as often as the rows of a sample
lie in it) are taken from the pair and added to the columns. No prediction changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tunefree.additive.features import AdditiveFeatures
from tunefree.core.rows import Table


class Cells(NamedTuple):
    """In which cells of a source rows lie; the last cell of codes is for those without one."""

    places: np.ndarray  # (n, 2) int64
    heights: np.ndarray  # (n, 2) which part of a row lies in each; they add up to 1

    def of(self, weights: np.ndarray) -> np.ndarray:
        """Weights (cells, K), interpolated (n, K)."""
        return np.einsum("is,isk->ik", self.heights, weights[self.places])


class MainEffects(NamedTuple):
    """What was taken from a pair."""

    first: np.ndarray  # (cells, K) of its first column
    second: np.ndarray  # (cells, K) of its second column


def cells_of(features: AdditiveFeatures, source: int, rows: Table) -> Cells:
    """In which cells of a source of pairs rows lie."""
    n, n_numbers = len(rows.numbers), len(features.knots)
    if source < n_numbers:
        own = features.knots[source]
        knots = own.values[own.levels == 0]
        with np.errstate(over="ignore", invalid="ignore"):  # knots may be too near to each other for a finite slope
            position = np.interp(rows.numbers[:, source], knots, np.arange(len(knots), dtype=float))
        position = np.where(np.isfinite(position), position, np.searchsorted(knots, rows.numbers[:, source]))
        left = np.clip(position.astype(np.int64), 0, max(len(knots) - 2, 0))
        right = np.minimum(left + 1, len(knots) - 1)
        return Cells(np.column_stack([left, right]), np.column_stack([1.0 - (position - left), position - left]))
    column = np.flatnonzero(rows.code_columns == features.sources.code_columns[source - n_numbers])
    codes = rows.codes[:, column[0]] if len(column) else np.zeros(n, np.int64)
    cells = np.append(features.cell_of, 0)[np.minimum(codes, len(features.cell_of))].astype(np.int64) - 1
    cells = np.where(cells < 0, features.sources.sizes[source], cells)
    return Cells(np.column_stack([cells, cells]), np.tile([1.0, 0.0], (n, 1)))


def main_effects(weights: np.ndarray, first: Cells, second: Cells) -> MainEffects:
    """The functions of one column each that are nearest to the weights of a pair.

    Parameters
    ----------
    weights : (s, t, K) array
        Of the cells of both columns.
    first, second : Cells
        Where the rows of a sample lie.

    Examples
    --------
    >>> places = np.array([[0, 0], [0, 0], [1, 1], [1, 1]])
    >>> own, other = (Cells(of, np.tile([1.0, 0.0], (4, 1))) for of in (places, places[[0, 2, 1, 3]]))
    >>> found = main_effects(np.array([[[1.0], [2.0]], [[5.0], [6.0]]]), own, other)
    >>> (found.first[:2, None, 0] + found.second[None, :2, 0]).round(6)
    array([[1., 2.],
           [5., 6.]])
    """
    s, t, n_outputs = weights.shape
    padded = np.zeros((s + 1, t + 1, n_outputs))
    padded[:s, :t] = weights
    mass = np.zeros((s + 1, t + 1))
    for a in range(2):
        for b in range(2):
            np.add.at(mass, (first.places[:, a], second.places[:, b]), first.heights[:, a] * second.heights[:, b])
    system = np.block([[np.diag(mass.sum(1)), mass], [mass.T, np.diag(mass.sum(0))]])
    weighted = mass[:, :, None] * padded
    solution = np.linalg.lstsq(system, np.concatenate([weighted.sum(1), weighted.sum(0)]), rcond=1e-9)[0]
    return MainEffects(solution[: s + 1], solution[s + 1 :])
