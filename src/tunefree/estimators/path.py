"""Iterative regularization (Lin, Rosasco, Zhou 2016) as scikit-learn estimators: one run, the whole path."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import compute_class_weight

from tunefree.early_stopping.problem import Rows
from tunefree.estimators import path_targets, validation
from tunefree.estimators.iterative import IterativeRegularization
from tunefree.estimators.path_probabilities import fit_temperature, probabilities
from tunefree.estimators.path_targets import Targets
from tunefree.estimators.preparation import LARGEST
from tunefree.losses import loss_of
from tunefree.losses.contract import has_inverse_link
from tunefree.losses.objectives import chosen
from tunefree.model.calibration import of_classes


class IterativeRegularizationClassifier(ClassifierMixin, IterativeRegularization):
    """A classifier regularised by early stopping of the subgradient method; one run gives the regularization path.

    Nothing needs to be tuned: the steps follow from the data and the loss, and held-out rows select the iteration [1]_.

    Parameters
    ----------
    loss : str, default="logistic"
        ``"logistic"`` (multinomial with more than two classes), ``"hinge"``, ``"smoothed-hinge"``,
        ``"squared-hinge"``, ``"exponential"`` or ``"square"`` (each class against the others).
    kernel : {None, "linear", "rbf", "laplacian", "poly"}, default=None
        None fits weights of the features and an intercept; the others fit coefficients of a kernel, without intercept.
    gamma : {"ladder", "median"}, float or callable, optional
        Width of the kernel; a function is called with the prepared rows and the encoded targets. ``"median"``:
        1 / (2 m^2) for "rbf", m the median distance of rows of different classes, 1 / m for "laplacian".
        ``"ladder"``, their default: the multiple of that by a power of two, from a quarter to 64, with which 32
        iterations on at most 4096 rows predict the rows held out best; of nine, seven are tried. "poly": by default 1
        over the mean square length of rows.
    kernel_params : dict, optional
        ``degree`` (3) and ``coef0`` (1) of "poly", (gamma a.b + coef0)^degree; ``precision`` of the kernel's values,
        ``"float32"`` (default) or ``"float64"``.
    transformer : scikit-learn transformer or callable, optional
        A finite dictionary: maps standardised rows to the features whose weights are fitted.
    standardize : bool, default=True
        Whether to standardise columns to mean 0 and variance 1; sparse columns are scaled but not centred.
    theta : float, optional
        Steps are eta_1 t^-theta. Default: 0 for smooth losses, else (q + 1) / (q + 2), with q the growth of slopes: 1/2
        for the hinge. At least 1/2 with ``stochastic``.
    eta : {"auto", "theory"} or float, default="auto"
        eta_1. ``"theory"``: the largest value that the theorems allow. ``"auto"``: the same conditions, evaluated on
        the rows instead of bounded a priori, so that fewer iterations are needed. The exponential loss needs a number.
    output : {"last", "average", "best"}, default="last"
        The last iterate, the average weighted by the steps, or the iterate with the least training loss.
    stop : {"holdout", "theory"} or int, default="holdout"
        ``"holdout"``: the iteration with the least held-out loss; with fewer than 40 distinct rows none is held out,
        and ``"theory"`` is used. ``"theory"``: :func:`tunefree.theory.stopping_time`. int: the number of iterations.
    assumptions : dict, optional
        ``beta``, ``tau`` and ``zeta`` of :func:`tunefree.theory.stopping_time`, for ``"theory"``.
    max_iter : int, default=500
        Length of the path with ``stop="holdout"``.
    stochastic : {None, "cyclic", "shuffled"}, default=None
        Whether each step uses one row, in a fixed order or shuffled before each pass; iterations are then passes.
    validation_fraction : float, default=0.1
        Fraction of each class that is held out and not fitted. 0 holds nothing out (not with ``stop="holdout"``).
    gram_bytes : float, default=2**31
        Bytes of the Gram matrix to store (half of it is needed); the rest is recomputed in each step. An eighth as much
        is used for iterates.
    device : str, optional
        PyTorch device for products with the Gram matrix, ``"cuda"`` or ``"cpu"``; by default NumPy is used. A GPU
        stores as much of the matrix as fits into its free memory, within ``gram_bytes``.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the sample weights (1 for classes not given).
    n_jobs : int, default=-1
        Threads that work at once, by scikit-learn's rules: -1 for as many as there are processors, None for one. The
        model does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Controls the choice of held-out rows, and the order with ``stochastic="shuffled"``.
    warm_start : bool, default=False
        Whether ``fit`` on the same rows continues from the end of the path, to another ``max_iter`` or ``stop``. The
        rows are then stored; a fit without ``warm_start`` cannot be continued.

    Attributes
    ----------
    path_ : record array
        A record for each iterate: ``iteration``, ``step``, ``training_loss``, ``training_error``, ``validation_loss``,
        ``validation_error``, ``norm``, the same losses and errors of averages (``average_training_loss`` ...), and
        ``inner``, the inner product of the iterate and the subgradient there. The first iterate is 0.
    n_iter_ : int
        The selected iteration.
    eta_, theta_, gamma_ : float
        Parameters of the steps, and gamma of the kernel.
    coef_, intercept_ : ndarray
        Weights and intercept for unstandardised features (of the dictionary with a transformer); without a kernel.
    dual_coef_ : ndarray
        Coefficients of the kernel expansion.
    classes_ : ndarray of shape (n_classes,)
        The class labels.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only when X has feature names that are all strings.

    References
    ----------
    .. [1] J. Lin, L. Rosasco, D.-X. Zhou. Iterative regularization for learning with convex loss functions. JMLR 17,
       2016.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from tunefree import IterativeRegularizationClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = IterativeRegularizationClassifier(kernel="rbf").fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:]) > 0.95
    True
    >>> bool((model.at(5).predict(X[400:]) == y[400:]).mean() > 0.8)
    True
    """

    def __init__(
        self,
        *,
        loss: str = "logistic",
        kernel: str | None = None,
        gamma: Any = None,
        kernel_params: dict[str, Any] | None = None,
        transformer: Any = None,
        standardize: bool = True,
        theta: float | None = None,
        eta: Any = "auto",
        output: str = "last",
        stop: Any = "holdout",
        assumptions: dict[str, float] | None = None,
        max_iter: int = 500,
        stochastic: str | None = None,
        validation_fraction: float = 0.1,
        gram_bytes: float = 2**31,
        device: str | None = None,
        class_weight: Any = None,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.kernel, self.gamma = kernel, gamma
        self.kernel_params = kernel_params
        self.transformer = transformer
        self.standardize = standardize
        self.theta = theta
        self.eta = eta
        self.output, self.stop = output, stop
        self.assumptions = assumptions
        self.max_iter = max_iter
        self.stochastic = stochastic
        self.validation_fraction = validation_fraction
        self.gram_bytes, self.device = gram_bytes, device
        self.class_weight = class_weight
        self.n_jobs, self.random_state = n_jobs, random_state
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Compute the regularization path and select an iteration.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of at least two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights; a row of weight 2 is equivalent to two copies of it.

        Returns
        -------
        self
        """
        loss = loss_of("classification", str(self.loss))
        self._check()
        X, y = self._labelled(X, y)
        validation.class_labels(y)
        weight = validation.weights(sample_weight, len(y), may_vanish=False)
        classes, codes = np.unique(y, return_inverse=True)
        if len(np.unique(codes[weight > 0])) < 2:
            label = classes[codes[weight > 0][0]]
            raise ValueError(f"The number of classes has to be greater than one; got 1 class ({label!r})")
        with np.errstate(over="ignore"):
            weight = np.minimum(weight * self._class_weights(classes, codes, weight), LARGEST)
        if not weight.any():
            raise ValueError("sample_weight and class_weight together leave all rows a weight of zero")
        self.classes_ = classes
        self._learn(X, path_targets.of_classes(loss, codes, len(classes)), weight)
        return self

    def _class_weights(self, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            kept = weight > 0
            present = np.unique(codes[kept])
            each = np.ones(len(classes))
            each[present] = compute_class_weight("balanced", classes=present, y=codes[kept], sample_weight=weight[kept])
            return each[codes]
        by_label = validation.class_weights(self.class_weight)
        return np.array([by_label.get(label, 1.0) for label in classes.tolist()])[codes]

    def _calibration_rows(self, targets: Targets, features: Any, rows: Rows) -> tuple[Any, Rows] | None:
        # Losses whose margins stand for no probabilities: these are learned from margins of rows held out.
        return None if has_inverse_link(targets.loss) else (features, rows)

    def _stop_at(self, t: int) -> None:
        super()._stop_at(t)
        self.temperature_ = None
        fitted = self.fitted_path_
        if fitted.calibration is not None:
            features, rows = fitted.calibration
            codes = (rows.y > 0).astype(np.int64) if fitted.targets.n_outputs == 1 else rows.y.astype(np.int64)
            margins = of_classes(fitted.margins(self.coefficients_, features, self.device))
            self.temperature_ = fit_temperature(margins, codes, rows.weight)

    def decision_function(self, X: Any) -> np.ndarray:
        """Margins of the rows: (n_samples,) for the second of two classes, else (n_samples, n_classes).

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)

        Returns
        -------
        ndarray
        """
        margins = self._margins(X)
        return margins[:, 0] if margins.shape[1] == 1 else margins

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class with the largest margin for each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        margins = self._margins(X)
        return self.classes_[chosen(margins)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities.

        Those that the loss's link function gives; with several classes one against all, normalised. The hinge has no
        link function with an inverse: its margins, times a number learned from the rows held out, are taken for
        log-odds (temperature scaling). Where none are held out, it is learned from the training rows, and too bold.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        margins = self._margins(X)
        return probabilities(self.fitted_path_.targets.loss, margins, self.temperature_)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, (1, n_features) with two classes, else (n_classes, n_features)."""
        return self._linear()[0].T

    @property
    def intercept_(self) -> np.ndarray:
        """Intercept, (1,) with two classes, else (n_classes,)."""
        return self._linear()[1]


class IterativeRegularizationRegressor(RegressorMixin, IterativeRegularization):
    """A regressor regularised by early stopping of the subgradient method; one run gives the regularization path.

    The target is centred by its mean and divided by the power of two below its standard deviation. Losses, errors and
    norms of the path are in the units of the target.

    Parameters
    ----------
    loss : str, default="square"
        ``"square"``, ``"absolute"``, ``"absolute-power:1.5"``, ``"epsilon-insensitive:0.1"``, ``"huber:1"`` or
        ``"quantile:0.5"``, with the parameter after the colon.
    kernel, gamma, kernel_params, transformer, standardize, theta, eta, output, stop, assumptions, max_iter, \
stochastic, validation_fraction, gram_bytes, device, random_state, warm_start
        As in :class:`IterativeRegularizationClassifier`. The median of ``gamma`` is over the distances between any two
        rows.

    Attributes
    ----------
    path_, n_iter_, eta_, theta_, gamma_, coef_, intercept_, dual_coef_, n_features_in_, feature_names_in_
        As in :class:`IterativeRegularizationClassifier`; errors are mean absolute errors.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import IterativeRegularizationRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = IterativeRegularizationRegressor().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.45
    True
    """

    def __init__(
        self,
        *,
        loss: str = "square",
        kernel: str | None = None,
        gamma: Any = None,
        kernel_params: dict[str, Any] | None = None,
        transformer: Any = None,
        standardize: bool = True,
        theta: float | None = None,
        eta: Any = "auto",
        output: str = "last",
        stop: Any = "holdout",
        assumptions: dict[str, float] | None = None,
        max_iter: int = 500,
        stochastic: str | None = None,
        validation_fraction: float = 0.1,
        gram_bytes: float = 2**31,
        device: str | None = None,
        n_jobs: int | None = -1,
        random_state: Any = 0,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.kernel, self.gamma = kernel, gamma
        self.kernel_params = kernel_params
        self.transformer = transformer
        self.standardize = standardize
        self.theta = theta
        self.eta = eta
        self.output, self.stop = output, stop
        self.assumptions = assumptions
        self.max_iter = max_iter
        self.stochastic = stochastic
        self.validation_fraction = validation_fraction
        self.gram_bytes, self.device = gram_bytes, device
        self.n_jobs, self.random_state = n_jobs, random_state
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Compute the regularization path and select an iteration.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Sample weights; a row of weight 2 is equivalent to two copies of it.

        Returns
        -------
        self
        """
        loss = loss_of("regression", str(self.loss))
        self._check()
        X, y = self._labelled(X, y, y_numeric=True)
        weight = validation.weights(sample_weight, len(y), may_vanish=False)
        self._learn(X, path_targets.of_numbers(loss, y.astype(np.float64), weight), weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, table} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._numbers(self._margins(X))[:, 0]

    def predictions_of(self, X: Any) -> np.ndarray:
        return self._numbers(self._margins_of(X))

    def _numbers(self, margins: np.ndarray) -> np.ndarray:
        """Margins (n, 1) in the units of the target."""
        with np.errstate(over="ignore"):
            targets = self.fitted_path_.targets
            return np.clip((targets.centre + margins) * targets.unit, -LARGEST, LARGEST)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, (n_features,)."""
        with np.errstate(over="ignore"):
            weights = self._linear()[0][:, 0]
            return np.clip(weights * self.fitted_path_.targets.unit, -LARGEST, LARGEST)

    @property
    def intercept_(self) -> np.ndarray:
        """Prediction of a row of zeros, (1,)."""
        with np.errstate(over="ignore"):
            constant = self._linear()[1]
            targets = self.fitted_path_.targets
            return np.clip((targets.centre + constant) * targets.unit, -LARGEST, LARGEST)
