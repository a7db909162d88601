"""The predictor of a model that consists of a single linear learner, without a mixture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from tunefree.core.part import LEARNED, Part, argument, child
from tunefree.mixing.mixture import Mixture
from tunefree.pool import calibration
from tunefree.pool.calibration import Calibration
from tunefree.pool.linear_group import LinearGroup
from tunefree.pool.rows import LabelledRows


class Single(Part):
    """The predictor of a model of one linear learner, with the interface of :class:`tunefree.pool.pool.Pool`.

    Margins of ``n_classes`` are calibrated to log-odds; ``n_classes`` is None for numbers, and for margins that are
    log-odds already.
    """

    bank: Any = argument()  # None
    only_predicts: ClassVar[bool] = False
    linear: LinearGroup = argument()
    calibration: Calibration | None = child(Calibration, LEARNED, may_be_none=True)

    def __init__(self, linear: LinearGroup, n_classes: int | None) -> None:
        self.linear, self.bank = linear, None
        self.calibration = None if n_classes is None else Calibration.create(n_classes)

    def learn(self, rows: LabelledRows, again: bool = False) -> Iterator[np.ndarray]:
        """Predict each row before it is learned; yields the predictions (n, K) of consecutive pieces.

        The calibration learns nothing from rows that come ``again``.
        """
        for some in rows.pieces():
            (predictions,) = self.linear.learn(some, again)
            yield self._calibrated(predictions, some.y, np.zeros(len(some.y)) if again else some.weight)

    def _calibrated(self, predictions: np.ndarray, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Predictions (n, K), 0 where they are not finite; the calibration learns from them."""
        predictions = finite(predictions)
        if self.calibration is not None:
            calibration.learn(self.calibration, predictions, y, weight)
        return predictions

    def predict(self, X: Any) -> np.ndarray:
        """Predictions (n, K) of future rows."""
        return finite(self.linear.present().predict(X)[0])

    @property
    def mixtures(self) -> list[Mixture]:
        """An empty list: a single member is not mixed."""
        return []

    def shares(self) -> dict[str, float]:
        """The share of each member in predictions of future rows, by name."""
        return {self.linear.members[0].setting.name: 1.0}

    def add_class(self, objective: Any, n_outputs: int, n_classes: int) -> None:
        """Add a class; members then have ``n_outputs`` outputs and this objective."""
        self.linear.add_class(objective, n_outputs)
        if self.calibration is not None:
            rows = int(self.calibration.view.rounds[0])
            self.calibration = calibration.add_classes(self.calibration, n_classes, rows)

    def forget(self, features: np.ndarray) -> None:
        """Forget features."""
        self.linear.forget(features)

    def begin_pass(self) -> None:
        """Prepare for another pass over learned rows."""

    def finish(self) -> None:
        """End a pass."""


def finite(predictions: np.ndarray) -> np.ndarray:
    """Predictions, with 0 instead of numbers that are not finite."""
    return np.nan_to_num(predictions, posinf=0.0, neginf=0.0)
