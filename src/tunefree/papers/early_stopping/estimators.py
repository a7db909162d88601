"""Iterative regularization (Lin, Rosasco, Zhou 2016) as scikit-learn estimators: one run, the whole path."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tunefree.core.parameters import check, parameter, require
from tunefree.core.rows import Block
from tunefree.core.threads import one_for_products
from tunefree.estimators import classifier, tables, validation
from tunefree.estimators.classifier import Classifying
from tunefree.estimators.model_file import Saving
from tunefree.estimators.parameters import documented, estimator, loss_of_task, shared
from tunefree.losses import loss_of
from tunefree.model_files.plan import Plan
from tunefree.model_files.progress import Progress
from tunefree.model_files.trained import Trained
from tunefree.papers.early_stopping import preparation, targets
from tunefree.papers.early_stopping.gram import Gram
from tunefree.papers.early_stopping.path_model import FittedPath, PathModel
from tunefree.papers.early_stopping.preparation import LARGEST
from tunefree.papers.early_stopping.step_size import step_size
from tunefree.papers.early_stopping.stopping_times import OUTPUTS, lemma_bound, stopping_time, usual_theta
from tunefree.papers.early_stopping.targets import Goal, Targets
from tunefree.papers.growth import growth
from tunefree.papers.kernel import kernels
from tunefree.papers.kernel.kernels import COEF0, DEGREE, check_effect, kernel_of, median_gamma, squared_norms
from tunefree.papers.subgradient import Path, Problem, Rows, descend, steps_of
from tunefree.theory.bounds import Bound, no_bound

ASSUMPTIONS = ("beta", "tau", "zeta")
MOST_COMPARED = 1000  # rows whose distances give the width of a kernel
USUAL_FRACTION = 0.1  # of rows held out


@estimator
class IterativeRegularization(Saving, BaseEstimator):
    """Standardise, hold out, descend, stop.

    Attributes
    ----------
    path_ : record array
        A record for each iterate: ``iteration``, ``step``, ``training_loss``, ``training_error``, ``validation_loss``,
        ``validation_error``, ``norm``, the same losses and errors of averages (``average_training_loss`` ...), and
        ``inner``, the inner product of the iterate and the subgradient there. The first iterate is 0. Errors of a
        regressor are mean absolute errors.
    n_iter_ : int
        The selected iteration.
    eta_, theta_, gamma_ : float
        Parameters of the steps, and gamma of the kernel.
    n_features_in_ : int
        Number of features seen during ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Defined only when X has feature names that are all strings.

    References
    ----------
    .. [1] J. Lin, L. Rosasco, D.-X. Zhou. Iterative regularization for learning with convex loss functions. JMLR 17,
       2016.
    """

    kernel: str | None = parameter(
        None,
        "None fits weights of the features and an intercept; rbf, laplacian, poly and linear fit coefficients of a "
        "kernel, without intercept.",
    )
    gamma: float | None = parameter(
        None,
        "gamma of the kernel. Default: 1 / (2 m^2) for 'rbf', m the median distance of rows of different classes, or "
        "in regression of any two rows; 1 / m for 'laplacian'; 1 over the mean square length of rows for 'poly'.",
        above=0,
    )
    degree: int = parameter(3, DEGREE, low=1)
    coef0: float = parameter(1.0, COEF0, low=0)
    precision: str = parameter("single", "Precision of the kernel's values.", choices=("single", "double"))
    standardize: bool = parameter(
        True,
        "Whether to standardise columns to mean 0 and variance 1; sparse columns are scaled but not centred.",
    )
    theta: float | None = parameter(
        None,
        "Steps are eta_1 t^-theta. Default: 0 for smooth losses, else (q + 1) / (q + 2), with q the growth of slopes: "
        "1/2 for the hinge.",
        low=0,
        below=1,
    )
    eta: float | str = parameter(
        "auto",
        "eta_1. ``'theory'``: the largest value that the theorems allow. ``'auto'``: the same conditions, evaluated on "
        "the rows instead of bounded a priori, so that fewer iterations are needed. The exponential loss needs a "
        "number.",
        choices=("auto", "theory"),
        above=0,
    )
    output: str = parameter(
        "last",
        "The last iterate, the average weighted by the steps, or the iterate with the least training loss.",
        choices=tuple(OUTPUTS),
    )
    stop: int | str = parameter(
        "holdout",
        "``'holdout'``: the iteration with the least held-out loss; with fewer than 40 distinct rows none is held out, "
        "and ``'theory'`` is used. ``'theory'``: ``stopping_time`` of :mod:`.stopping_times`. int: the "
        "number of iterations.",
        choices=("holdout", "theory"),
        low=1,
    )
    assumptions: dict[str, Any] | None = parameter(
        None,
        "``beta``, ``tau`` and ``zeta`` of ``stopping_time``, for ``'theory'``.",
    )
    max_iter: int = parameter(500, "Length of the path with ``stop='holdout'``.", low=1)
    validation_fraction: float | None = parameter(
        None,
        "Fraction of each class, or of all rows, that is held out and not fitted. By default a tenth with "
        "``stop='holdout'``, which needs it, and else none.",
        low=0,
        below=1,
    )
    random_state: Any = shared("random_state", 0, "Drawn are the rows held out.")

    def _check(self) -> None:
        """Raise an error for parameters that cannot be combined."""
        check(self)
        if self.kernel is not None:
            kernels.check_kernel(self.kernel)
        check_effect(self)
        if self.stop == "holdout" and self.validation_fraction == 0:
            raise ValueError("`stop='holdout'` needs rows to hold out: pass `validation_fraction` above 0")
        if unknown := set(self.assumptions or {}) - set(ASSUMPTIONS):
            raise ValueError(f"`assumptions` may name beta, tau and zeta, not {', '.join(sorted(unknown))}")

    @documented
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Compute the regularization path and select an iteration.

        A row of weight 2 is equivalent to two copies of it.
        """
        self._check()
        X, y = validation.labelled(self, X, y, reset=True)
        self._is_dense: bool | None = None  # whether features of a table are an array; None before they are known
        X = self._matrix(X)
        self._is_dense = not sparse.issparse(X)
        goal, targets, weight = self._targets(y, validation.weights(sample_weight, len(y), may_vanish=False))
        with one_for_products():
            self._learn(X, goal, targets, weight)
        return self

    def _targets(self, y: np.ndarray, weight: np.ndarray) -> tuple[Goal, Targets, np.ndarray]:
        """The objective, the targets as the method takes them, and the weights of the rows."""
        raise NotImplementedError

    def _matrix(self, X: Block) -> Any:
        """Rows as one array or sparse matrix; those of a sparse matrix stay one."""
        if self._encoder is None and not X.numbers.shape[1]:
            pointers = X.pointers.astype(np.int32 if X.pointers[-1] < 2**31 else np.int64)
            return sparse.csr_array((X.values, X.features - 1, pointers), shape=(len(X.numbers), self.n_features_in_))
        return preparation.matrix([X], 1 + tables.n_features(self), self._is_dense)

    def _learn(self, X: Any, goal: Goal, targets: Targets, weight: np.ndarray) -> None:
        """Prepare the rows, descend, and choose a stop."""
        n_rows, kept = len(weight), np.flatnonzero(weight)
        if len(kept) < n_rows:
            X, weight, targets = X[kept], weight[kept], Targets(*(array[kept] for array in targets))
        keys = preparation.order(X, targets.exact, check_random_state(self.random_state))
        is_held_out = np.zeros(len(weight), bool)
        if self._share_held_out() and len(np.unique(keys)) >= preparation.FEWEST:
            is_held_out = preparation.held_out(keys, targets.strata, weight, self._share_held_out())
        share, beside = preparation.shares(weight[~is_held_out]), preparation.shares(weight[is_held_out])
        farthest = self._farthest()
        standards = (
            preparation.standards(X[~is_held_out], share) if self.standardize else preparation.unchanged(X, farthest)
        )
        features = self._prepared(standards, X)
        learned, others = (
            Rows(features[~is_held_out], targets.y[~is_held_out], share),
            Rows(features[is_held_out], targets.y[is_held_out], beside),
        )
        kernel = None
        if self.kernel is not None:
            kernel = self._kernel_at(float(self.gamma or self._usual_gamma(features, targets.y, keys)))
        problem = problem_of(goal, kernel, learned, others)
        with np.errstate(over="ignore"):
            mass = float(weight[~is_held_out].sum())
        path = self._descend(goal, problem, self._iterations(goal, bool(is_held_out.any()), mass))
        self._kappa = math.sqrt(float(problem.squares.max()))
        support = None if kernel is None else learned.matrix
        self.fitted_path_ = FittedPath(path, goal, standards, kernel, support)
        self._stop_at(self._chosen(path, bool(is_held_out.any())))
        plan = Plan(task="classification" if is_classifier(self) else "regression", loss=self.loss)
        self._learned = Trained(None, None, "", plan, Progress(complete=True, number=1, rows=n_rows))

    def _share_held_out(self) -> float:
        """The fraction of rows that is held out."""
        if self.validation_fraction is not None:
            return float(self.validation_fraction)
        return USUAL_FRACTION if self.stop == "holdout" else 0.0

    def _farthest(self) -> float:
        """Where standardised numbers are cut."""
        thin = self.kernel is not None and self.precision == "single"
        return preparation.FARTHEST_THIN if thin else preparation.FARTHEST

    def _prepared(self, standards: preparation.Standards, X: Any) -> Any:
        """Standardised rows, in the precision of products."""
        X = standards.apply(X, self._farthest())
        X = sparse.csr_array(X) if sparse.issparse(X) else X
        return X if self.kernel is None or self.precision == "double" else X.astype(np.float32)

    def _usual_gamma(self, features: Any, y: np.ndarray, keys: np.ndarray) -> float:
        """The width of the kernel, from some of the different rows."""
        _, some = np.unique(keys, return_index=True)
        some = some[:MOST_COMPARED]
        distance = kernel_of(self.kernel, 1.0).distance
        if distance is None:
            return 1.0 / (float(squared_norms(features[some]).mean()) or 1.0)
        labels = y[some] if is_classifier(self) else np.arange(len(some))
        return median_gamma(features[some], labels, len(some), distance)

    def _kernel_at(self, gamma: float) -> Any:
        self.gamma_ = gamma
        return kernel_of(self.kernel, gamma, int(self.degree), float(self.coef0))

    def _iterations(self, goal: Goal, has_held_out: bool, mass: float) -> int:
        """How many iterates the path has; ``mass`` is the total weight of the rows learned."""
        if self.stop not in ("holdout", "theory"):
            return int(self.stop)
        if self.stop == "holdout" and (has_held_out or growth(goal.loss, 1.0).power == math.inf):
            return int(self.max_iter)
        assumed = {"theta": self._theta_used(goal), "output": self.output, **dict(self.assumptions or {})}
        by_theory = stopping_time(min(max(mass, 1.0), LARGEST), goal.loss, **assumed).iterations
        return min(by_theory, int(self.max_iter)) if self.stop == "holdout" else by_theory

    def _descend(self, goal: Goal, problem: Problem, iterations: int) -> Path:
        self.theta_ = self._theta_used(goal)
        eta = self.eta
        self.eta_ = step_size(problem, goal.loss, self.theta_, eta, goal.bound) if isinstance(eta, str) else float(eta)
        return descend(problem, steps_of(self.eta_, self.theta_, iterations))

    def _theta_used(self, goal: Goal) -> float:
        if self.theta is not None:
            return float(self.theta)
        return 0.5 if growth(goal.loss, goal.bound).power == math.inf else usual_theta(goal.loss, goal.bound)

    def _chosen(self, path: Path, has_held_out: bool) -> int:
        """The iteration at which to stop."""
        if self.stop != "holdout" or not has_held_out:
            return len(path.records)
        validation_loss = path.records["average_validation_loss" if self.output == "average" else "validation_loss"]
        if self.output == "best":
            validation_loss = validation_loss[path.places_of_best()]
        return int(validation_loss.argmin()) + 1

    def _stop_at(self, t: int) -> None:
        fitted = self.fitted_path_
        self.n_iter_, self.path_, self.eta_ = t, fitted.records(), float(fitted.path.records["step"][0])
        with one_for_products():
            self.coefficients_ = getattr(fitted.path, self.output)(t)

    def _record(self) -> Trained:
        return replace(self._learned, model=PathModel(self))

    def _restore(self, trained: Trained) -> None:
        super()._restore(trained)
        self._learned, self._kappa = replace(trained, model=None), math.nan

    def at(self, t: int) -> Any:
        """The estimator stopped at iteration t, without a new fit.

        Parameters
        ----------
        t : int
            From 1 (the zero function) to the length of ``path_``.

        Returns
        -------
        estimator
            A fitted copy that shares the path.
        """
        check_is_fitted(self)
        require("t", int, t, low=1)
        view = copy.copy(self)
        view._stop_at(int(t))
        return view

    def _predictions(self, X: Any) -> np.ndarray:
        """See :meth:`predictions_of`, of rows as users have them."""
        check_is_fitted(self)
        return self.predictions_of(self._matrix(validation.features(self, X)))

    def predictions_of(self, X: Any) -> np.ndarray:
        """Margins (n, K) of classes, or the predicted targets (n, 1), of an array or CSR matrix of all features."""
        fitted = self.fitted_path_
        with one_for_products():
            return fitted.margins(self.coefficients_, self._prepared(fitted.standards, X))

    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (d, K) of the features as given, and constants (K,), in the method's units."""
        check_is_fitted(self)
        if self.kernel is not None:
            raise AttributeError("an expansion in a kernel has no weights of the features; see dual_coef_")
        weights, shift = self.fitted_path_.standards.restore(self.coefficients_[:-1])
        return weights, self.coefficients_[-1] + shift

    @property
    def dual_coef_(self) -> np.ndarray:
        """Coefficients of the kernel expansion, (n_outputs, n_rows)."""
        check_is_fitted(self)
        if self.kernel is None:
            raise AttributeError("weights of features are no coefficients of a kernel; see coef_")
        return (self.coefficients_ * self.fitted_path_.goal.unit).T

    def bound(self, radius: float) -> Bound:
        """The bound on the error of the rows learned, minus that of any function of some norm: Lemmas 17, 19 and 20.

        Parameters
        ----------
        radius : float
            The norm of the function of the prepared rows, in units of the targets.

        Returns
        -------
        Bound
            In units of the loss; without a value where the lemmas are silent, with the reason.
        """
        check_is_fitted(self)
        goal, records = self.fitted_path_.goal, self.fitted_path_.path.records[: self.n_iter_]
        if math.isnan(self._kappa):
            return no_bound("the largest norm of the rows learned is not in a model file")
        if goal.n_outputs > 1:
            return no_bound("the lemmas are of one output")
        method = {"theta": self.theta_, "kappa": self._kappa, "radius": radius / goal.unit, "bound": goal.bound}
        bound = lemma_bound(records, goal.loss, **method, output=self.output)
        return bound if bound.value is None else bound._replace(value=bound.value * goal.loss_unit)

    def promised_rate(self) -> tuple[Callable[[int], float] | None, str]:
        """The rate that Theorems 4, 7 and 8 promise under ``assumptions``, and its name.

        They bound the excess risk in the estimator's own loss. For the hinge and two classes the excess share of errors
        is no larger (Theorem 11); for other losses it may fall more slowly, for the logistic and the square loss with
        half the exponent at worst [1]_. None where the theorems are silent.

        .. [1] T. Zhang. Statistical behavior and consistency of classification methods based on convex risk
           minimization. Annals of Statistics 32, 2004.
        """
        self._check()
        loss = loss_of("classification" if is_classifier(self) else "regression", str(self.loss))
        if self.stop not in ("holdout", "theory") or growth(loss, 1.0).power == math.inf:
            return None, ""
        assumed = {"output": self.output, **dict(self.assumptions or {})}
        theorem = stopping_time(1, loss, **assumed)
        try:
            theorem = theorem if self.theta is None else stopping_time(1, loss, theta=self.theta, **assumed)
        except ValueError:
            return None, ""  # these steps decay too slowly for the theorems, though not for learning
        name = rf"rate $n^{{-{theorem.rate:.2g}}}$" + (r"$\,\ln\,n$" if theorem.logarithm else "")

        def rate(n: int) -> float:
            return float(n) ** -theorem.rate * (math.log(n) if theorem.logarithm else 1.0)

        return rate, f"{name}\nof excess {str(self.loss).split(':')[0]} risk"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_iter_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def problem_of(goal: Goal, kernel: Any, learned: Rows, others: Rows) -> Problem:
    """The problem of prepared rows: of weights, the last of which is a constant's, or in the space of a kernel."""
    if kernel is None:
        learned, others = (rows._replace(matrix=_with_constant(rows.matrix)) for rows in (learned, others))
        squares = squared_norms(learned.matrix)
    else:
        squares = np.asarray(kernel.diagonal(learned.matrix))
        others = others._replace(matrix=Gram(kernel, others.matrix, learned.matrix))
        learned = learned._replace(matrix=Gram(kernel, learned.matrix))
    return Problem(learned, others, squares, kernel is not None, goal.objective, goal.errors, goal.n_outputs)


