"""Base class of the regressors."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score, r2_score
from sklearn.utils import check_array

from tunefree.core.errors import DataError
from tunefree.core.numbers import MOST
from tunefree.estimators import validation
from tunefree.estimators.base import OnlineEstimator
from tunefree.estimators.parameters import documented, estimator
from tunefree.losses import loss_of
from tunefree.losses.contract import has_log_link
from tunefree.losses.rates import are_impossible, as_rates, check_has_rates, problem_of_target


@estimator
class OnlineRegressorBase(RegressorMixin, OnlineEstimator):
    """Base class of online regressors. Targets are numbers."""

    _task = "regression"

    @documented
    def fit(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None, callbacks: Any = None) -> Self:
        """Fit the model; with ``warm_start``, continue from the current model."""
        return self._learn(X, y, sample_weight, callbacks, exposure=exposure)

    @documented
    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None, callbacks: Any = None
    ) -> Self:
        """Update the model with one pass over the given rows, in their order.

        Each call has an overhead, larger than the time to learn a row: pass some hundred rows at a time for speed.
        """
        return self._learn(X, y, sample_weight, callbacks, is_stream=True, exposure=exposure)

    def _prepared_targets(
        self, y: np.ndarray, weight: np.ndarray, is_continued: bool, is_stream: bool, **roles: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        y, weight = self._rates(y, weight, roles["exposure"], may_be_zero=is_continued or is_stream)
        if not is_continued:
            self._begin([])
        return y, weight

    def _checked_exposures(self, exposure: Any, n_rows: int) -> np.ndarray | None:
        """Return validated float64 exposures (n,), or None; raise a ModelError if the loss takes none."""
        if exposure is None:
            return None
        check_has_rates(self.loss)
        array = validation.numbers_of_rows("exposure", exposure, n_rows)
        for row in np.flatnonzero(~(np.isfinite(array) & (array > 0.0))).tolist():
            problem = f"the exposure is {'missing' if np.isnan(array[row]) else f'{array[row]:g}'}"
            remedy = "correct it, or leave the row out: a row without exposure says nothing"
            raise DataError(f"{problem}, and exposures are numbers above 0", "exposure", row + 1, remedy=remedy)
        return array

    def _rates(
        self, y: np.ndarray, weight: np.ndarray, exposure: Any, may_be_zero: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the targets and weights to learn, given exposures; ``may_be_zero``: whether all targets may be 0."""
        loss = loss_of("regression", self.loss)
        exposures = self._checked_exposures(exposure, len(y))
        for row in np.flatnonzero(are_impossible(loss, y)).tolist():
            problem, remedy = problem_of_target(loss, y[row])
            raise DataError(problem, "y", row + 1, remedy=remedy)
        if has_log_link(loss) and not may_be_zero and not (y[weight > 0] > 0).any():
            problem = f"all targets are 0, and the {self.loss} loss takes means above 0"
            raise ValueError(f"y: {problem}; give rows with a target above 0")
        return (y, weight) if exposures is None else as_rates(loss, y.astype(np.float64), weight, exposures)

    def _targets(self, y: np.ndarray, row: np.ndarray) -> np.ndarray:
        return y[row].astype(np.float64)

    @documented
    def predict(self, X: Any, exposure: Any = None) -> np.ndarray:
        """Predict the target of each row; with a loss of counts or amounts, the mean of the target.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        predictions = self._predictions(X)  # raises NotFittedError
        rates = self._learned.model.responses(predictions)
        exposures = self._checked_exposures(exposure, len(rates))
        if exposures is None:
            return rates
        with np.errstate(over="ignore"):
            return np.minimum(rates * exposures, MOST)

    @documented
    def score(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> float:
        """Return the coefficient of determination R^2, or with a loss of counts or amounts the explained deviance D^2.

        1 is best; the mean of the targets, or of the rates with exposures, has 0. D^2 is as in ``PoissonRegressor``.
        """
        objective, predicted = loss_of("regression", str(self.loss)), self.predict(X)
        if not has_log_link(objective):
            self._checked_exposures(exposure, len(predicted))
            return float(r2_score(y, predicted, sample_weight=sample_weight))
        targets = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        weight = validation.weights(sample_weight, len(targets), may_vanish=False)
        rates, weight = self._rates(targets, weight, exposure, may_be_zero=True)
        return float(d2_tweedie_score(rates, predicted, sample_weight=weight, power=objective.power))
