"""From the members' predictions to those of a model.

A single learner predicts alone: it is the leader. Kernel learners of several widths are mixed by the rule of the pool
(:mod:`tunefree.mixing`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from tunefree.core.part import FIXED, LEARNED, Part, array, child
from tunefree.losses import loss_of
from tunefree.losses.objectives import measured
from tunefree.mixing.mixture import Mixture
from tunefree.model import calibration
from tunefree.model.calibration import Calibration
from tunefree.model.options import ModelOptions
from tunefree.model.relative import RelativeWeights

MOST_LOSS = 1e300  # what losses, and total losses, end at; sums of such have room above it


class Leader(Part):
    """The member with the least total loss so far predicts, the first of several.

    Parameters
    ----------
    n_members : int
    n_classes : int, optional
        Of margins that are calibrated to log-odds; None where predictions are numbers, or log-odds themselves.

    Attributes
    ----------
    losses : (N,) array
        Total loss of each member; infinite once it predicted what is no finite number. A single one is not judged.
    calibration : Calibration or None
    """

    mixture: ClassVar[Mixture | None] = None
    losses = array("float64", ("N",), FIXED, low=0, may_be_infinite=True)
    calibration: Calibration | None = child(Calibration, LEARNED, may_be_none=True)

    def __init__(self, n_members: int, n_classes: int | None) -> None:
        self.losses = np.zeros(n_members)
        self.calibration = None if n_classes is None else Calibration.create(n_classes)

    def learn(self, objective: Any, y: np.ndarray, weight: np.ndarray, predictions: np.ndarray) -> np.ndarray:
        """Predict rows of a stream in order, and learn each after that.

        Parameters
        ----------
        objective : objective
            Of a member.
        y, weight : (n,) arrays
            Targets as the objective takes them. A row of weight 0 is predicted only; one of which all members sleep is
            not learned either, and its prediction is 0.
        predictions : (N, n, K) array
            Of the members, each made before its row was learned; NaN while a member sleeps.

        Returns
        -------
        (n, K) array
            The prediction of each row before its target was used.
        """
        weight = _of_rows_awake(weight, predictions)
        leaders = self._leaders(objective, y, weight, predictions)
        chosen = _finite(predictions[leaders, np.arange(len(y))])
        if self.calibration is not None:
            calibration.learn(self.calibration, chosen, _codes(y, predictions.shape[2]), weight)
        return chosen

    def _leaders(self, objective: Any, y: np.ndarray, weight: np.ndarray, predictions: np.ndarray) -> np.ndarray:
        """The place of the leader before each row; a single member is that of all rows."""
        if len(self.losses) == 1:
            return np.zeros(len(y), np.int64)
        rows = [measured(objective, y, np.ascontiguousarray(_finite(of_member))) for of_member in predictions]
        losses = np.where(np.isfinite(predictions).all(axis=2), np.array(rows), np.inf)
        with np.errstate(over="ignore"):
            counted = np.multiply(losses, weight, out=np.zeros(losses.shape), where=weight > 0.0)
        counted = np.where(np.isfinite(losses), np.minimum(counted, MOST_LOSS), counted)
        totals = np.cumsum(np.column_stack([self.losses, counted]), axis=1)
        totals = np.where(np.isfinite(totals), np.minimum(totals, MOST_LOSS), totals)
        self.losses = totals[:, -1].copy()
        return totals[:, :-1].argmin(axis=0)

    def predict(self, predictions: np.ndarray) -> np.ndarray:
        """Predictions (n, K) of new rows from those (N, n, K) of the members."""
        return _finite(predictions[self.losses.argmin()])

    @property
    def shares(self) -> np.ndarray:
        """The share (N,) of each member in predictions of new rows."""
        return np.eye(len(self.losses))[self.losses.argmin()]

    def log_odds(self, margins: np.ndarray) -> np.ndarray:
        """Logarithms (n, classes) of what is proportional to the probabilities."""
        return calibration.log_odds(self.calibration, margins)

    def add_class(self, n_classes: int) -> None:
        """Know one more class."""
        if self.calibration is not None:
            rows = int(self.calibration.view.rounds[0])
            self.calibration = calibration.add_classes(self.calibration, n_classes, rows)


class Mixed(Part):
    """A mixture of members that predict log-odds of classes, or numbers.

    Parameters
    ----------
    n_members : int
    n_classes : int
        0 for numbers.
    loss : loss, optional
        Of numbers.
    """

    mixture = child(Mixture, LEARNED)
    relative = child(RelativeWeights, LEARNED)

    def __init__(self, n_members: int, n_classes: int, loss: Any = None) -> None:
        self.mixture = Mixture(n_members, n_classes, loss)
        self.relative = RelativeWeights()

    def learn(self, objective: Any, y: np.ndarray, weight: np.ndarray, predictions: np.ndarray) -> np.ndarray:
        """Predict rows of a stream in order, and learn each after that, see :meth:`Leader.learn`."""
        relative = self.relative.of(_of_rows_awake(weight, predictions))
        targets = y if self.mixture.loss is not None else _codes(y, predictions.shape[2])
        mixed = self.mixture.learn(self._as_mixed(predictions), targets, relative)
        margins = self._as_margins(mixed, predictions.shape[2])
        return np.where(asleep(predictions)[:, None], 0.0, margins)

    def predict(self, predictions: np.ndarray) -> np.ndarray:
        """Predictions (n, K) of new rows from those (N, n, K) of the members."""
        return self._as_margins(self.mixture.predict(self._as_mixed(predictions)), predictions.shape[2])

    def _as_mixed(self, predictions: np.ndarray) -> np.ndarray:
        """Log-probabilities or numbers (n, N, C); NaN where a member sleeps, or predicts what is no finite number."""
        known = np.isfinite(predictions).all(axis=2, keepdims=True)
        rows = np.where(known, predictions, np.nan).transpose(1, 0, 2)
        if self.mixture.loss is not None:
            return rows
        odds = np.concatenate([np.zeros_like(rows), rows], axis=2) if rows.shape[2] == 1 else rows
        with np.errstate(invalid="ignore"):
            return odds - np.logaddexp.reduce(odds, axis=2, keepdims=True)

    def _as_margins(self, mixed: np.ndarray, n_outputs: int) -> np.ndarray:
        """Margins (n, K) of log-probabilities: one of up to two classes."""
        is_of_two = self.mixture.loss is None and n_outputs == 1
        return mixed[:, 1:] - mixed[:, :1] if is_of_two else mixed

    @property
    def shares(self) -> np.ndarray:
        """The weight (N,) of each member in the base of the mixture that predicts new rows."""
        return self.mixture.base.means

    def log_odds(self, margins: np.ndarray) -> np.ndarray:
        """Logarithms (n, classes) of what is proportional to the probabilities."""
        return calibration.of_classes(margins)

    def add_class(self, n_classes: int) -> None:
        """Know one more class."""
        if n_classes > 2:
            self.mixture.add_class()


def aggregation_of(options: ModelOptions, n_members: int, n_classes: int) -> Leader | Mixed:
    """What has seen nothing; the pool aggregates by itself, and needs one of no member."""
    if options.is_pool:
        return Leader(0, None)
    if options.is_mixed:
        is_numeric = options.task == "regression"
        loss = loss_of(options.task, options.loss) if is_numeric else None
        return Mixed(n_members, 0 if is_numeric else max(n_classes, 2), loss)
    return Leader(n_members, n_classes if options.is_calibrated else None)


def asleep(predictions: np.ndarray) -> np.ndarray:
    """The rows (n,) of which all members sleep, by their predictions (N, n, K)."""
    return np.isnan(predictions).all(axis=(0, 2))


def _of_rows_awake(weight: np.ndarray, predictions: np.ndarray) -> np.ndarray:
    """Weights; 0 of rows of which all members sleep, which say nothing about them."""
    return np.where(asleep(predictions), 0.0, weight)


def _codes(y: np.ndarray, n_outputs: int) -> np.ndarray:
    """Numbers of classes from targets as the objective takes them."""
    return np.where(y > 0, 1.0, 0.0) if n_outputs == 1 else y


def _finite(predictions: np.ndarray) -> np.ndarray:
    """Predictions; 0 while a member sleeps, and where one is no finite number."""
    return np.nan_to_num(predictions, posinf=0.0, neginf=0.0)
