"""Linear PiSTOL in scikit-learn's manner."""

from __future__ import annotations

from typing import Any

from tunefree.estimators import validation
from tunefree.estimators.base import OnlineClassifierBase
from tunefree.estimators.regressor import OnlineRegressorBase
from tunefree.theory.bounds import pistol_parameter

PRESETS = ("theory", "practice")


def check_preset(preset: Any) -> None:
    """Whether a set of parameters has this name."""
    if preset not in PRESETS:
        raise ValueError(f"preset must be 'theory' or 'practice', not {preset!r}")


def _settings(preset: Any, coordinate: Any, a: Any, b: Any) -> tuple[str, dict[str, float]]:
    """PiSTOL's name in ``learners.ALL`` and its settings, of which those that are given replace the preset's."""
    validation.switches(coordinate=coordinate)
    check_preset(preset)
    if preset == "theory":
        found = {"a": pistol_parameter(), "b": 1.0}
    else:
        found = {"a": 2.25, "b": 1.0} if coordinate else {"a": 0.125, "b": 0.0}
    given = validation.positive(**{name: value for name, value in (("a", a), ("b", b)) if value is not None})
    return "coordinate-pistol" if coordinate else "pistol", found | given


class PiSTOLClassifier(OnlineClassifierBase):
    """A linear classifier with nothing to tune: PiSTOL.

    It is an online learner that adapts to the unknown norm of the best linear model [1]_, so neither a learning rate
    nor a regularisation parameter needs tuning. With the preset ``"theory"`` its predictions of the rows in the first
    pass, each before it is learned, have a finite regret bound against every fixed linear model:
    :func:`tunefree.theory.paper_bound`, for losses with a Lipschitz constant. ``"practice"`` often learns faster, and
    has no such bound.

    Parameters
    ----------
    loss : str, default="logistic"
        ``"logistic"`` (multinomial with more than two classes), ``"hinge"``, ``"smoothed-hinge"``,
        ``"squared-hinge"``, ``"exponential"`` or ``"square"`` (each class against the others). Probabilities are
        those of the logistic loss, or with another one calibrated along the stream.
    preset : {"theory", "practice"}, default="theory"
        Values of ``a`` and ``b``. ``"theory"``: the ``a`` with the least bound of Theorem 1 of [1]_ after 10,000 rounds
        against a model of norm 1, :func:`tunefree.theory.pistol_parameter` (3.09), and b = 1. ``"practice"``: with one
        copy those of the paper's experiments, a = 0.125 and b = sqrt(2 a t) after t rounds, outside the theorem; with
        one copy for each feature, which the paper has no experiments with, a = 2.25 and b = 1. There the theorem's
        bound is finite in theory and beyond all numbers (exp(1652)).
    coordinate : bool, default=True
        Whether to run one copy of the algorithm for each feature, which makes it invariant to the scale of each
        feature. With False one copy learns all features; it is invariant to rotations and to the scale of the data as a
        whole.
    a : float, optional
        Parameter a of the paper, in units of the Lipschitz constant of the loss, instead of the preset's.
    b : float, optional
        Parameter b of the paper, the initial stake, in units of the target's spread, instead of the preset's.
    passes : int, default=10
        Number of passes over the rows in ``fit``. Several passes help on small data sets; on large ones one is enough.
    average : bool, default=False
        Whether to predict with the average of the weights over the rounds instead of the last weights.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the rows before each pass. The model then depends only on the weighted set of rows: a
        row of weight 3 is learned three times, like three copies of it (in fewer rounds of larger weight if there would
        be more than 65,536 rounds in total and four for each row). With False the rows are learned in the given order,
        in one round each, as by ``partial_fit``, and a weight multiplies the loss.
    random_state : int, RandomState instance or None, default=0
        Controls the order of the rows. The default gives reproducible results; None uses NumPy's global generator.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights (1 for classes not given).
        ``"balanced"``, in ``fit`` only: inversely proportional to the total weights of the classes.
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
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercept.
    progressive_loss_ : float
        Progressive validation loss: the mean loss of the rows, each predicted before it is learned.
    t_ : int
        Number of rounds so far.
    n_iter_ : int
        Number of passes of the latest ``fit``.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only when X has feature names that are all strings.

    References
    ----------
    .. [1] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree import PiSTOLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = PiSTOLClassifier().fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.9
    True

    Incremental learning, with a class that appears later:

    >>> model = PiSTOLClassifier().partial_fit([[0.0], [1.0]], ["no", "yes"])
    >>> model.partial_fit([[2.0]], ["perhaps"]).classes_.tolist()
    ['no', 'perhaps', 'yes']
    """

    def __init__(
        self,
        *,
        loss: str = "logistic",
        preset: str = "theory",
        coordinate: bool = True,
        a: float | None = None,
        b: float | None = None,
        passes: int = 10,
        average: bool = False,
        fit_intercept: bool = True,
        shuffle: bool = True,
        random_state: Any = 0,
        class_weight: Any = None,
        warm_start: bool = False,
        categorical: Any = None,
        text: Any = None,
    ) -> None:
        self.loss = loss
        self.preset = preset
        self.coordinate = coordinate
        self.a = a
        self.b = b
        self.passes = passes
        self.average = average
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.categorical = categorical
        self.text = text

    def _learner(self) -> tuple[str, dict[str, float]]:
        return _settings(self.preset, self.coordinate, self.a, self.b)


