"""Objectives of classes by a loss of single margins: two classes with one margin, or each class against the others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class OfClasses:
    """What all objectives of classes have in common."""

    task = "classification"

    def predictions_of(self, margins: np.ndarray) -> np.ndarray:
        """The predictions (n, K) that margins (n, K) stand for: the margins."""
        return margins

    def labels_of(self, targets: np.ndarray) -> np.ndarray:
        """Targets as labels, as they are."""
        return targets


class LossOfMargins(NamedTuple):
    """The fields of objectives by a loss of single margins."""

    loss: Any  # loss of a margin
    steepest: float  # largest absolute slope so far, returned

    @property
    def smoothness(self) -> float:
        """The Lipschitz constant of the gradient in the Euclidean norm: that of each slope."""
        return float(self.loss.smoothness)


class Binary(LossOfMargins, OfClasses):
    """One margin, targets -1 and +1."""


class OneAgainstAll(LossOfMargins, OfClasses):
    """K margins, targets 0 .. K - 1; the sum of the binary losses of each class against the others."""
