"""What classifiers and regressors have in common, whatever has learned: from margins to labels and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import compute_class_weight

from tunefree.estimators import class_sets, validation
from tunefree.estimators.parameters import documented, estimator, shared
from tunefree.losses.objectives import chosen


@estimator
class Classifying(ClassifierMixin):
    """Classifiers: they have ``predict_proba``, and ``_predictions(X)``, which are margins (n, K).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels known to the classifier, sorted.
    """

    class_weight: Any = shared("class_weight")

    def _sorted(self, columns: np.ndarray) -> np.ndarray:
        """Columns of classes, in the order of ``classes_``; one column is for the second of two classes."""
        return columns

    def _weighted(self, y: np.ndarray, weight: np.ndarray, labels: np.ndarray, classes: Any) -> np.ndarray:
        """Sample weights times those of the classes; see :meth:`_class_weight`."""
        with np.errstate(over="ignore"):
            weighted = np.minimum(weight * self._class_weight(y, weight, labels, classes), np.finfo(np.float64).max)
        if not weighted.any():
            raise ValueError("sample_weight and class_weight together leave all rows a weight of zero")
        return weighted

    def _class_weight(self, y: np.ndarray, weight: np.ndarray, labels: np.ndarray, classes: Any) -> np.ndarray:
        """The weight of each row's class; ``labels`` are those in y, sorted, and ``classes`` those that are known."""
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            kept = weight > 0
            present = np.unique(y[kept])
            balanced = compute_class_weight("balanced", classes=present, y=y[kept], sample_weight=weight[kept])
            by_label = dict(zip(present.tolist(), balanced.tolist(), strict=True))
        else:
            by_label = validation.class_weights(self.class_weight, classes)
        each = np.array([by_label.get(label, 1.0) for label in labels.tolist()])
        return each[np.searchsorted(labels, y)]

    @documented
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The part of the rows whose class is predicted right."""
        return float(super().score(X, class_sets.plain(y), sample_weight))

    @documented
    def decision_function(self, X: Any) -> np.ndarray:
        """Margins of the rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of the second of two classes, else of each class.
        """
        margins = self._sorted(self._predictions(X))
        return margins[:, 0] if margins.shape[1] == 1 else margins

    @documented
    def predict(self, X: Any) -> np.ndarray:
        """Predict the class with the largest margin for each row.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        margins = self._sorted(self._predictions(X))
        return self.classes_[np.minimum(chosen(margins), len(self.classes_) - 1)]

    @documented
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class Regressing(RegressorMixin):
    """Regressors: they have ``_predictions(X)`` (n, 1)."""

    @documented
    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of each row.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._predictions(X)[:, 0])