def _with_constant(X: Any) -> Any:
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([X, ones], format="csr") if sparse.issparse(X) else np.hstack([X, ones])


@estimator
class IterativeRegularizationClassifier(Classifying, IterativeRegularization):
    """A classifier regularised by early stopping of the subgradient method; one run gives the regularization path.

    Nothing needs to be tuned: the steps follow from the data and the loss, and held-out rows select the iteration [1]_.

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

    loss: str = loss_of_task("classification", "logistic")

    def _targets(self, y: np.ndarray, weight: np.ndarray) -> tuple[Goal, Targets, np.ndarray]:
        validation.class_labels(y)
        classes, codes = np.unique(y, return_inverse=True)
        classifier.check_several(classes[np.unique(codes[weight > 0])])
        self.classes_, K = classes, len(classes)
        goal = targets.goal_of_classes(loss_of("classification", self.loss), K)
        return goal, targets.targets_of_classes(codes, K), self._weighted(y, weight, classes, classes)

    @documented
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities.

        Those that the loss's link function gives; with several classes one against all, normalised. The hinge has no
        link function with an inverse: its margins are taken for log-odds, and are not calibrated.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        margins = self._predictions(X)
        return targets.probabilities(self.fitted_path_.goal.loss, margins)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, (1, n_features) with two classes, else (n_classes, n_features)."""
        return self._linear()[0].T

    @property
    def intercept_(self) -> np.ndarray:
        """Intercept, (1,) with two classes, else (n_classes,)."""
        return self._linear()[1]


