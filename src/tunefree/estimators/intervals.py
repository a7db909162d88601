"""Intervals and sets of estimators that are pools, by conformal prediction (:mod:`tunefree.intervals`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tunefree.core.parameters import require
from tunefree.core.rows import n_rows
from tunefree.estimators import exposures, validation
from tunefree.estimators.base import OnlineEstimator
from tunefree.intervals.conformal import checked_parts

CONDITIONS = (None, "class")


class _Conformal(OnlineEstimator):
    """What intervals and sets share."""

    def _at(
        self, name: str, levels: Any, X: Any, of_rows: Callable[[Any, Any, np.ndarray, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """What a function makes of the model, rows, what is predicted of them, and levels (c,): (n, c, ...).

        For one level, which is a number, it is (n, ...).
        """
        checked = checked_parts(name, levels)
        of_levels = self._of_blocks(X, lambda model, block: of_rows(model, block, model.predict(block), checked))
        return of_levels[:, 0] if np.ndim(levels) == 0 else of_levels


class Intervals(_Conformal):
    """Intervals and quantiles of regressors."""

    def predict(self, X: Any, quantiles: Any = None, exposure: Any = None) -> np.ndarray:
        """Predict the target of each row, with the loss of a count or amount its mean; or quantiles of it.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)
        quantiles : float or array-like of shape (n_quantiles,), optional
            Levels between 0 and 1: the target is below the quantile of level 0.9 in nine of ten rows, over rows like
            those that were learned.
        exposure : array-like of shape (n_samples,) or float, optional
            What each row will be exposed to, with the losses of counts and amounts; by default rates are predicted, and
            quantiles are those of rows with an exposure of 1.

        Returns
        -------
        ndarray of shape (n_samples,), with several quantiles (n_samples, n_quantiles)

        Raises
        ------
        ModelError
            If there is too little evidence for a level. The message says how much would do.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from tunefree import TuneFreeRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> low, middle, high = TuneFreeRegressor().fit(X, y).predict(X[:1], quantiles=[0.1, 0.5, 0.9])[0]
        >>> bool(low < middle < high)
        True
        """
        if quantiles is None:
            predictions: np.ndarray = super().predict(X, exposure=exposure)
            return predictions
        exposed = self._exposures(X, exposure)
        return self._at(
            "quantiles", quantiles, X, lambda model, block, *of_rows: model.quantiles(block, *of_rows, exposed(block))
        )

    def _exposures(self, X: Any, exposure: Any) -> Callable[[Any], np.ndarray | None]:
        """A function that gives the exposures of each block of the rows, one block after the other."""
        if exposure is None:
            return lambda block: None
        checked = exposures.checked(exposure, validation.features(self, X).shape[0], str(self.loss))
        assert checked is not None
        stops = 0

        def exposed(block: Any) -> np.ndarray:
            nonlocal stops
            stops += n_rows(block)
            return checked[stops - n_rows(block) : stops]

        return exposed

    def predict_interval(self, X: Any, coverage: Any = 0.9, exposure: Any = None) -> np.ndarray:
        """An interval for the target of each row, which holds it as often as asked for.

        The ends are conformal quantiles: as many targets are below an interval as above it. How wide it is depends on
        the row. After ``fit`` the coverage is that of rows like those that were learned. While ``partial_fit`` goes on,
        intervals are for the next rows, and become wider or narrower where fewer or more targets were covered.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)
        coverage : float or array-like of shape (n_coverages,), default=0.9
            Part of the rows whose targets are to be in their intervals, between 0 and 1.
        exposure : array-like of shape (n_samples,) or float, optional
            What each row will be exposed to, with the losses of counts and amounts; 1 by default.

        Returns
        -------
        ndarray of shape (n_samples, 2), with several coverages (n_samples, n_coverages, 2)
            Lower and upper ends. In a stream whose targets were missed too often they may be infinite.

        Raises
        ------
        ModelError
            If there is too little evidence for a coverage. The message says how much would do.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from tunefree import TuneFreeRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> low, high = TuneFreeRegressor().fit(X[:300], y[:300]).predict_interval(X[300:], coverage=0.8).T
        >>> bool(0.7 < ((low <= y[300:]) & (y[300:] <= high)).mean() < 0.9)
        True
        """
        exposed = self._exposures(X, exposure)
        return self._at(
            "coverage", coverage, X, lambda model, block, *of_rows: model.intervals(block, *of_rows, exposed(block))
        )


class PredictionSets(_Conformal):
    """Sets of classifiers."""

    classes_: np.ndarray

    def predict_set(
        self, X: Any, coverage: Any = 0.9, *, conditional: str | None = None, as_labels: bool = False
    ) -> Any:
        """A set of classes for each row, which has the right one as often as asked for.

        Sets are adaptive: the most probable classes, and more of them where the row is hard. Where fewer rows are to be
        covered than the most probable class alone covers, some sets are empty.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)
        coverage : float or array-like of shape (n_coverages,), default=0.9
            Part of the rows whose class is to be in their set, between 0 and 1.
        conditional : {"class"}, optional
            With ``"class"`` the rows of each class are covered as often as asked for, which takes evidence of each.
        as_labels : bool, default=False
            Whether to return the labels of the sets.

        Returns
        -------
        ndarray of bool of shape (n_samples, n_classes), with several coverages (n_samples, n_coverages, n_classes)
            In the order of ``classes_``. With ``as_labels`` a list of arrays of labels, or of a list of these a row.

        Raises
        ------
        ModelError
            If there is too little evidence for a coverage. The message says how much would do.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from tunefree import TuneFreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = TuneFreeClassifier().fit(X, y)
        >>> model.predict_set(X[:1], coverage=0.95, as_labels=True)
        [array([0])]
        >>> model.predict_set(X, coverage=[0.8, 0.9]).shape
        (150, 2, 3)
        """
        if conditional not in CONDITIONS:
            raise ValueError(f"conditional must be None or 'class', not {conditional!r}")
        require("as_labels", bool, as_labels)
        by_class = conditional == "class"
        sets = self._at("coverage", coverage, X, lambda model, *of_rows: model.sets(*of_rows, by_class))
        sets = sets[..., [self._learned.model.classes.index(label) for label in self.classes_.tolist()]]
        if not as_labels:
            return sets
        if np.ndim(coverage) == 0:
            return [self.classes_[in_set] for in_set in sets]
        return [[self.classes_[in_set] for in_set in of_row] for of_row in sets]
