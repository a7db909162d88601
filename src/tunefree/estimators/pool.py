"""The pool as scikit-learn estimators: nothing to choose, not even the number of passes."""

from __future__ import annotations

from typing import Any

from tunefree.estimators.base import OnlineClassifierBase, OnlineRegressorBase
from tunefree.estimators.pooled import Pooled


class TuneFreeClassifier(Pooled, OnlineClassifierBase):
    """A classifier with nothing to tune: a pool of online learners, mixed.

    Seventeen learners (second-order and first-order, scale-invariant and adaptive, with several rates, on raw and on
    robustly standardised rows) are trained in parallel, and their probabilities are averaged with Bayesian weights
    [1]_. Five of them learn additive models, piecewise linear in each column, three of these with interactions of pairs
    of columns; they are for dense rows of at most 128 columns, and join after 256 rows. On a stream (``partial_fit``,
    sample weights up to 1) the total log-loss of the mixture exceeds that of its best member by at most
    ln 17 + ln(rounds + 1). ``fit`` ends with exact gradients of all rows (L-BFGS), stopped early.

    Parameters
    ----------
    learner : {"pool", "generations"}, default="pool"
        ``"generations"`` makes one pass with trees that are grown on the way and go on learning, beside some linear
        learners, mixed by rules that learn themselves (:mod:`tunefree.pool`). It has no use for ``kernel``, ``pairs``,
        ``max_support``, ``device`` and ``epochs``, and what it predicts is not explained: it has no ``coef_``.
    loss : {"logistic"}, default="logistic"
        The loss that is minimised.
    kernel : "auto" or bool, default="auto"
        Whether PiSTOL [2]_ with Gaussian kernels of nine bandwidths, on two views of the rows, joins the pool. Time and
        memory then grow with the number of rows of small margin. With ``"auto"`` it joins in ``fit`` of 2048 to 16,384
        dense rows of at most 128 columns, and is dropped where it does not pay; what it has learned is no sum of
        functions of columns, and is left out of explanations.
    max_support : int, optional
        Maximum number of support points of each view, with ``kernel``. Beyond it the functions continue in random
        Fourier features, with bounded memory and a warning.
    device : str, optional
        PyTorch device for the evaluation of kernels, ``"cuda"`` or ``"cpu"``; by default compiled code is used.
    pairs : "auto" or list of (column, column), default="auto"
        Pairs of columns whose products are learned beside curves of single columns, by their names or numbers from 0.
        ``"auto"`` finds the pairs that pay; an empty list learns none.
    epochs : "auto" or int, default="auto"
        Number of passes over the rows in ``fit``. ``"auto"`` selects it by early stopping on a held-out tenth of the
        rows and then fits all rows. With fewer than 40 rows it is ten; a ``fit`` that continues (``warm_start``) makes
        one pass.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the rows; the model then depends only on the weighted set of rows. With False the rows
        are learned in the given order, as by ``partial_fit``.
    n_jobs : int, default=-1
        Threads that work at once, by scikit-learn's rules: -1 for as many as there are processors, None for one. The
        model does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Controls the order of the rows. The default gives reproducible results; None uses NumPy's global generator.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights (1 for classes not given).
        ``"balanced"``, in ``fit`` only: inversely proportional to the total weights of the classes.
    warm_start : bool, default=False
        Whether ``fit`` continues from the present model instead of starting again.
    verbose : bool, default=False
        Whether ``fit`` prints a line for each pass, and one when code is compiled. On a terminal it also draws a bar.
    categorical_features : array-like of str, int or bool, optional
        Columns that are one-hot encoded even if they hold numbers, by their names, by numbers from 0, or as a mask. In
        a table, strings, categories and booleans are encoded in any case.
    text_features : array-like of str, int or bool, optional
        Columns whose words become features; an empty list for none. By default long strings that are mostly different
        from each other are taken for texts.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels known to the classifier, sorted.
    members_ : list of dict
        The members of the pool: ``member``, its weight (``share``) in predictions, and its number of ``passes``.
    coef_, intercept_ : ndarray
        The linear function that is nearest to the model, in the units of the columns, if each column is one number;
        :meth:`feature_weights` has that of all features, and how much of the model's variance it explains.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much predictions vary with each column, whatever its units.
    progressive_loss_ : float
        Progressive validation loss: the mean loss of the rows, each predicted before it is learned.
    t_ : int
        Number of rounds so far.
    n_iter_ : int
        Largest number of passes of a member that learns row by row in the latest ``fit``.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only when X has feature names that are all strings.

    References
    ----------
    .. [1] V. Vovk. Aggregating strategies. COLT 1990.
    .. [2] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree import TuneFreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = TuneFreeClassifier().fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.95
    True

    Incremental learning, with a class that appears later:

    >>> model = TuneFreeClassifier().partial_fit([[0.0], [1.0]], ["no", "yes"])
    >>> model.partial_fit([[2.0]], ["perhaps"]).classes_.tolist()
    ['no', 'perhaps', 'yes']
    """

    def __init__(
        self,
        *,
        learner: str = "pool",
        loss: str = "logistic",
        kernel: Any = "auto",
        max_support: int | None = None,
        device: str | None = None,
        pairs: Any = "auto",
        epochs: Any = "auto",
        fit_intercept: bool = True,
        shuffle: bool = True,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        class_weight: Any = None,
        warm_start: bool = False,
        categorical_features: Any = None,
        text_features: Any = None,
        verbose: bool = False,
    ) -> None:
        self.learner = learner
        self.loss = loss
        self.kernel = kernel
        self.max_support = max_support
        self.device = device
        self.pairs = pairs
        self.epochs = epochs
        self.fit_intercept = fit_intercept
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.categorical_features = categorical_features
        self.text_features = text_features
        self.verbose = verbose