@estimator
class IterativeRegularizationRegressor(RegressorMixin, IterativeRegularization):
    """A regressor regularised by early stopping of the subgradient method; one run gives the regularization path.

    The target is centred by its mean and divided by the power of two below its standard deviation. Losses, errors and
    norms of the path are in the units of the target.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tunefree import IterativeRegularizationRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = IterativeRegularizationRegressor().fit(X[:300], y[:300])
    >>> model.score(X[300:], y[300:]) > 0.45
    True
    """

    loss: str = loss_of_task("regression", "square")

    def _targets(self, y: np.ndarray, weight: np.ndarray) -> tuple[Goal, Targets, np.ndarray]:
        loss = loss_of("regression", self.loss)
        return *targets.goal_and_targets_of_numbers(loss, y.astype(np.float64), weight), weight

    def predictions_of(self, X: Any) -> np.ndarray:
        return self._numbers(super().predictions_of(X))

    @documented
    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of each row.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return np.asarray(self._predictions(X)[:, 0])

    def _numbers(self, margins: np.ndarray) -> np.ndarray:
        """Margins in the units of the target."""
        with np.errstate(over="ignore"):
            goal = self.fitted_path_.goal
            return np.clip((goal.centre + margins) * goal.unit, -LARGEST, LARGEST)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, (n_features,)."""
        with np.errstate(over="ignore"):
            weights = self._linear()[0][:, 0]
            return np.clip(weights * self.fitted_path_.goal.unit, -LARGEST, LARGEST)

    @property
    def intercept_(self) -> np.ndarray:
        """Prediction of a row of zeros, (1,)."""
        return self._numbers(self._linear()[1])