class PiSTOLRegressor(OnlineRegressorBase):
    """A linear regressor with nothing to tune: PiSTOL.

    It is an online learner that adapts to the unknown norm of the best linear model [1]_, so neither a learning rate
    nor a regularisation parameter needs tuning. The paper's theorem does not cover numbers whose spread is not known
    beforehand, which is what the learner's stake follows here; lower bounds on the loss of every linear model on the
    rows of the first pass are in ``certificate_``.

    Parameters
    ----------
    loss : str, default="square"
        ``"square"``, ``"absolute"``, ``"absolute-power:1.5"``, ``"epsilon-insensitive:0.1"``, ``"huber:1"`` or
        ``"quantile:0.5"``, with the parameter after the colon.
    preset : {"theory", "practice"}, default="theory"
        Values of ``a`` and ``b``, as in :class:`PiSTOLClassifier`.
    coordinate : bool, default=True
        Whether to run one copy of the algorithm for each feature, which makes it invariant to the scale of each
        feature. With False one copy learns all features; it is invariant to rotations and to the scale of the data as a
        whole.
    a : float, optional
        Parameter a of the paper, in units of the Lipschitz constant of the loss, instead of the preset's.
    b : float, optional
        Parameter b of the paper, the initial stake, in units of the target's spread, instead of the preset's.
    passes : int, default=10
        Number of passes over the rows in ``fit``. Several passes help on small data sets; on large ones one is enough.
    average : bool, default=False
        Whether to predict with the average of the weights over the rounds instead of the last weights.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the rows before each pass. The model then depends only on the weighted set of rows: a
        row of weight 3 is learned three times, like three copies of it (in fewer rounds of larger weight if there would
        be more than 65,536 rounds in total and four for each row). With False the rows are learned in the given order,
        in one round each, as by ``partial_fit``, and a weight multiplies the loss.
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
    coef_ : ndarray of shape (n_features,)
        Weights of the features.
    intercept_ : ndarray of shape (1,)
        Prediction for a row of zeros. It is always fitted: targets are learned relative to their running mean.
    progressive_loss_ : float
        Progressive validation loss: the mean loss of the rows, each predicted before it is learned.
    t_ : int
        Number of rounds so far.
    n_iter_ : int
        Number of passes of the latest ``fit``.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only when X has feature names that are all strings.

    References
    ----------
    .. [1] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import PiSTOLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PiSTOLRegressor().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.4
    True
    """

    def __init__(
        self,
        *,
        loss: str = "square",
        preset: str = "theory",
        coordinate: bool = True,
        a: float | None = None,
        b: float | None = None,
        passes: int = 10,
        average: bool = False,
        shuffle: bool = True,
        random_state: Any = 0,
        warm_start: bool = False,
        categorical: Any = None,
        text: Any = None,
    ) -> None:
        self.loss = loss
        self.preset = preset
        self.coordinate = coordinate
        self.a = a
        self.b = b
        self.passes = passes
        self.average = average
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start
        self.categorical = categorical
        self.text = text

    def _learner(self) -> tuple[str, dict[str, float]]:
        return _settings(self.preset, self.coordinate, self.a, self.b)
