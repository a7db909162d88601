"""Online regressors, see :mod:`tunefree.estimators.base`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from tunefree.estimators import exposures, jobs, validation
from tunefree.estimators.base import OnlineEstimator
from tunefree.estimators.model_file import WholeOnly


class OnlineRegressorBase(RegressorMixin, OnlineEstimator):
    """Targets are numbers."""

    _task = "regression"

    def fit(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> Any:
        """Fit the model (with ``warm_start``, continue from the present model).

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        exposure : array-like of shape (n_samples,) or float, optional
            What each row was exposed to, above 0, such as years: its mean is the exposure times what the columns tell.
            For the losses of counts and amounts.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, self._passes, exposure)

    def _fit(self, X: Any, y: Any, sample_weight: Any, learn: Callable[..., None], exposure: Any = None) -> Any:
        """Check rows, and let them be learned: ``learn`` takes X, y and weights."""
        self._check_parameters()
        again = bool(self.warm_start) and self._started()
        X, y = validation.labelled(self, X, y, not again, y_numeric=True)
        weight = validation.weights(sample_weight, len(y), may_vanish=False)
        y, weight = exposures.learnable(y, weight, exposure, str(self.loss), may_be_zero=again)
        if not again:
            self._begin(X.shape[1])
        self._check_memory(X)
        with jobs.of(self):
            learn(X, y, weight)
        return self

    @WholeOnly
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> Any:
        """Update the model with one pass over the given rows, in their order.

        The calls around the learning of one row take longer than that: pass some hundred rows at a time where rows come
        fast.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        exposure : array-like of shape (n_samples,) or float, optional
            What each row was exposed to, above 0, such as years: its mean is the exposure times what the columns tell.
            For the losses of counts and amounts.

        Returns
        -------
        self
        """
        return self._update(X, y, sample_weight, exposure=exposure)

    def _update(self, X: Any, y: Any, sample_weight: Any, groups: Any = None, exposure: Any = None) -> Any:
        """Check rows of a stream, and learn them."""
        self._check_parameters()
        again = self._started()
        X, y = validation.labelled(self, X, y, not again, y_numeric=True, stream=True)
        weight = validation.weights(sample_weight, len(y), may_vanish=True)
        y, weight = exposures.learnable(y, weight, exposure, str(self.loss), may_be_zero=True)
        group = validation.group_digests(groups, len(y), may_be_one=True)
        if not again:
            self._begin(X.shape[1])
        with jobs.of(self):
            self._pass(X, y, validation.as_given(weight, group), first=True)
        self.n_iter_ = 1
        return self

    def _begin(self, n_features: int) -> None:
        self._begin_with(n_features, [])

    def _targets(self, y: np.ndarray, row: np.ndarray) -> np.ndarray:
        return y[row].astype(np.float64)

    def predict(self, X: Any, exposure: Any = None) -> np.ndarray:
        """Predict the target of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)
        exposure : array-like of shape (n_samples,) or float, optional
            What each row will be exposed to; by default 1, so that rates are predicted.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        responses = self._learned.model.responses(self._predictions(X))
        return exposures.exposed(responses, exposure, str(self.loss))

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the columns, (n_features,).

        They are in the units of the columns; see :meth:`feature_weights` for their fidelity to a pool.
        """
        return self._of_columns()[1:, 0].copy()

    @property
    def intercept_(self) -> np.ndarray:
        """Prediction of a row of zeros, (1,)."""
        return self._of_columns()[0].copy()
