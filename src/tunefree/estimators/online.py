"""Any learner of the papers, by its name, as scikit-learn estimators."""

from __future__ import annotations

from typing import Any

from tunefree.estimators import validation
from tunefree.estimators.base import OnlineClassifierBase, OnlineEstimator, OnlineRegressorBase
from tunefree.model.pool import check_settings


class Named(OnlineEstimator):
    """What the two estimators share: a learner that is named."""

    learner: str
    settings: dict[str, Any] | None
    view: str

    def _learner(self) -> tuple[str, dict[str, Any]]:
        settings = dict(self.settings or {})
        check_settings(self._task, self.learner, self.loss, bool(self.average), settings, self.view)
        if self.learner == "pool":
            raise ValueError("the pool chooses for itself: use TuneFreeClassifier or TuneFreeRegressor")
        numbers = {name: value for name, value in settings.items() if name != "rates"}
        return self.learner, settings | validation.positive(**numbers)


class OnlineClassifier(Named, OnlineClassifierBase):
    """A linear classifier learned by one of the online algorithms that the papers propose or compare with.

    For comparisons and for teaching; :class:`tunefree.TuneFreeClassifier` needs no choice and is seldom worse.

    Parameters
    ----------
    learner : str, default="scinol2"
        ``"scinol1"``, ``"scinol2"``, ``"pistol"``, ``"coordinate-pistol"``, ``"nag"``, ``"sfmd"``, ``"cocob"``,
        ``"cocob-original"``, ``"kotlowski"``, ``"newton"``, ``"ogd"``, ``"coordinate-ogd"``, ``"averaged-sgd"``,
        ``"adagrad"``, ``"adam"`` or ``"perceptron"``.
    settings : dict, optional
        Parameters of the learner, such as ``{"eta": 0.1}``; those not named have their usual values. For
        ``"coordinate-ogd"``, ``"rates"`` may hold one rate a feature, the constant's first.
    view : str, default="raw"
        How the learner sees numbers: as they are (``"raw"``), minus the running mean of their column (``"centred"``),
        or robustly scaled (``"steady"``); ``"fourier"`` and ``"nystroem"`` show features of a Gaussian kernel, with
        ``"nystroem+3"`` for a width parameter gamma 2^3 times as large as the one taken from the data.
    loss : str, default="logistic"
        ``"logistic"`` (multinomial with more than two classes), ``"hinge"``, ``"smoothed-hinge"``,
        ``"squared-hinge"``, ``"exponential"`` or ``"square"`` (each class against the others).
    epochs : int, default=10
        Passes over the rows in ``fit``.
    average : bool, default=False
        Predict with the average of the weights over the rounds instead of the last ones.
    fit_intercept : bool, default=True
        Whether there is a constant.
    shuffle : bool, default=True
        Whether ``fit`` takes the rows in random order, new in each epoch.
    random_state : int, RandomState instance or None, default=0
        For the order. The default gives the same model each time; None draws from NumPy's global generator.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class, by which its rows' sample weights are multiplied (1 for classes not named).
    warm_start : bool, default=False
        Whether ``fit`` goes on from where the model stands.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels known, sorted.
    coef_, intercept_ : ndarray
        Weights, where the view is raw.
    certificate_ : tunefree.theory.Certificate
        How good any linear model can be on the rows of the first pass.
    progressive_loss_ : float
        Mean loss of the rows, each predicted before it was learned.
    t_, n_iter_, n_features_in_ : int
        Rounds of learning so far; passes of the latest ``fit``; features.

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
        epochs: int = 10,
        average: bool = False,
        fit_intercept: bool = True,
        shuffle: bool = True,
        random_state: Any = 0,
        class_weight: Any = None,
        warm_start: bool = False,
    ) -> None:
        self.learner = learner
        self.settings = settings
        self.view = view
        self.loss = loss
        self.epochs = epochs
        self.average = average
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start


class OnlineRegressor(Named, OnlineRegressorBase):
    """A linear regressor learned by one of the online algorithms that the papers propose or compare with.

    For comparisons and for teaching; :class:`tunefree.TuneFreeRegressor` needs no choice and is seldom worse.

    Parameters
    ----------
    learner : str, default="scinol2"
        As in :class:`OnlineClassifier`, without the perceptron.
    settings : dict, optional
        Parameters of the learner, such as ``{"eta": 0.1}``; step sizes are in units of the target's spread.
    view : str, default="raw"
        How the learner sees numbers: as they are (``"raw"``), minus the running mean of their column (``"centred"``),
        or robustly scaled (``"steady"``); ``"fourier"`` and ``"nystroem"`` show features of a Gaussian kernel, with
        ``"nystroem+3"`` for a width parameter gamma 2^3 times as large as the one taken from the data.
    loss : str, default="square"
        ``"square"``, ``"absolute"``, ``"power:1.5"``, ``"epsilon-insensitive:0.1"``, ``"huber:1"`` or
        ``"quantile:0.5"``, with their parameters behind the colon.
    epochs : int, default=10
        Passes over the rows in ``fit``.
    average : bool, default=False
        Predict with the average of the weights over the rounds instead of the last ones.
    shuffle : bool, default=True
        Whether ``fit`` takes the rows in random order, new in each epoch.
    random_state : int, RandomState instance or None, default=0
        For the order. The default gives the same model each time; None draws from NumPy's global generator.
    warm_start : bool, default=False
        Whether ``fit`` goes on from where the model stands.

    Attributes
    ----------
    coef_, intercept_ : ndarray
        Weights, where the view is raw.
    certificate_ : tunefree.theory.Certificate
        How good any linear model can be on the rows of the first pass.
    progressive_loss_ : float
        Mean loss of the rows, each predicted before it was learned.
    t_, n_iter_, n_features_in_ : int
        Rounds of learning so far; passes of the latest ``fit``; features.

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
        epochs: int = 10,
        average: bool = False,
        shuffle: bool = True,
        random_state: Any = 0,
        warm_start: bool = False,
    ) -> None:
        self.learner = learner
        self.settings = settings
        self.view = view
        self.loss = loss
        self.epochs = epochs
        self.average = average
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start
