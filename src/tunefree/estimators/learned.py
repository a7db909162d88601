"""What an estimator has learned."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tunefree.kernel.feature_expansion import SWITCHED
from tunefree.model.model import Model


class Learned:
    """The model of an estimator, and what its user has been told."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._told = False  # that members go on in features

    def learn(self, X: Any, y: Any, weight: np.ndarray, counts: np.ndarray | None) -> None:
        """Learn a block; rows with ``counts`` enter the progressive loss, and members are evaluated on them."""
        evaluation_weight = weight if counts is not None else np.zeros(len(weight))
        predictions, row_losses = self.model.learn(X, y, weight, evaluation_weight, again=counts is None)
        if counts is not None:
            self.model.metrics.add(counts, row_losses, self.model.errors(y, predictions))
        self._tell()

    def _tell(self) -> None:
        """Warn, once, that kernel learners go on in features."""
        if self.model.switched is not None and not self._told:
            self._told = True
            warnings.warn(f"{SWITCHED.format(self.model.switched)}; a larger max_support is more exact", stacklevel=2)
