"""The pool as scikit-learn estimators: one pass is the whole training, and nothing has to be chosen."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from tunefree.estimators import validation
from tunefree.estimators.base import OnlineClassifierBase, OnlineEstimator
from tunefree.estimators.fit_display import FitDisplay
from tunefree.estimators.model_file import WholeOnly
from tunefree.estimators.preparation import kernel_names
from tunefree.estimators.regressor import OnlineRegressorBase
from tunefree.losses import loss_of
from tunefree.model.kernel_bank import KernelConfig
from tunefree.pool.model import are_many


class Pooled(OnlineEstimator):
    """What the two estimators share."""

    loss: str
    kernel: str | None
    max_support: int | None
    device: str | None

    def _learner(self) -> tuple[str, dict[str, float]]:
        return "pool" if self.kernel is None else "kernel-pool", {}

    def _kernel_config(self) -> KernelConfig:
        return KernelConfig(self.kernel or "rbf", device=self.device, max_support=self.max_support)

    def _check_parameters(self) -> None:
        switches = ("shuffle", "warm_start", "verbose")
        validation.switches(**{name: getattr(self, name) for name in switches})
        if self.kernel not in (None, *(names := kernel_names())):
            raise ValueError(f"kernel must be None, {', '.join(map(repr, names))}, not {self.kernel!r}")
        for name in ("max_support", "device"):
            if getattr(self, name) is not None and self.kernel is None:
                raise ValueError(f"{name} has no effect without a kernel; pass kernel='rbf', or leave {name} out")
        if self.max_support is not None:
            validation.whole(max_support=self.max_support)
        loss_of(self._task, str(self.loss))

    def _pass_of(self, groups: Any, y: Any) -> Any:
        """The function that learns the rows of a ``fit``, which are of these groups."""
        group = None if groups is None else validation.group_digests(groups, _num_samples(y), may_be_one=False)
        return partial(self._one_pass, group)

    def _one_pass(self, group: np.ndarray | None, X: Any, y: np.ndarray, weight: np.ndarray) -> None:
        """A pass over the rows, and its end."""
        if self.shuffle:
            rounds = validation.merged(X, y, weight, group)
            rounds = validation.drawn(rounds, check_random_state(self.random_state))
        else:
            rounds = validation.as_given(weight, group)
        with FitDisplay(type(self).__name__, bool(self.verbose)) as display:
            display.begins(f"a pass over {len(rounds.row):,} rows")
            for share in self._steps(X, y, rounds, first=True):
                display.advance(share)
            self._learned.model.freeze()
            display.say(f"a pass over {len(rounds.row):,} rows, progressive loss {self.progressive_loss_:.6g}")
        self.n_iter_ = 1
        self._warn_of_repeats(int(np.count_nonzero(weight)) - len(rounds.row), group is not None)

    def _warn_of_repeats(self, n_merged: int, has_groups: bool) -> None:
        """Warn where many rows repeat; those that were merged with a copy did, too."""
        repeats, rows = (count + n_merged for count in self._learned.model.repeats())
        if not are_many(repeats, rows):
            return
        problem = f"{repeats:,} of {rows:,} rows repeat earlier ones, or are of earlier groups, and are no evidence"
        remedy = "keep the rows of a group together" if has_groups else "if rows belong to one subject, pass groups="
        warnings.warn(f"{problem}; {remedy}", stacklevel=5)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def selection_(self) -> dict[str, np.ndarray]:
        """The members that predict, those with the largest weights first, and what they were judged by.

        Arrays of one entry a member: ``member``, its name; ``weight`` in the mean that the mixture corrects, of sum 1;
        ``loss``, the mean of the rows that were evidence, each predicted before it was learned (NaN if there was none);
        its ``standard_error``, which is of groups if there are any; and the number of these ``rows``.
        """
        check_is_fitted(self)
        selection = self._learned.model.selection()
        return {
            "member": np.array(selection.members, object),
            "weight": selection.weights,
            "loss": selection.losses,
            "standard_error": selection.standard_errors,
            "rows": selection.rows,
        }


class TuneFreeClassifier(Pooled, OnlineClassifierBase):
    """A classifier with nothing to tune: trees that go on learning and online learners, mixed.

    Members predict each row together, and then learn it. There are two kinds of them:

    - *Generations* are models that are grown on the rows so far: boosted trees [1]_, randomised trees [2]_, and on few
      rows logistic regression. New ones are grown while rows come, and the two newest of each kind predict. Their
      trees go on learning: online learners [3]_ correct the values of their leaves, row by row.
    - A few *online linear learners* on standardised columns. On sparse rows of many features there are no others.

    The members are mixed by rules that learn, too: a mean of their probabilities, whose weights follow their losses
    [4]_, and corrections that learn weights of the members' differences from it. Each row was predicted before it was
    learned, so it tells how good each member is. No rows are held out, and one pass is the whole training. ``fit``
    draws an order of the rows, and ends the pass with generations of all of them; ``partial_fit`` goes on with the
    pass, in the order in which rows come.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "poly", "linear"}, optional
        The kernel of functions that join the pool: of nine bandwidths, if it has one, on two views of the rows, learned
        by PiSTOL [5]_. Time and memory then grow with the number of rows of small margin.
    max_support : int, optional
        Maximum number of support points of each view, with a kernel. Beyond it the functions continue in random
        Fourier features, with bounded memory and a warning.
    device : str, optional
        PyTorch device for the evaluation of kernels, ``"cuda"`` or ``"cpu"``, with a kernel; by default compiled
        code is used.
    shuffle : bool, default=True
        Whether ``fit`` draws the order of the rows; the model then depends only on the weighted set of rows. With False
        the rows are learned in the given order, as by ``partial_fit``.
    n_jobs : int, default=-1
        Threads that work at once, by scikit-learn's rules: -1 for as many as there are processors, None for one. The
        model does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Controls the order of the rows. The default gives reproducible results; None uses NumPy's global generator.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights (1 for classes not given).
        ``"balanced"``, in ``fit`` only: inversely proportional to the total weights of the classes.
    warm_start : bool, default=False
        Whether ``fit`` goes on with the pass of the present model instead of starting again.
    verbose : bool, default=False
        Whether ``fit`` prints a line when the pass is over, and one when code is compiled. On a terminal it also draws
        a bar.
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
    selection_ : dict of arrays
        The members that predict, with their weights and what they were judged by: ``member``, ``weight``, ``loss``,
        ``standard_error`` and ``rows``.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much predictions vary with each column, whatever its units.
    progressive_loss_ : float
        Progressive validation loss: the mean loss of the rows, each predicted before it is learned.
    t_ : int
        Number of rows learned so far; copies are one row.
    n_iter_ : int
        Number of passes of the latest ``fit``, which is 1.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only when X has feature names that are all strings.

    References
    ----------
    .. [1] J. H. Friedman. Greedy function approximation: a gradient boosting machine. Annals of Statistics 29, 2001.
    .. [2] P. Geurts, D. Ernst, L. Wehenkel. Extremely randomized trees. Machine Learning 63, 2006.
    .. [3] M. Kempka, W. Kotlowski, M. K. Warmuth. Adaptive scale-invariant online algorithms for learning linear
       models. ICML 2019.
    .. [4] L. Orseau, T. Lattimore, S. Legg. Soft-Bayes: Prod for mixtures of experts with log-loss. ALT 2017.
    .. [5] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
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

    loss = "logistic"  # of probabilities

    def __init__(
        self,
        *,
        kernel: str | None = None,
        max_support: int | None = None,
        device: str | None = None,
        shuffle: bool = True,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        class_weight: Any = None,
        warm_start: bool = False,
        categorical: Any = None,
        text: Any = None,
        verbose: bool = False,
    ) -> None:
        self.kernel = kernel
        self.max_support = max_support
        self.device = device
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.categorical = categorical
        self.text = text
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None, groups: Any = None) -> Any:
        """Fit the model by one pass (with ``warm_start``, go on with that of the present model).

        A class of fewer than three rows, where there are more than a thousand, is reported by a warning, unless the
        classes are given. So is a twentieth of the rows or more that repeat earlier ones.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)
            NaN in an array is a missing value, as a gap in a table is.
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 2 is two copies of it, and one of weight 0 is left out.
        classes : array-like, optional
            All labels, here and in calls to come; another label is an error.
        groups : array-like of shape (n_samples,), optional
            Labels of groups of rows that belong together, as those of one patient. The groups are passed in turn, and
            no row of a group is evidence for what was learned from another of it.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, classes, self._pass_of(groups, y))

    @WholeOnly
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, groups: Any = None) -> Any:
        """Go on with the pass over the given rows, in their order.

        The calls around the learning of one row take longer than that: pass some hundred rows at a time where rows come
        fast.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels; a new label becomes a new class, unless classes are given.
        classes : array-like, optional
            All labels, here and in calls to come, until a call gives more; another label is an error. If the first
            call has them, the model does not depend on the division into calls.
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            Labels of groups of rows that belong together, as in ``fit``. Pass all rows of a group one after another,
            in one call: rows of a group that an earlier call had are no evidence.

        Returns
        -------
        self
        """
        return self._update(X, y, classes, sample_weight, groups)


class TuneFreeRegressor(Pooled, OnlineRegressorBase):
    """A regressor with nothing to tune: trees that go on learning and online learners, mixed.

    Members predict each row together, and then learn it. There are two kinds of them:

    - *Generations* are models that are grown on the rows so far: boosted trees [1]_, randomised trees [2]_, and on few
      rows ridge regression. New ones are grown while rows come, and the two newest of each kind predict. Their
      trees go on learning: online learners [3]_ correct the values of their leaves, row by row.
    - A few *online linear learners* on standardised columns. On sparse rows of many features there are no others.

    The members are mixed by rules that learn, too: a mean of their predictions, with exponential weights [4]_,
    and corrections that learn weights of the members' differences from it. Each row was predicted before it was
    learned, so it tells how good each member is. No rows are held out, and one pass is the whole training. ``fit``
    draws an order of the rows, and ends the pass with generations of all of them; ``partial_fit`` goes on with the
    pass, in the order in which rows come.

    Parameters
    ----------
    loss : str, default="square"
        ``"square"`` predicts the mean, ``"absolute"`` the median, ``"quantile:0.9"`` a quantile; also
        ``"absolute-power:1.5"``, ``"epsilon-insensitive:0.1"`` and ``"huber:1"``, with the parameter after the colon.
    kernel : {"rbf", "laplacian", "poly", "linear"}, optional
        The kernel of functions that join the pool: of nine bandwidths, if it has one, on two views of the rows, learned
        by PiSTOL [5]_. Time and memory then grow with the number of rows of small margin.
    max_support : int, optional
        Maximum number of support points of each view, with a kernel. Beyond it the functions continue in random
        Fourier features, with bounded memory and a warning.
    device : str, optional
        PyTorch device for the evaluation of kernels, ``"cuda"`` or ``"cpu"``, with a kernel; by default compiled
        code is used.
    shuffle : bool, default=True
        Whether ``fit`` draws the order of the rows; the model then depends only on the weighted set of rows. With False
        the rows are learned in the given order, as by ``partial_fit``.
    n_jobs : int, default=-1
        Threads that work at once, by scikit-learn's rules: -1 for as many as there are processors, None for one. The
        model does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Controls the order of the rows. The default gives reproducible results; None uses NumPy's global generator.
    warm_start : bool, default=False
        Whether ``fit`` goes on with the pass of the present model instead of starting again.
    verbose : bool, default=False
        Whether ``fit`` prints a line when the pass is over, and one when code is compiled. On a terminal it also draws
        a bar.
    categorical : array-like of str, int or bool, optional
        Columns that are one-hot encoded even if they hold numbers, by their names, by numbers from 0, or as a mask. In
        a table, strings, categories and booleans are encoded in any case.
    text : array-like of str, int or bool, optional
        Columns whose words become features, beside strings that are mostly different from each other and long or of
        several words; ``categorical`` takes a column away from these.

    Attributes
    ----------
    selection_ : dict of arrays
        The members that predict, with their weights and what they were judged by: ``member``, ``weight``, ``loss``,
        ``standard_error`` and ``rows``.
    feature_importances_ : ndarray of shape (n_features_in_,)
        How much predictions vary with each column, whatever its units.
    progressive_loss_ : float
        Progressive validation loss: the mean loss of the rows, each predicted before it is learned.
    t_ : int
        Number of rows learned so far; copies are one row.
    n_iter_ : int
        Number of passes of the latest ``fit``, which is 1.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only when X has feature names that are all strings.

    References
    ----------
    .. [1] J. H. Friedman. Greedy function approximation: a gradient boosting machine. Annals of Statistics 29, 2001.
    .. [2] P. Geurts, D. Ernst, L. Wehenkel. Extremely randomized trees. Machine Learning 63, 2006.
    .. [3] M. Kempka, W. Kotlowski, M. K. Warmuth. Adaptive scale-invariant online algorithms for learning linear
       models. ICML 2019.
    .. [4] V. Vovk. Aggregating strategies. COLT 1990.
    .. [5] F. Orabona. Simultaneous model selection and optimization through parameter-free stochastic learning.
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
        loss: str = "square",
        kernel: str | None = None,
        max_support: int | None = None,
        device: str | None = None,
        shuffle: bool = True,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        warm_start: bool = False,
        categorical: Any = None,
        text: Any = None,
        verbose: bool = False,
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.max_support = max_support
        self.device = device
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.categorical = categorical
        self.text = text
        self.verbose = verbose

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, exposure: Any = None
    ) -> Any:
        """Fit the model by one pass (with ``warm_start``, go on with that of the present model).

        A twentieth of the rows or more that repeat earlier ones are reported by a warning.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 2 is two copies of it, and one of weight 0 is left out.
        groups : array-like of shape (n_samples,), optional
            Labels of groups of rows that belong together, as those of one patient. The groups are passed in turn, and
            no row of a group is evidence for what was learned from another of it.
        exposure : array-like of shape (n_samples,) or float, optional
            What each row was exposed to, above 0, such as years: its mean is the exposure times what the columns tell.
            For the losses of counts and amounts.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, self._pass_of(groups, y), exposure)

    @WholeOnly
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, exposure: Any = None) -> Any:
        """Go on with the pass over the given rows, in their order.

        The calls around the learning of one row take longer than that: pass some hundred rows at a time where rows come
        fast.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            Labels of groups of rows that belong together, as in ``fit``. Pass all rows of a group one after another,
            in one call: rows of a group that an earlier call had are no evidence.
        exposure : array-like of shape (n_samples,) or float, optional
            What each row was exposed to, above 0, such as years: its mean is the exposure times what the columns tell.
            For the losses of counts and amounts.

        Returns
        -------
        self
        """
        return self._update(X, y, sample_weight, groups, exposure)
