"""From the members' predictions to those of a model: aggregated by the mixture, calibrated to log-odds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tunefree.core.states import filled, flatten
from tunefree.model import calibration
from tunefree.model.mixture import Mixture, combine, mix, without
from tunefree.model.options import ModelOptions


@dataclass
class Aggregation:
    """The mixture of a model's members, and the calibration of its margins."""

    mixture: Mixture
    calibration: Any  # None where predictions are log-odds, or numbers

    @classmethod
    def create(cls, options: ModelOptions, n_members: int, n_classes: int) -> Aggregation:
        """Equal shares, and a calibration that has seen nothing."""
        made = calibration.Calibration.create(n_classes) if options.is_calibrated else None
        return cls(Mixture.for_task(options.task, n_members, options.follows_the_leader), made)

    def update(
        self,
        objective: Any,
        y: np.ndarray,
        evaluation_weight: np.ndarray,
        predictions: np.ndarray,
        otherwise: np.ndarray | None = None,
    ) -> np.ndarray:
        """Predict rows of a stream, and update shares and calibration by their targets.

        Parameters
        ----------
        objective : objective
        y, evaluation_weight : (n,) arrays
        predictions : (N, n, K) array
            Of the members, each made before its row was learned; is overwritten.
        otherwise : (n,) array, optional
            The predictions of rows of which all members sleep; 0 by default.

        Returns
        -------
        (n, K) array
            The prediction of each row before its target was used.
        """
        if self.calibration is not None or otherwise is not None:
            asleep = np.isnan(predictions).all(axis=(0, 2))
        mixed = _alone(predictions[0]) if len(predictions) == 1 else np.empty_like(predictions[0])
        if len(predictions) > 1:
            mix(self.mixture, objective, y, evaluation_weight, predictions, mixed)
        if self.calibration is not None:  # rows of which all members slept have no margin to learn from
            told = np.where(asleep, 0.0, evaluation_weight)
            calibration.learn(self.calibration, mixed, y > 0 if predictions.shape[2] == 1 else y, told)
        if otherwise is not None:
            mixed[asleep, 0] = otherwise[asleep]
        return mixed

    def predict(self, objective: Any, predictions: np.ndarray, shares: np.ndarray | None = None) -> np.ndarray:
        """Predictions (n, K) of new rows from those (N, n, K) of the members, which are overwritten.

        ``shares`` (N,) are those of the mixture if None; others may be of the members, and then of their averages.
        """
        if len(predictions) == 1:
            return _alone(predictions[0])
        mixed = np.empty_like(predictions[0])
        mixture = self.mixture
        if shares is not None:
            losses = np.tile(mixture.losses, len(shares) // len(mixture.losses))  # who has failed fails on average too
            mixture = mixture._replace(means=shares, losses=losses)
        combine(mixture, objective, predictions, mixed)
        return mixed

    def log_odds(self, margins: np.ndarray) -> np.ndarray:
        """Logarithms (n, classes) of what is proportional to the probabilities."""
        return calibration.log_odds(self.calibration, margins)

    def add_class(self, n_classes: int) -> None:
        """Know one more class."""
        if self.calibration is not None:
            self.calibration = calibration.add_classes(
                self.calibration, n_classes, int(self.calibration.view.rounds[()])
            )

    def prune(self, leaves: np.ndarray) -> None:
        """Go on without some members."""
        if leaves.any():
            self.mixture = without(self.mixture, ~leaves)

    def save_state(self, n_features: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header from which :meth:`restore` makes the same aggregation."""
        arrays, scalars = flatten("mixture", self.mixture, n_features)
        if self.calibration is not None:
            more = flatten("calibration", self.calibration, len(self.calibration.learner.features))
            arrays, scalars = arrays | more[0], scalars | more[1]
        return arrays, {"scalars": scalars}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Take over what :meth:`save_state` wrote."""
        self.mixture = filled("mixture", self.mixture, arrays, header["scalars"])
        if self.calibration is not None:
            self.calibration = filled("calibration", self.calibration, arrays, header["scalars"])


def _alone(predictions: np.ndarray) -> np.ndarray:
    """The predictions of a single member, in place; 0 while it sleeps, and where one is no finite number."""
    return np.nan_to_num(predictions, copy=False, posinf=0.0, neginf=0.0)
