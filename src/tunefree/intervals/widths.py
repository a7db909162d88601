"""The expected error of the prediction of a row, which is the unit of its residual.

Papadopoulos, Gammerman, Vovk: Normalized nonconformity measures for regression conformal prediction (AIA 2008): the
score of a row is (y - p) / (s(x) + beta), with s a model of the residuals, and beta a part of their mean, so that
scores do not become large where s is small by chance. Here s is the square of the mean root of a residual over
randomised trees. Roots are shrunk towards their mean, and make s robust to heavy tails.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.numbers import CEILING, clipped
from tunefree.core.part import FIXED, Part, child, number
from tunefree.core.schema import Number
from tunefree.generations.columns import is_categorical
from tunefree.generations.problem import Problem, Settings, prepared, relative
from tunefree.generations.randomised import grow_randomised
from tunefree.generations.trees import Trees
from tunefree.intervals.conformal import recency
from tunefree.losses import Square

SETTINGS = Settings(trees=0.5, least=20.0)  # large leaves, as residuals are mostly noise
EARLIEST, FEWEST = 512, 40  # fewest rows learned, and fewest residuals, for which trees are grown
SHRINKAGE = 0.5  # part of the mean root that is added to the roots of the trees
LEAST = 1e-150  # smallest width, so that scores are finite


class Widths(Part):
    """Expected residuals of rows.

    >>> Widths(2.0).of(np.empty((2, 0)), np.zeros(2))
    array([9., 9.])
    """

    mean = number(FIXED, Number(0))  # mean root of a residual
    trees = child(Trees, FIXED, may_be_none=True)  # for roots, by the prediction and the columns of rows
    n_columns = number(FIXED, Number(0, 2**31 - 1, whole=True))  # of the trees, with the prediction

    def __init__(self, mean: float = 0.0, trees: Trees | None = None, n_columns: int = 0) -> None:
        self.mean, self.trees, self.n_columns = mean, trees, n_columns

    def check(self) -> None:
        """Raise a ModelError unless the trees are sound."""
        if self.trees is not None:
            self.trees.check(self.n_columns)

    def of(self, matrix: np.ndarray, predictions: np.ndarray) -> np.ndarray:
        """The widths (n,) of rows by their predictions and columns (n, c); later columns have no effect."""
        roots: Any = self.mean
        if self.trees is not None:
            columns = np.column_stack([predictions, matrix[:, : self.n_columns - 1]])
            roots = np.maximum(self.trees.apply(columns)[1][0, :, 0], 0.0)
        widths: np.ndarray = np.full(len(predictions), (roots + SHRINKAGE * self.mean) ** 2)
        return np.clip(widths, LEAST, CEILING)

    @classmethod
    def grown(cls, kept: dict[str, Any], keys: list[int], rows: int) -> Widths:
        """Widths for the residuals kept of so many rows; columns after the prediction have ``keys``."""
        roots = np.sqrt(np.abs(clipped(kept["targets"])))
        weights = kept["weights"] * recency(kept["digests"].astype(np.float64))
        mean, n_columns = float(np.mean(relative(weights) * roots)) if len(roots) else 0.0, kept["columns"].shape[1]
        if rows < EARLIEST or n_columns < 2 or len(roots) < FEWEST:
            return cls(mean)
        is_code = np.append(False, is_categorical(np.array(keys, np.int64)))[:n_columns]
        columns = np.ascontiguousarray(kept["columns"])
        problem = Problem(columns, is_code, roots, weights, 0, Square())
        return cls(mean, grow_randomised(prepared(problem), rows, SETTINGS), n_columns)
