"""The papers' algorithms as scikit-learn estimators, whose ``fit`` is one pass of :func:`tunefree.papers.play`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pyarrow as pa
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from tunefree.papers.links import has_inverse_link, inverse_link
from tunefree.papers.playing import play
from tunefree.papers.scinol import ScInOL2
from tunefree.theory.bounds import Bound


class PaperEstimator(BaseEstimator):
    """Base class of classifiers and regressors."""

    def _play(self, X: Any, y: Any) -> Self:
        if self.output not in ("last", "average"):
            raise ValueError(f"output must be 'last' or 'average', not {self.output!r}")
        self.result_ = play(ScInOL2() if self.algorithm is None else self.algorithm, X, y, self.loss)
        return self

    def _margins(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "result_")
        rows = validate_data(self, X, accept_sparse="csr", reset=False)
        return self.result_.predict(rows, average=self.output == "average")

    @property
    def progressive_loss_(self) -> float:
        """Progressive validation loss: the mean loss of the rows, each predicted before it was learned."""
        check_is_fitted(self, "result_")
        return float(self.result_.losses.mean())

    def regret(self, u: Any = "best", radius: float | None = None) -> float:
        """Return the regret of the pass, see :meth:`tunefree.papers.playing.Result.regret`."""
        check_is_fitted(self, "result_")
        return self.result_.regret(u, radius)

    def bound(self, u: Any = "best", radius: float | None = None) -> Bound:
        """Return the theorem's bound on the regret, see :meth:`tunefree.papers.playing.Result.bound`."""
        check_is_fitted(self, "result_")
        return self.result_.bound(u, radius)

    def history(self) -> pa.Table:
        """Return a table with ``row``, ``loss`` and ``mean_loss``, the mean over the rows so far, for each row."""
        check_is_fitted(self, "result_")
        losses, rows = self.result_.losses, np.arange(1, self.result_.rounds + 1)
        return pa.table({"row": rows, "loss": losses, "mean_loss": np.cumsum(losses) / rows})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class PaperClassifier(ClassifierMixin, PaperEstimator):
    """A classifier that learns by an algorithm of the papers.

    The rows are learned once, in their order. Features are not scaled, and there is no intercept.

    Parameters
    ----------
    algorithm : Algorithm, optional
        An algorithm of :mod:`tunefree.papers`, or a custom one; by default ``ScInOL2()``.
    loss : str, default "logistic"
        See :func:`tunefree.papers.play`.
    output : {"last", "average"}, default "last"
        Whether the last function predicts, or the average.

    Attributes
    ----------
    result_ : Result
        Result of the pass.
    classes_ : array of shape (n_classes,)
        Class labels, sorted.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree.papers import PaperClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PaperClassifier().fit(X, y)
    >>> model.score(X, y) > 0.85, round(model.progressive_loss_, 3)
    (True, 0.391)
    """

    def __init__(self, algorithm: Any = None, loss: Any = "logistic", output: str = "last") -> None:
        self.algorithm, self.loss, self.output = algorithm, loss, output

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the rows."""
        X, y = validate_data(self, X, y, accept_sparse="csr")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("Classifier can't train when only one class is present.")
        if len(self.classes_) > 2 and self.loss != "logistic":
            raise ValueError(f"the loss {self.loss!r} is of two classes, and there are {len(self.classes_)}")
        return self._play(X, codes if len(self.classes_) > 2 else 2 * codes - 1)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the margins of the classes; with two classes, of the second."""
        return self._margins(X)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class with the largest margin for each row."""
        margins = self._margins(X)
        return self.classes_[(margins > 0).astype(int) if margins.ndim == 1 else margins.argmax(axis=1)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities by the inverse link function of the loss, if it has one."""
        margins, loss = self._margins(X), self.result_.loss
        if margins.ndim > 1:
            return softmax(margins, axis=1)
        if not has_inverse_link(loss.loss):
            raise AttributeError(f"the {loss.name} loss has no inverse link function, so there are no probabilities")
        second = inverse_link(loss.loss, margins)
        return np.stack([1.0 - second, second], axis=1)


class PaperRegressor(RegressorMixin, PaperEstimator):
    """A regressor that learns by an algorithm of the papers. Targets are neither centred nor scaled.

    Parameters
    ----------
    algorithm, output
        As for :class:`PaperClassifier`.
    loss : str, default "absolute"
        See :func:`tunefree.papers.play`. The theorems hold for losses with a Lipschitz constant.

    Examples
    --------
    >>> from tunefree.papers import PaperRegressor
    >>> model = PaperRegressor().fit([[1.0], [2.0], [1.0]] * 30, [2.0, 4.0, 2.0] * 30)
    >>> model.history().to_pylist()[0]
    {'row': 1, 'loss': 2.0, 'mean_loss': 2.0}
    """

    def __init__(self, algorithm: Any = None, loss: Any = "absolute", output: str = "last") -> None:
        self.algorithm, self.loss, self.output = algorithm, loss, output

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the rows."""
        X, y = validate_data(self, X, y, accept_sparse="csr", y_numeric=True)
        return self._play(X, y)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of each row."""
        return self._margins(X)
