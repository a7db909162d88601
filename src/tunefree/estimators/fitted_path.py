"""What a fit of iterative regularization leaves behind, and how it predicts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tunefree.early_stopping.problem import Rows
from tunefree.early_stopping.products import expand
from tunefree.early_stopping.spaces import Dictionary
from tunefree.estimators.path_targets import Targets
from tunefree.estimators.preparation import LARGEST, Standards


class FittedPath(NamedTuple):
    """The whole path with all that turns rows into margins: enough to predict with any iterate, and to certify."""

    descent: Any  # a Descent, or a Path that was saved
    targets: Targets  # of no rows
    standards: Standards  # of the columns
    kernel: Any  # None for weights of features
    support: Any  # prepared rows that were learned; None without a kernel
    mass: float  # total weight of the rows learned
    kappa: float  # the largest norm of a row in the space
    has_held_out: bool  # whether rows were held out
    calibration: tuple[Any, Rows] | None  # prepared rows that probabilities are learned from, where the loss needs them

    def path(self) -> np.ndarray:
        """The method's path, in units of the targets."""
        path = self.descent.path
        for name in (path.dtype.names or ())[1:]:
            column = path[name]
            with np.errstate(over="ignore"):
                if name.endswith("loss") or name == "inner":
                    column *= self.targets.loss_unit
                elif name.endswith("error") or name == "norm":
                    column *= self.targets.unit
            np.clip(column, -LARGEST, LARGEST, out=column)
        return path.view(np.recarray)

    def margins(self, coefficients: np.ndarray, features: Any, device: str | None = None) -> np.ndarray:
        """f(x) (n, K) of prepared rows, in the method's units.

        ``coefficients`` (p, K): of an iterate, or of an average.
        ``features`` (n, d): prepared as those that were learned.
        ``device``: where PyTorch computes the kernel.
        """
        if self.kernel is not None:
            return expand(self.kernel, self.support, coefficients, features, device)
        return Dictionary(features[:0], features).held(coefficients)