class TuneFreeRegressor(Pooled, OnlineRegressorBase):
    """A regressor with nothing to tune: a pool of online learners, mixed.

    Seventeen learners (second-order and first-order, scale-invariant and adaptive, with several rates, on raw and on
    robustly standardised rows) are trained in parallel. Five of them learn additive models, piecewise linear in each
    column, three of these with interactions of pairs of columns; they are for dense rows of at most 128 columns, and
    join after 256 rows. Predictions are averaged with exponential weights and an adaptive rate, as in AdaHedge [1]_.
    ``fit`` ends with exact gradients of all rows (L-BFGS), stopped early.

    Parameters
    ----------
    learner : {"pool", "generations"}, default="pool"
        ``"generations"`` makes one pass with trees that are grown on the way and go on learning, beside some linear
        learners, mixed by rules that learn themselves (:mod:`tunefree.pool`). It has no use for ``kernel``, ``pairs``,
        ``max_support``, ``device`` and ``epochs``, and what it predicts is not explained: it has no ``coef_``.
    loss : str, default="square"
        ``"square"`` predicts the mean, ``"absolute"`` the median, ``"quantile:0.9"`` a quantile; also
        ``"power:1.5"``, ``"epsilon-insensitive:0.1"`` and ``"huber:1"``, with the parameter after the colon.
    kernel : "auto" or bool, default="auto"
        Whether PiSTOL [2]_ with Gaussian kernels of nine bandwidths, on two views of the rows, joins the pool. Time and
        memory then grow with the number of rows of small margin. With ``"auto"`` it joins in ``fit`` of 2048 to 16,384
        dense rows of at most 128 columns, and is dropped where it does not pay; what it has learned is no sum of
        functions of columns, and is left out of explanations.
    max_support : int, optional
        Maximum number of support points of each view, with ``kernel``. Beyond it the functions continue in random
        Fourier features, with bounded memory and a warning.
    device : str, optional
        PyTorch device for the evaluation of kernels, ``"cuda"`` or ``"cpu"``; by default compiled code is used.
    pairs : "auto" or list of (column, column), default="auto"
        Pairs of columns whose products are learned beside curves of single columns, by their names or numbers from 0.
        ``"auto"`` finds the pairs that pay; an empty list learns none.
    epochs : "auto" or int, default="auto"
        Number of passes over the rows in ``fit``. ``"auto"`` selects it by early stopping on a held-out tenth of the
        rows and then fits all rows. With fewer than 40 rows it is ten; a ``fit`` that continues (``warm_start``) makes
        one pass.
    shuffle : bool, default=True
        Whether ``fit`` shuffles the rows; the model then depends only on the weighted set of rows. With False the rows
        are learned in the given order, as by ``partial_fit``.
    n_jobs : int, default=-1
        Threads that work at once, by scikit-learn's rules: -1 for as many as there are processors, None for one. The
        model does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Controls the order of the rows. The default gives reproducible results; None uses NumPy's global generator.
    warm_start : bool, default=False
        Whether ``fit`` continues from the present model instead of starting again.
    verbose : bool, default=False
        Whether ``fit`` prints a line for each pass, and one when code is compiled. On a terminal it also draws a bar.
    categorical_features : array-like of str, int or bool, optional
        Columns that are one-hot encoded even if they hold numbers, by their names, by numbers from 0, or as a mask. In
        a table, strings, categories and booleans are encoded in any case.
    text_features : array-like of str, int or bool, optional
        Columns whose words become features; an empty list for none. By default long strings that are mostly different
        from each other are taken for texts.

    Attributes
    ----------
    members_ : list of dict
        The members of the pool: ``member``, its weight (``share``) in predictions, and its number of ``passes``.
    coef_, intercept_ : ndarray
        The linear function that is nearest to the model, in the units of the columns, if each column is one number;
        :meth:`feature_weights` has that of all features, and how much of the model's variance it explains.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much predictions vary with each column, whatever its units.
    progressive_loss_ : float
        Progressive validation loss: the mean loss of the rows, each predicted before it is learned.
    t_ : int
        Number of rounds so far.
    n_iter_ : int
        Largest number of passes of a member that learns row by row in the latest ``fit``.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only when X has feature names that are all strings.

    References
    ----------
    .. [1] S. de Rooij, T. van Erven, P. D. Grünwald, W. M. Koolen. Follow the leader if you can, hedge if you must.
       JMLR 15, 2014.
    .. [2] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
       NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import TuneFreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TuneFreeRegressor().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.45
    True
    """

    def __init__(
        self,
        *,
        learner: str = "pool",
        loss: str = "square",
        kernel: Any = "auto",
        max_support: int | None = None,
        device: str | None = None,
        pairs: Any = "auto",
        epochs: Any = "auto",
        shuffle: bool = True,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        warm_start: bool = False,
        categorical_features: Any = None,
        text_features: Any = None,
        verbose: bool = False,
    ) -> None:
        self.learner = learner
        self.loss = loss
        self.kernel = kernel
        self.max_support = max_support
        self.device = device
        self.pairs = pairs
        self.epochs = epochs
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.categorical_features = categorical_features
        self.text_features = text_features
        self.verbose = verbose
