"""Linear classifiers and regressors in scikit-learn's manner."""

from __future__ import annotations

from typing import Any

from tunefree.estimators import validation
from tunefree.estimators.base import OnlineClassifierBase, OnlineRegressorBase


def _scinol(variant: Any, epsilon: Any) -> tuple[str, dict[str, float]]:
    """ScInOL's name in ``learners.ALL`` and its settings."""
    validation.whole(variant=variant)
    if variant > 2:
        raise ValueError(f"variant must be 1 or 2, not {variant!r}")
    return f"scinol{variant}", validation.positive(epsilon=epsilon)


def _pistol(coordinate: Any, a: Any, b: Any) -> tuple[str, dict[str, float]]:
    """PiSTOL's name in ``learners.ALL`` and its settings."""
    validation.switches(coordinate=coordinate)
    return "coordinate-pistol" if coordinate else "pistol", validation.positive(a=a, b=b)


class ScInOLClassifier(OnlineClassifierBase):
    """A linear classifier with nothing to tune: the scale-invariant online learner ScInOL.

    Learns row by row, at the cost of a few multiplications a non-zero, with a guarantee against every fixed linear
    model that does not depend on how features are scaled [1]_: neither a learning rate nor a scaler is needed.

    Parameters
    ----------
    variant : {1, 2}, default=2
        Algorithm 1 or 2 of the paper. The second bets a share of what it has won and is the better one on most data.
    loss : str, default="logistic"
        ``"logistic"`` (multinomial with more than two classes), ``"hinge"``, ``"smoothed-hinge"``,
        ``"squared-hinge"``, ``"exponential"`` or ``"square"`` (each class against the others). Probabilities are
        those of the logistic loss, or with another one calibrated along the stream.
    epsilon : float, default=1.0
        Initial wealth a weight, in units of the target's spread; results depend on it little.
    epochs : int, default=10
        Passes over the rows in ``fit``. Few rows gain from several; of many, one learns nearly all there is to learn.
    average : bool, default=False
        Predict with the average of the weights over the rounds instead of the last ones.
    fit_intercept : bool, default=True
        Whether there is a constant.
    shuffle : bool, default=True
        Whether ``fit`` takes the rows in random order, new in each epoch. The model then depends on the weighted set
        of rows alone, and a row of weight 3 is learned three times, like three copies of it (in fewer, heavier
        rounds where there would be more than 65,536 rounds in all and four a row). With False the rows are learned in
        the order given, one round each, as ``partial_fit`` does; a weight multiplies the loss.
    random_state : int, RandomState instance or None, default=0
        For the order. The default gives the same model each time; None draws from NumPy's global generator.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class, by which its rows' sample weights are multiplied (1 for classes not named).
        ``"balanced"``, in ``fit`` only: inversely proportional to the classes' total weights.
    warm_start : bool, default=False
        Whether ``fit`` goes on from where the model stands.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels known, sorted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Weights of the constant.
    progressive_loss_ : float
        Mean loss of the rows, each predicted before it was learned: an honest estimate without a test set.
    t_ : int
        Rounds of learning so far.
    n_iter_ : int
        Passes made by the latest ``fit``.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has names that are all strings.

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

    A stream, with a class that appears late:

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
        epochs: int = 10,
        average: bool = False,
        fit_intercept: bool = True,
        shuffle: bool = True,
        random_state: Any = 0,
        class_weight: Any = None,
        warm_start: bool = False,
    ) -> None:
        self.variant = variant
        self.loss = loss
        self.epsilon = epsilon
        self.epochs = epochs
        self.average = average
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start

    def _learner(self) -> tuple[str, dict[str, float]]:
        return _scinol(self.variant, self.epsilon)


class ScInOLRegressor(OnlineRegressorBase):
    """A linear regressor with nothing to tune: the scale-invariant online learner ScInOL.

    Learns row by row, at the cost of a few multiplications a non-zero, with a guarantee against every fixed linear
    model that does not depend on how features are scaled [1]_: neither a learning rate nor a scaler is needed.

    Parameters
    ----------
    variant : {1, 2}, default=2
        Algorithm 1 or 2 of the paper. The second bets a share of what it has won and is the better one on most data.
    loss : str, default="square"
        ``"square"``, ``"absolute"``, ``"power:1.5"``, ``"epsilon-insensitive:0.1"``, ``"huber:1"`` or
        ``"quantile:0.5"``, with their parameters behind the colon.
    epsilon : float, default=1.0
        Initial wealth a weight, in units of the target's spread; results depend on it little.
    epochs : int, default=10
        Passes over the rows in ``fit``. Few rows gain from several; of many, one learns nearly all there is to learn.
    average : bool, default=False
        Predict with the average of the weights over the rounds instead of the last ones.
    shuffle : bool, default=True
        Whether ``fit`` takes the rows in random order, new in each epoch. The model then depends on the weighted set
        of rows alone, and a row of weight 3 is learned three times, like three copies of it (in fewer, heavier
        rounds where there would be more than 65,536 rounds in all and four a row). With False the rows are learned in
        the order given, one round each, as ``partial_fit`` does; a weight multiplies the loss.
    random_state : int, RandomState instance or None, default=0
        For the order. The default gives the same model each time; None draws from NumPy's global generator.
    warm_start : bool, default=False
        Whether ``fit`` goes on from where the model stands.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features.
    intercept_ : ndarray of shape (1,)
        Prediction for a row of zeros. It is never 0 by force: targets are learned relative to their running mean.
    progressive_loss_ : float
        Mean loss of the rows, each predicted before it was learned: an honest estimate without a test set.
    t_ : int
        Rounds of learning so far.
    n_iter_ : int
        Passes made by the latest ``fit``.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has names that are all strings.

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
        epochs: int = 10,
        average: bool = False,
        shuffle: bool = True,
        random_state: Any = 0,
        warm_start: bool = False,
    ) -> None:
        self.variant = variant
        self.loss = loss
        self.epsilon = epsilon
        self.epochs = epochs
        self.average = average
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start

    def _learner(self) -> tuple[str, dict[str, float]]:
        return _scinol(self.variant, self.epsilon)


