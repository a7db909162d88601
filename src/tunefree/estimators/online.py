"""Any linear learner, by its name, as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tunefree.estimators import validation
from tunefree.estimators.base import OnlineClassifierBase, OnlineEstimator
from tunefree.estimators.regressor import OnlineRegressorBase
from tunefree.model.pool import POOLS, check_settings


class Named(OnlineEstimator):
    """What the two estimators share: a learner that is named."""

    learner: str
    settings: dict[str, Any] | None
    view: str

    def _learner(self) -> tuple[str, dict[str, Any]]:
        settings = dict(self.settings or {})
        check_settings(self._task, self.learner, self.loss, bool(self.average), settings, self.view)
        if self.learner in POOLS:
            kind = "Classifier" if self._task == "classification" else "Regressor"
            kernel = "" if self.learner == "pool" else "kernel='rbf'"
            raise ValueError(f"{self.learner} is no single learner: use TuneFree{kind}({kernel})")
        numbers = {name: value for name, value in settings.items() if np.ndim(value) == 0}
        return self.learner, settings | validation.positive(**numbers)


class OnlineClassifier(Named, OnlineClassifierBase):
    """A linear classifier trained by an online algorithm that the papers propose or compare with.

    It is meant for comparisons and teaching; :class:`tunefree.TuneFreeClassifier` combines several of the algorithms.

    Parameters
    ----------
    learner : str, default="scinol2"
        Any name in ``tunefree.learners.ALL``: ``"scinol1"``, ``"scinol2"``, ``"pistol"``, ``"coordinate-pistol"``,
        ``"nag"``, ``"sfmd"``, ``"cocob"``, ``"cocob-original"``, ``"kotlowski"``, ``"newton"``, ``"ogd"``,
        ``"coordinate-ogd"``, ``"averaged-sgd"``, ``"adagrad"``, ``"adam"``, ``"perceptron"``.
    settings : dict, optional
        Parameters of the learner, such as ``{"eta": 0.1}``; the others have their default values. For
        ``"coordinate-ogd"``, ``"rates"`` may hold one rate for each feature, with that of the constant first.
    view : str, default="raw"
        Transformation of the rows: none (``"raw"``), numbers minus the running mean of their column (``"centred"``),
        robustly standardised numbers (``"steady"``), or the same with one scale for all columns (``"level"``).
    loss : str, default="logistic"
        ``"logistic"`` (multinomial with more than two classes), ``"hinge"``, ``"smoothed-hinge"``,
        ``"squared-hinge"``, ``"exponential"`` or ``"square"`` (each class against the others).
    passes : int, default=10
        Number of passes over the rows in ``fit``.
    average : bool, default=False
        Whether to predict with the average of the weights over the rounds instead of the last weights.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the rows before each pass.
    n_jobs : int, default=-1
        Threads that work at once, by scikit-learn's rules: -1 for as many as there are processors, None for one. The
        model does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Controls the order of the rows. The default gives reproducible results; None uses NumPy's global generator.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights (1 for classes not given).
    warm_start : bool, default=False
        Whether ``fit`` continues from the present model instead of starting again.
    categorical : array-like of str, int or bool, optional
        Columns that are one-hot encoded even if they hold numbers, by their names, by numbers from 0, or as a mask. In
        a table, strings, categories and booleans are encoded in any case.
    text : array-like of str, int or bool, optional
        Columns whose words become features, beside strings that are mostly different from each other and long or of
        several words; ``categorical`` takes a column away from these.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels known to the classifier, sorted.
    coef_, intercept_ : ndarray
        Weights of the columns in their own units, and intercept, with the view ``"raw"``.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much predictions vary with each column, whatever its units.
    certificate_ : tunefree.theory.Certificate
        Lower bounds on the loss of every linear model on the rows of the first pass.
    progressive_loss_ : float
        Progressive validation loss: the mean loss of the rows, each predicted before it is learned.
    t_, n_iter_, n_features_in_ : int
        Number of rounds so far, of passes of the latest ``fit``, and of features.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree import OnlineClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = OnlineClassifier("adagrad", settings={"eta": 0.1}, view="steady").fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.9
    True
    """

    def __init__(
        self,
        learner: str = "scinol2",
        *,
        settings: dict[str, Any] | None = None,
        view: str = "raw",
        loss: str = "logistic",
        passes: int = 10,
        average: bool = False,
        fit_intercept: bool = True,
        shuffle: bool = True,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        class_weight: Any = None,
        warm_start: bool = False,
        categorical: Any = None,
        text: Any = None,
    ) -> None:
        self.learner = learner
        self.settings = settings
        self.view = view
        self.loss = loss
        self.passes = passes
        self.average = average
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.categorical = categorical
        self.text = text


class OnlineRegressor(Named, OnlineRegressorBase):
    """A linear regressor trained by an online algorithm that the papers propose or compare with.

    It is meant for comparisons and teaching; :class:`tunefree.TuneFreeRegressor` combines several of the algorithms.

    Parameters
    ----------
    learner : str, default="scinol2"
        As in :class:`OnlineClassifier`, without those that learn classes only.
    settings : dict, optional
        Parameters of the learner, such as ``{"eta": 0.1}``; step sizes are in units of the target's mean absolute
        deviation.
    view : str, default="raw"
        Transformation of the rows: none (``"raw"``), numbers minus the running mean of their column (``"centred"``),
        robustly standardised numbers (``"steady"``), or the same with one scale for all columns (``"level"``).
    loss : str, default="square"
        ``"square"``, ``"absolute"``, ``"absolute-power:1.5"``, ``"epsilon-insensitive:0.1"``, ``"huber:1"`` or
        ``"quantile:0.5"``, with the parameter after the colon.
    passes : int, default=10
        Number of passes over the rows in ``fit``.
    average : bool, default=False
        Whether to predict with the average of the weights over the rounds instead of the last weights.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the rows before each pass.
    n_jobs : int, default=-1
        Threads that work at once, by scikit-learn's rules: -1 for as many as there are processors, None for one. The
        model does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Controls the order of the rows. The default gives reproducible results; None uses NumPy's global generator.
    warm_start : bool, default=False
        Whether ``fit`` continues from the present model instead of starting again.
    categorical : array-like of str, int or bool, optional
        Columns that are one-hot encoded even if they hold numbers, by their names, by numbers from 0, or as a mask. In
        a table, strings, categories and booleans are encoded in any case.
    text : array-like of str, int or bool, optional
        Columns whose words become features, beside strings that are mostly different from each other and long or of
        several words; ``categorical`` takes a column away from these.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        Weights of the columns in their own units, and intercept, with the view ``"raw"``.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much predictions vary with each column, whatever its units.
    certificate_ : tunefree.theory.Certificate
        Lower bounds on the loss of every linear model on the rows of the first pass.
    progressive_loss_ : float
        Progressive validation loss: the mean loss of the rows, each predicted before it is learned.
    t_, n_iter_, n_features_in_ : int
        Number of rounds so far, of passes of the latest ``fit``, and of features.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import OnlineRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OnlineRegressor("nag", settings={"eta": 0.5}).fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.4
    True
    """

    def __init__(
        self,
        learner: str = "scinol2",
        *,
        settings: dict[str, Any] | None = None,
        view: str = "raw",
        loss: str = "square",
        passes: int = 10,
        average: bool = False,
        shuffle: bool = True,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        warm_start: bool = False,
        categorical: Any = None,
        text: Any = None,
    ) -> None:
        self.learner = learner
        self.settings = settings
        self.view = view
        self.loss = loss
        self.passes = passes
        self.average = average
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.categorical = categorical
        self.text = text
