"""Base classes of classifiers: labels and probabilities from margins, and the set of known classes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import compute_class_weight

from tunefree.core.errors import DataError, warn
from tunefree.estimators import validation
from tunefree.estimators.base import OnlineEstimator
from tunefree.estimators.model_file import labels_of
from tunefree.estimators.parameters import documented, estimator, shared
from tunefree.losses.objectives import chosen
from tunefree.model_files.trained import Trained
from tunefree.pool.targets import FEWEST_ROWS, MANY_ROWS, Labels


@estimator
class Classifying(ClassifierMixin):
    """Mixin of classifiers with ``predict_proba`` and ``_predictions(X)``, which returns margins (n, K).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels known to the classifier, sorted.
    """

    class_weight: Any = shared("class_weight")

    def _sorted(self, columns: np.ndarray) -> np.ndarray:
        """Return the columns of classes in the order of ``classes_``; a single column is of the second of two."""
        return columns

    def _weighted(
        self, y: np.ndarray, weight: np.ndarray, labels: np.ndarray, classes: Any, may_vanish: bool = False
    ) -> np.ndarray:
        """Return sample weights times class weights; ``labels``: the sorted labels in y; ``classes``: all known."""
        if self.class_weight is None:
            return weight
        by_label = validation.class_weights(self.class_weight, classes)
        if isinstance(self.class_weight, str):
            positive = weight > 0
            present = np.unique(y[positive])
            balanced = compute_class_weight("balanced", classes=present, y=y[positive], sample_weight=weight[positive])
            by_label = dict(zip(present.tolist(), balanced.tolist(), strict=True))
        factors = np.array([by_label.get(label, 1.0) for label in labels.tolist()])[np.searchsorted(labels, y)]
        with np.errstate(over="ignore"):
            weighted = np.minimum(weight * factors, np.finfo(np.float64).max)
        if not (may_vanish or weighted.any()):
            raise ValueError("sample_weight and class_weight together leave all rows a weight of zero")
        return weighted

    @documented
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the proportion of rows whose class is predicted correctly."""
        predicted = self.predict(X)
        return float(accuracy_score(validation.plain(y), predicted, sample_weight=sample_weight))

    @documented
    def decision_function(self, X: Any) -> np.ndarray:
        """Predict the margins of the classes.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The margin of the second of two classes, else of each class.
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
        """Predict the logarithms of the class probabilities.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


