"""Any linear learner, by its name, as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.core.parameters import Parameter, field_of, parameter, require
from tunefree.estimators.linear import LinearClassifier, LinearRegressor, SingleLearner
from tunefree.estimators.parameters import estimator, shared
from tunefree.learners import ALL
from tunefree.model.pool import POOLS, check_settings

LEARNER = Parameter(f"A linear learner by its name: {', '.join(ALL)}.")


@estimator
class Named(SingleLearner):
    """A learner that is named, with its settings."""

    learner: str = field_of(LEARNER, "scinol2", kw_only=False)
    settings: dict[str, Any] | None = parameter(
        None,
        "Parameters of the learner by their names, such as ``{'eta': 0.1}``; the others have their default values. In "
        "regression, step sizes are in units of the target's mean absolute deviation. For ``'coordinate-ogd'``, "
        "``'rates'`` may hold one rate for each feature, with that of the constant first.",
    )
    view: str = shared("view", "raw")
    n_jobs: int | None = shared("n_jobs", -1)

    def _learner(self) -> tuple[str, dict[str, Any]]:
        settings = dict(self.settings or {})
        check_settings(self._task, self.learner, self.loss, bool(self.average), settings, self.view)
        if self.learner in POOLS:
            kind = "Classifier" if self._task == "classification" else "Regressor"
            kernel = "" if self.learner == "pool" else "kernel='rbf'"
            raise ValueError(f"{self.learner} is no single learner: use TuneFree{kind}({kernel})")
        for name, value in settings.items():
            if np.ndim(value) == 0:
                require(f"settings[{name!r}]", float, value, above=0)
        return self.learner, {name: value if np.ndim(value) else float(value) for name, value in settings.items()}


@estimator
class OnlineClassifier(Named, LinearClassifier):
    """A linear classifier trained by an online algorithm that the papers propose or compare with.

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
class OnlineRegressor(Named, LinearRegressor):
    """A linear regressor trained by an online algorithm that the papers propose or compare with.

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
