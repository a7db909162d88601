"""ScInOL in scikit-learn's manner."""

from __future__ import annotations

from typing import Any

from tunefree.estimators import validation
from tunefree.estimators.base import OnlineClassifierBase
from tunefree.estimators.regressor import OnlineRegressorBase


def _scinol(variant: Any, epsilon: Any) -> tuple[str, dict[str, float]]:
    """ScInOL's name in ``learners.ALL`` and its settings."""
    validation.whole(variant=variant)
    if variant > 2:
        raise ValueError(f"variant must be 1 or 2, not {variant!r}")
    return f"scinol{variant}", validation.positive(epsilon=epsilon)


class ScInOLClassifier(OnlineClassifierBase):
    """A linear classifier with nothing to tune: the scale-invariant online learner ScInOL.

    For losses with a Lipschitz constant (``"logistic"``, ``"hinge"``, ``"smoothed-hinge"``) its predictions of the rows
    in the first pass, each before it is learned, have a regret bound against every fixed linear model that does not
    depend on the scale of the features [1]_: :func:`tunefree.theory.paper_bound`. So it needs neither a learning rate
    nor feature scaling. The cost is a few multiplications for each nonzero value.

    Parameters
    ----------
    variant : {1, 2}, default=2
        Algorithm 1 or 2 of the paper. The second bets a fraction of its wealth and has the lower loss on most data.
    loss : str, default="logistic"
        ``"logistic"`` (multinomial with more than two classes), ``"hinge"``, ``"smoothed-hinge"``,
        ``"squared-hinge"``, ``"exponential"`` or ``"square"`` (each class against the others). Probabilities are
        those of the logistic loss, or with another one calibrated along the stream.
    epsilon : float, default=1.0
        Initial wealth of each weight, in units of the mean absolute deviation of the target; results depend on it
        little.
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
    .. [1] M. Kempka, W. Kotlowski, M. K. Warmuth. Adaptive scale-invariant online algorithms for learning linear
       models. ICML 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree import ScInOLClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ScInOLClassifier().fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.9
    True

    Incremental learning, with a class that appears later:

    >>> model = ScInOLClassifier().partial_fit([[0.0], [1.0]], ["no", "yes"])
    >>> model.partial_fit([[2.0]], ["perhaps"]).classes_.tolist()
    ['no', 'perhaps', 'yes']
    """

    def __init__(
        self,
        *,
        variant: int = 2,
        loss: str = "logistic",
        epsilon: float = 1.0,
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
        self.variant = variant
        self.loss = loss
        self.epsilon = epsilon
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
        return _scinol(self.variant, self.epsilon)


class ScInOLRegressor(OnlineRegressorBase):
    """A linear regressor with nothing to tune: the scale-invariant online learner ScInOL.

    It is an online learner whose predictions do not depend on the scale of the features [1]_. So it needs neither a
    learning rate nor feature scaling. The cost is a few multiplications for each nonzero value. The paper's theorems
    assume that the spread of the targets is known. For losses with a Lipschitz constant (``"absolute"``, ``"huber:1"``,
    ``"quantile:0.5"``) variant 2 has a regret bound without that, :func:`tunefree.theory.paper_bound` with ``drift``;
    none is known for the others.

    Parameters
    ----------
    variant : {1, 2}, default=2
        Algorithm 1 or 2 of the paper. The second bets a fraction of its wealth and has the lower loss on most data.
    loss : str, default="square"
        ``"square"``, ``"absolute"``, ``"absolute-power:1.5"``, ``"epsilon-insensitive:0.1"``, ``"huber:1"`` or
        ``"quantile:0.5"``, with the parameter after the colon.
    epsilon : float, default=1.0
        Initial wealth of each weight, in units of the mean absolute deviation of the target; results depend on it
        little.
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
    .. [1] M. Kempka, W. Kotlowski, M. K. Warmuth. Adaptive scale-invariant online algorithms for learning linear
       models. ICML 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import ScInOLRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ScInOLRegressor().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.4
    True
    """

    def __init__(
        self,
        *,
        variant: int = 2,
        loss: str = "square",
        epsilon: float = 1.0,
        passes: int = 10,
        average: bool = False,
        shuffle: bool = True,
        random_state: Any = 0,
        warm_start: bool = False,
        categorical: Any = None,
        text: Any = None,
    ) -> None:
        self.variant = variant
        self.loss = loss
        self.epsilon = epsilon
        self.passes = passes
        self.average = average
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start
        self.categorical = categorical
        self.text = text

    def _learner(self) -> tuple[str, dict[str, float]]:
        return _scinol(self.variant, self.epsilon)
