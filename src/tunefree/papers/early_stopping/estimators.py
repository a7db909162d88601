"""Iterative regularization (Lin, Rosasco, Zhou 2016) as scikit-learn estimators: one run, the whole path."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from tunefree.estimators import class_sets, validation
from tunefree.estimators.parameters import documented, estimator, loss_of_task
from tunefree.estimators.predictions import Classifying, Regressing
from tunefree.losses import loss_of
from tunefree.model.calibration import of_classes
from tunefree.papers.early_stopping import path_targets
from tunefree.papers.early_stopping.iterative import IterativeRegularization
from tunefree.papers.early_stopping.path_targets import Targets, fit_temperature, probabilities
from tunefree.papers.early_stopping.preparation import LARGEST
from tunefree.papers.early_stopping.problem import Rows


@estimator
class IterativeRegularizationClassifier(Classifying, IterativeRegularization):
    """A classifier regularised by early stopping of the subgradient method; one run gives the regularization path.

    Nothing needs to be tuned: the steps follow from the data and the loss, and held-out rows select the iteration [1]_.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree import IterativeRegularizationClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = IterativeRegularizationClassifier(kernel="rbf").fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.95
    True
    >>> bool((model.at(5).predict(X[400:]) == y[400:]).mean() > 0.8)
    True
    """

    loss: str = loss_of_task("classification", "logistic")

    @documented
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Compute the regularization path and select an iteration.

        A row of weight 2 is equivalent to two copies of it.
        """
        self._check()
        loss = loss_of("classification", self.loss)
        X, y = self._labelled(X, y)
        validation.class_labels(y)
        weight = validation.weights(sample_weight, len(y), may_vanish=False)
        classes, codes = np.unique(y, return_inverse=True)
        class_sets.check_several(classes[np.unique(codes[weight > 0])])
        weight = self._weighted(y, weight, classes, classes)
        self.classes_ = classes
        self._learn(X, path_targets.of_classes(loss, codes, len(classes)), weight)
        return self

    def _calibration_rows(self, targets: Targets, features: Any, rows: Rows) -> tuple[Any, Rows] | None:
        # Losses whose margins stand for no probabilities: these are learned from margins of rows held out.
        return None if targets.loss.has_inverse_link else (features, rows)

    def _stop_at(self, t: int) -> None:
        super()._stop_at(t)
        self.temperature_ = None
        fitted = self.fitted_path_
        if fitted.calibration is not None:
            features, rows = fitted.calibration
            codes = (rows.y > 0).astype(np.int64) if fitted.targets.n_outputs == 1 else rows.y.astype(np.int64)
            margins = of_classes(fitted.margins(self.coefficients_, features, self.device))
            self.temperature_ = fit_temperature(margins, codes, rows.weight)

    @documented
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities.

        Those that the loss's link function gives; with several classes one against all, normalised. The hinge has no
        link function with an inverse: its margins, times a number learned from the rows held out, are taken for
        log-odds (temperature scaling). Where none are held out, it is learned from the training rows, and too bold.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        margins = self._predictions(X)
        return probabilities(self.fitted_path_.targets.loss, margins, self.temperature_)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, (1, n_features) with two classes, else (n_classes, n_features)."""
        return self._linear()[0].T

    @property
    def intercept_(self) -> np.ndarray:
        """Intercept, (1,) with two classes, else (n_classes,)."""
        return self._linear()[1]


@estimator
class IterativeRegularizationRegressor(Regressing, IterativeRegularization):
    """A regressor regularised by early stopping of the subgradient method; one run gives the regularization path.

    The target is centred by its mean and divided by the power of two below its standard deviation. Losses, errors and
    norms of the path are in the units of the target.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import IterativeRegularizationRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = IterativeRegularizationRegressor().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.45
    True
    """

    loss: str = loss_of_task("regression", "square")

    @documented
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Compute the regularization path and select an iteration.

        A row of weight 2 is equivalent to two copies of it.
        """
        self._check()
        loss = loss_of("regression", self.loss)
        X, y = self._labelled(X, y, y_numeric=True)
        weight = validation.weights(sample_weight, len(y), may_vanish=False)
        self._learn(X, path_targets.of_numbers(loss, y.astype(np.float64), weight), weight)
        return self

    def predictions_of(self, X: Any) -> np.ndarray:
        return self._numbers(super().predictions_of(X))

    def _numbers(self, margins: np.ndarray) -> np.ndarray:
        """Margins in the units of the target."""
        with np.errstate(over="ignore"):
            targets = self.fitted_path_.targets
            return np.clip((targets.centre + margins) * targets.unit, -LARGEST, LARGEST)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, (n_features,)."""
        with np.errstate(over="ignore"):
            weights = self._linear()[0][:, 0]
            return np.clip(weights * self.fitted_path_.targets.unit, -LARGEST, LARGEST)

    @property
    def intercept_(self) -> np.ndarray:
        """Prediction of a row of zeros, (1,)."""
        return self._numbers(self._linear()[1])