class PiSTOLClassifier(OnlineClassifierBase):
    """A linear classifier with nothing to tune: PiSTOL.

    Learns row by row, with a guarantee against every fixed linear model that adapts to its unknown norm [1]_, so
    that no learning rate and no regularisation need tuning.

    Parameters
    ----------
    loss : str, default="logistic"
        ``"logistic"`` (multinomial with more than two classes), ``"hinge"``, ``"smoothed-hinge"``,
        ``"squared-hinge"``, ``"exponential"`` or ``"square"`` (each class against the others). Probabilities are
        those of the logistic loss, or with another one calibrated along the stream.
    coordinate : bool, default=True
        One copy of the algorithm a feature, so that the scale of a feature does not matter. False: one for all
        features, invariant to the scale of the data as a whole only, and to rotation.
    a : float, default=2.25
        Caution; the theory asks for at least 2.25.
    b : float, default=1.0
        Initial stake, in units of the target's spread.
    epochs : int, default=10
        Passes over the rows in ``fit``. Few rows gain from several; of many, one learns nearly all there is to learn.
    average : bool, default=False
        Predict with the average of the weights over the rounds instead of the last ones.
    fit_intercept : bool, default=True
        Whether there is a constant.
    shuffle : bool, default=True
        Whether ``fit`` takes the rows in random order, new in each epoch. The model then depends on the weighted set
        of rows alone, and a row of weight 3 is learned three times, like three copies of it (in fewer, heavier
        rounds where there would be more than 65,536 rounds in all and four a row). With False the rows are learned in
        the order given, one round each, as ``partial_fit`` does; a weight multiplies the loss.
    random_state : int, RandomState instance or None, default=0
        For the order. The default gives the same model each time; None draws from NumPy's global generator.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class, by which its rows' sample weights are multiplied (1 for classes not named).
        ``"balanced"``, in ``fit`` only: inversely proportional to the classes' total weights.
    warm_start : bool, default=False
        Whether ``fit`` goes on from where the model stands.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels known, sorted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Weights of the constant.
    progressive_loss_ : float
        Mean loss of the rows, each predicted before it was learned: an honest estimate without a test set.
    t_ : int
        Rounds of learning so far.
    n_iter_ : int
        Passes made by the latest ``fit``.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has names that are all strings.

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

    A stream, with a class that appears late:

    >>> model = PiSTOLClassifier().partial_fit([[0.0], [1.0]], ["no", "yes"])
    >>> model.partial_fit([[2.0]], ["perhaps"]).classes_.tolist()
    ['no', 'perhaps', 'yes']
    """

    def __init__(
        self,
        *,
        loss: str = "logistic",
        coordinate: bool = True,
        a: float = 2.25,
        b: float = 1.0,
        epochs: int = 10,
        average: bool = False,
        fit_intercept: bool = True,
        shuffle: bool = True,
        random_state: Any = 0,
        class_weight: Any = None,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.coordinate = coordinate
        self.a = a
        self.b = b
        self.epochs = epochs
        self.average = average
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start

    def _learner(self) -> tuple[str, dict[str, float]]:
        return _pistol(self.coordinate, self.a, self.b)


class PiSTOLRegressor(OnlineRegressorBase):
    """A linear regressor with nothing to tune: PiSTOL.

    Learns row by row, with a guarantee against every fixed linear model that adapts to its unknown norm [1]_, so
    that no learning rate and no regularisation need tuning.

    Parameters
    ----------
    loss : str, default="square"
        ``"square"``, ``"absolute"``, ``"power:1.5"``, ``"epsilon-insensitive:0.1"``, ``"huber:1"`` or
        ``"quantile:0.5"``, with their parameters behind the colon.
    coordinate : bool, default=True
        One copy of the algorithm a feature, so that the scale of a feature does not matter. False: one for all
        features, invariant to the scale of the data as a whole only, and to rotation.
    a : float, default=2.25
        Caution; the theory asks for at least 2.25.
    b : float, default=1.0
        Initial stake, in units of the target's spread.
    epochs : int, default=10
        Passes over the rows in ``fit``. Few rows gain from several; of many, one learns nearly all there is to learn.
    average : bool, default=False
        Predict with the average of the weights over the rounds instead of the last ones.
    shuffle : bool, default=True
        Whether ``fit`` takes the rows in random order, new in each epoch. The model then depends on the weighted set
        of rows alone, and a row of weight 3 is learned three times, like three copies of it (in fewer, heavier
        rounds where there would be more than 65,536 rounds in all and four a row). With False the rows are learned in
        the order given, one round each, as ``partial_fit`` does; a weight multiplies the loss.
    random_state : int, RandomState instance or None, default=0
        For the order. The default gives the same model each time; None draws from NumPy's global generator.
    warm_start : bool, default=False
        Whether ``fit`` goes on from where the model stands.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features.
    intercept_ : ndarray of shape (1,)
        Prediction for a row of zeros. It is never 0 by force: targets are learned relative to their running mean.
    progressive_loss_ : float
        Mean loss of the rows, each predicted before it was learned: an honest estimate without a test set.
    t_ : int
        Rounds of learning so far.
    n_iter_ : int
        Passes made by the latest ``fit``.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has names that are all strings.

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
        coordinate: bool = True,
        a: float = 2.25,
        b: float = 1.0,
        epochs: int = 10,
        average: bool = False,
        shuffle: bool = True,
        random_state: Any = 0,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.coordinate = coordinate
        self.a = a
        self.b = b
        self.epochs = epochs
        self.average = average
        self.shuffle = shuffle
        self.random_state = random_state
        self.warm_start = warm_start

    def _learner(self) -> tuple[str, dict[str, float]]:
        return _pistol(self.coordinate, self.a, self.b)