@estimator
class OnlineClassifierBase(Classifying, OnlineEstimator):
    """Base class of online classifiers. Targets are labels; margins are in the order of the sorted classes."""

    _task = "classification"

    @documented
    def fit(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None, callbacks: Any = None) -> Self:
        """Fit the model; with ``warm_start``, continue from the current model.

        Unless ``classes`` is given, a warning reports classes of fewer than three rows among more than a thousand.
        """
        return self._learn(X, y, sample_weight, callbacks, classes=classes)

    @documented
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, callbacks: Any = None
    ) -> Self:
        """Update the model with one pass over the given rows, in their order.

        If the first call gives all ``classes``, the model is the same as of ``fit`` with one pass, ``shuffle=False``.
        Each call has an overhead, larger than the time to learn a row: pass some hundred rows at a time for speed.
        """
        return self._learn(X, y, sample_weight, callbacks, is_stream=True, classes=classes)

    def _prepared_targets(
        self, y: np.ndarray, weight: np.ndarray, is_continued: bool, is_stream: bool, **roles: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        if is_stream and isinstance(self.class_weight, str):
            raise ValueError("class_weight='balanced' needs all rows, which partial_fit does not see; pass a dict")
        validation.class_labels(y)
        closed = closed_set(roles["classes"], self, is_continued)
        rows = np.flatnonzero((weight > 0) | (not is_stream))
        check_closed(y[rows], closed, rows)
        labels, codes = np.unique(y, return_inverse=True)
        known = closed if closed is not None else labels[:0] if is_stream else labels
        known = union(self.classes_, known) if is_continued else known
        if not is_stream:
            check_several(known)
        weight = self._weighted(y, weight, labels, closed if is_stream else known, is_stream)
        if not is_stream and closed is None:
            warn_of_rare(y, weight)
        if not is_continued:
            self._begin(known.tolist())
        self.classes_, self._closed = known, closed
        for label in [label for label in known.tolist() if label not in self._learned.model.classes]:
            self._learned.model.add_class(label)
        if is_stream:
            self.classes_ = union(self.classes_, labels[np.unique(codes[weight > 0])])
        return np.searchsorted(self.classes_, y), weight

    def _learn_validated(self, *arguments: Any) -> None:
        try:
            super()._learn_validated(*arguments)
        finally:  # if a signal interrupts the pass, some classes have not been learned
            known_labels = set(self._learned.model.classes)
            self.classes_ = self.classes_[[label in known_labels for label in self.classes_.tolist()]]

    def _restore(self, trained: Trained) -> None:
        super()._restore(trained)
        labels = labels_of(trained.model.classes, trained.estimator)
        is_mixed = len({type(label) for label in labels.tolist()}) > 1
        self.classes_ = labels if is_mixed else np.sort(labels)
        self._closed = self.classes_ if trained.plan.classes else None

    def _targets(self, y: np.ndarray, row: np.ndarray) -> Labels:
        present, codes = np.unique(y[row], return_inverse=True)
        return Labels(self.classes_[present].tolist(), codes)

    def __sklearn_is_fitted__(self) -> bool:
        return super().__sklearn_is_fitted__() and len(self.classes_) > 0

    def _sorted(self, columns: np.ndarray) -> np.ndarray:
        """Reorder the last axis from the model's classes to ``classes_``; a single column changes sign."""
        order = [self._learned.model.classes.index(label) for label in self.classes_.tolist()]
        if columns.shape[-1] > 1:
            return columns[..., order]
        return -columns if order == [1, 0] else columns

    @documented
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities.

        With losses other than the logistic, probabilities are calibrated on progressive margins, which are predicted
        before a row is first learned. The most probable class may then differ from the predicted class, which has the
        largest margin.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            The columns are in the order of ``classes_``.
        """
        margins = self._predictions(X)
        if len(self.classes_) == 1:
            return np.ones((len(margins), 1))
        return self._sorted(self._learned.model.probabilities(margins))


def union(known: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the sorted union of the known classes and some labels."""
    if not (len(known) and len(labels)):
        return labels if len(labels) else known
    if (known.dtype.kind in "OSU") != (labels.dtype.kind in "OSU"):
        label = labels[:1].tolist()[0]
        raise ValueError(f"the classes known are {known.tolist()}; the label {label!r} is of another type; convert y")
    if known.dtype == labels.dtype and set(known.tolist()).issuperset(labels.tolist()):
        return known
    return np.unique(np.concatenate([known, labels]))


def closed_set(classes: Any, estimator: Any, is_continued: bool) -> np.ndarray | None:
    """Return the sorted labels that are allowed from now on; None if any new label becomes a class."""
    before = getattr(estimator, "_closed", None) if is_continued else None
    if classes is None:
        return before
    if np.ndim(classes) != 1:
        raise ValueError(f"classes must be a list of labels, not {classes!r}")
    labels = np.unique(validation.plain(np.asarray(classes)))
    if not len(labels):
        raise ValueError("classes is empty; give all labels, or leave it out")
    return union(estimator.classes_, labels) if is_continued else labels


def check_closed(y: np.ndarray, known: np.ndarray | None, rows: np.ndarray | None = None) -> None:
    """Raise a ValueError for the first label outside a closed set; ``rows`` (n,): row numbers of the labels."""
    if known is None:
        return
    allowed = set(known.tolist())
    first = next((k for k, label in enumerate(y.tolist()) if label not in allowed), None)
    if first is not None:
        row = first if rows is None else int(rows[first])
        problem = f"{y.tolist()[first]!r} is not among the classes {known.tolist()}"
        raise DataError(problem, "y", row + 1, remedy="correct it, leave the row out, or name it in classes")


def check_several(classes: np.ndarray) -> None:
    """Raise scikit-learn's ValueError if there are fewer than two classes."""
    if len(classes) < 2:
        problem = f"The number of classes has to be greater than one; got 1 class ({classes.tolist()[0]!r})"
        raise ValueError(f"{problem}; give rows of another class, too, or name all by partial_fit(X, y, classes=[...])")


def warn_of_rare(y: np.ndarray, weight: np.ndarray) -> None:
    """Warn of classes of fewer than three rows with positive weight, if there are more than a thousand such rows."""
    rows = np.flatnonzero(weight > 0)
    labels, codes, counts = np.unique(y[rows], return_inverse=True, return_counts=True)
    for k in np.flatnonzero(counts < FEWEST_ROWS).tolist() if len(rows) > MANY_ROWS else []:
        examples = " and ".join(f"row {row + 1}" for row in rows[codes == k].tolist())
        warn(
            f"y: class {labels.tolist()[k]!r} has {counts[k]} of {len(rows):,} rows: {examples}; "
            "if it is a mistake, correct it, or give all classes by classes=[...]"
        )
