"""Estimators with a single linear learner."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tunefree.core.errors import ModelError
from tunefree.core.parameters import Parameter, field_of, parameter, require
from tunefree.estimators import tables
from tunefree.estimators.base import OnlineEstimator
from tunefree.estimators.classifier import OnlineClassifierBase
from tunefree.estimators.parameters import estimator, loss_of_task, shared
from tunefree.estimators.regressor import OnlineRegressorBase
from tunefree.explanation.decomposition import linear_weights
from tunefree.learners import ALL, POOL
from tunefree.pool.options import check_settings


@estimator
class SingleLearner(OnlineEstimator):
    """Base class of estimators with a single learner, which may pass over the rows several times."""

    passes: int = parameter(
        1,
        "Number of passes over the rows in ``fit``. The papers' theorems hold for one pass. More passes help on small "
        "data sets.",
        low=1,
    )
    shuffle: bool = parameter(
        True,
        "Whether ``fit`` shuffles the rows before each pass. The model then depends only on the weighted set of rows: "
        "a row of weight 3 is learned three times, like three copies of it (in fewer rounds of larger weight if there "
        "would be more than 65,536 rounds in total and four for each row). With False, the rows are learned in their "
        "order, in one round each, as by ``partial_fit``, and a weight multiplies the loss.",
    )
    average: bool = parameter(
        False, "Whether to predict with the average of the weights over the rounds instead of the last weights."
    )

    def _weights(self) -> np.ndarray:
        """Return the weights (d, K) of the features, the constant first."""
        check_is_fitted(self)
        try:
            weights = linear_weights(self._learned.model, 1 + len(tables.feature_names(self)))
        except ModelError as error:
            raise AttributeError(str(error)) from None
        return np.array(self._sorted(weights) if hasattr(self, "_sorted") else weights)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, in the units of the data; only with ``view="raw"``.

        The shape is (n_features,) in regression, (1, n_features) with two classes, else (n_classes, n_features). The
        features are named by ``get_feature_names_out()``; the features of a table include codes and words.
        """
        weights = self._weights()[1:]
        return weights[:, 0] if self._task == "regression" else weights.T

    @property
    def intercept_(self) -> np.ndarray:
        """Prediction, or margins, for a row of zeros, of shape (1,), or (n_classes,) with more than two classes."""
        return self._weights()[0]


@estimator
class LinearClassifier(SingleLearner, OnlineClassifierBase):
    """Base class of classifiers with a linear learner."""

    loss: str = loss_of_task("classification", "logistic")
    fit_intercept: bool = parameter(True, "Whether to fit an intercept.")


@estimator
class LinearRegressor(SingleLearner, OnlineRegressorBase):
    """Base class of regressors with a linear learner. Targets are learned relative to their running mean."""

    loss: str = loss_of_task("regression", "square")


@estimator
class NamedLearner(SingleLearner):
    """Base class of estimators whose learner is chosen by name, with settings."""

    learner: str = field_of(Parameter(f"A linear learner by its name: {', '.join(ALL)}."), "scinol2", kw_only=False)
    settings: dict[str, Any] | None = parameter(
        None,
        "Parameters of the learner by name, such as ``{'eta': 0.1}``; others have their defaults. In regression, step "
        "sizes are in units of the target's mean absolute deviation.",
    )
    view: str = shared("view", "raw")
    n_jobs: int | None = shared("n_jobs", -1)

    def _learner(self) -> tuple[str, dict[str, Any]]:
        settings = dict(self.settings or {})
        check_settings(self._task, self.learner, self.loss, bool(self.average), settings, self.view)
        if self.learner == POOL:
            kind = "Classifier" if self._task == "classification" else "Regressor"
            raise ValueError(f"{self.learner} is no single learner: use TuneFree{kind}()")
        for name, value in settings.items():
            require(f"settings[{name!r}]", float, value, above=0)
        return self.learner, {name: float(value) for name, value in settings.items()}


@estimator
class OnlineClassifier(NamedLearner, LinearClassifier):
    """A linear classifier trained by an online algorithm that the papers propose, or compare with theirs.

    It is meant for comparisons and teaching; :class:`tunefree.TuneFreeClassifier` combines several of the algorithms.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree import OnlineClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OnlineClassifier("adagrad", settings={"eta": 0.1}, view="steady").fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.9
    True
    """


@estimator
class OnlineRegressor(NamedLearner, LinearRegressor):
    """A linear regressor trained by an online algorithm that the papers propose, or compare with theirs.

    It is meant for comparisons and teaching; :class:`tunefree.TuneFreeRegressor` combines several of the algorithms.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import OnlineRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OnlineRegressor("nag", settings={"eta": 0.5}).fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.4
    True
    """
