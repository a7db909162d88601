"""What an estimator has learned."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tunefree.estimators.validation import Rounds
from tunefree.kernel.feature_expansion import SWITCHED
from tunefree.model.model import Model


class Learned:
    """The model of an estimator, and what its user has been told."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._told = False  # that members go on in features

    def learn(self, X: Any, y: Any, rounds: Rounds, first: bool) -> None:
        """Learn a block, of these rounds; in a first pass members are evaluated, and losses are counted."""
        evaluation_weight = rounds.weight if first else np.zeros(len(rounds.weight))
        more: dict[str, Any] = {} if first else {"again": True}
        more |= {} if rounds.group is None else {"groups": rounds.group}
        predictions, row_losses = self.model.learn(X, y, rounds.weight, evaluation_weight, **more)
        if first:
            self.model.metrics.add(rounds.counts, row_losses, self.model.errors(y, predictions))
        self._tell()

    def _tell(self) -> None:
        """Warn, once, that kernel learners go on in features."""
        if self.model.switched is not None and not self._told:
            self._told = True
            warnings.warn(f"{SWITCHED.format(self.model.switched)}; a larger max_support is more exact", stacklevel=2)
