"""What the two estimators of iterative regularization share: they prepare rows, and leave learning to the method."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from tunefree.core.parameters import require
from tunefree.core.threads import one_for_products
from tunefree.estimators import resources, validation
from tunefree.estimators.model_file import Saving
from tunefree.estimators.tables import EncodedRows
from tunefree.losses import loss_of
from tunefree.model_files.plan import Plan
from tunefree.model_files.progress import Progress
from tunefree.model_files.trained import Trained
from tunefree.papers.early_stopping import EARLY_STOPPING, preparation
from tunefree.papers.early_stopping.descent import Descent
from tunefree.papers.early_stopping.optimality import descends, least_error
from tunefree.papers.early_stopping.path_model import FittedPath, PathModel
from tunefree.papers.early_stopping.path_parameters import PathParameters
from tunefree.papers.early_stopping.path_targets import Targets
from tunefree.papers.early_stopping.problem import Problem, Rows, Schedule
from tunefree.papers.early_stopping.spaces import space_of
from tunefree.papers.early_stopping.step_size import step_size
from tunefree.papers.early_stopping.stopping_times import StoppingTime, optimisation_bound, stopping_time, usual_theta
from tunefree.papers.early_stopping.widths import best_gamma
from tunefree.papers.kernel.kernels import kernel_of

ORDERS = {None: "batch", "cyclic": "cyclic", "shuffled": "shuffled"}
MAY_CHANGE = {"max_iter", "stop", "output", "assumptions", "warm_start", "n_jobs"}  # when a fit goes on
TRIED, TRIAL = 4096, 32  # rows and iterations by which widths are compared
SHARE_OF_PATH = 8  # of the memory limit, one part so large is for iterates


class Certificate(NamedTuple):
    """What can be said of the empirical error at the chosen stop, against all predictors of norm at most ``radius``."""

    iteration: int
    radius: float
    empirical_error: float  # of the output, on the rows learned
    least_error: float  # no predictor of this norm is below, by the path itself
    optimisation_error: float  # at most so far above the best of them: empirical_error - least_error
    optimisation_bound: float  # the same by the paper's lemmas, before anything is learned; nan where none holds


class IterativeRegularization(Saving, PathParameters):
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

    fitted_path_: FittedPath
    coefficients_: np.ndarray
    _begun_with: tuple[Any, ...]
    _begun_share: float  # of rows held out
    _is_dense: bool | None  # whether features of a table are an array; None before they are known

    def _labelled(self, X: Any, y: Any, y_numeric: bool = False) -> tuple[Any, np.ndarray]:
        """Rows to learn and their targets, checked; features of a table as an array, or as a large sparse matrix."""
        X, y = validation.labelled(self, X, y, reset=True, y_numeric=y_numeric)
        self._is_dense = None
        X = self._matrix(X)
        self._is_dense = not sparse.issparse(X)
        return X, y

    def _matrix(self, X: Any) -> Any:
        return preparation.matrix([X.block], X.shape[1] + 1, self._is_dense) if isinstance(X, EncodedRows) else X

    def _learn(self, X: Any, targets: Targets, weight: np.ndarray) -> None:
        """Descend, or go on, and choose a stop."""
        signature = self._signature(X, targets, weight)
        goes_on = self.warm_start and hasattr(self, "fitted_path_") and not self.fitted_path_.descent.is_over
        if goes_on and signature != self._begun_with:
            raise ValueError(
                "warm_start goes on with the same rows and parameters (but max_iter, stop, output and n_jobs); "
                "these differ: pass warm_start=False"
            )
        if goes_on and self.stop == "holdout" and not self._begun_share:
            raise ValueError("the path goes on that began without rows held out: pass warm_start=False, or a number")
        with resources.threads_of(self), one_for_products():
            if not goes_on:
                self.fitted_path_ = self._begin(X, targets, weight)
                self._begun_with, self._begun_share = signature, self._held_share()
            descent = self.fitted_path_.descent
            descent.run(self._iterations())
            descent.freeze(self.warm_start)
            self.path_ = self.fitted_path_.path()
            self._stop_at(self._chosen())
        task = "classification" if hasattr(self, "classes_") else "regression"
        plan, progress = (
            Plan(task=task, loss=self.loss, learner=EARLY_STOPPING),
            Progress(complete=True, number=1, rows=len(weight)),
        )
        self._learned = Trained(None, None, "", plan, progress)

    def _record(self) -> Trained:
        return replace(self._learned, model=PathModel(self))

    def _restore(self, trained: Trained) -> None:
        super()._restore(trained)
        self._learned = replace(trained, model=None)

    def _begin(self, X: Any, targets: Targets, weight: np.ndarray) -> FittedPath:
        random = check_random_state(self.random_state)
        kept = np.flatnonzero(weight)
        if len(kept) < len(weight):
            X, weight, targets = X[kept], weight[kept], targets.some(kept)
        keys = preparation.order(X, targets.exact, random)
        held = np.zeros(len(weight), bool)
        share_held = self._held_share()
        if share_held and len(np.unique(keys)) >= preparation.FEWEST:
            held = preparation.held_out(keys, targets.strata, weight, share_held)
        share = preparation.shares(weight[~held])
        standards = (
            preparation.standards(X[~held], share) if self.standardize else preparation.unchanged(X, self._farthest())
        )
        features = self._fit_features(standards.apply(X, self._farthest()), ~held)
        kernel, to_learn, others = self._kernel_of(features, targets, keys), features[~held], features[held]
        learned, beside = Rows(targets.y[~held], share), Rows(targets.y[held], preparation.shares(weight[held]))
        targets = targets.some(kept[:0])
        has_width = kernel is not None and kernel.distance is not None
        if has_width and self.gamma in (None, "ladder") and held.any():
            first = np.argsort(keys[~held], kind="stable")[:TRIED]
            some = Rows(learned.y[first], preparation.shares(share[first]))
            kernel = self._best_kernel(targets, to_learn[first], some, others, beside)
        problem = self._problem(targets, kernel, to_learn, learned, others, beside)
        with np.errstate(over="ignore"):
            mass = min(float(weight[~held].sum()), preparation.LARGEST)
        kappa = math.sqrt(float(problem.space.squared_sizes().max()))
        calibration = self._calibration_rows(
            targets, others if held.any() else features, beside if held.any() else learned
        )
        descent = Descent(problem, self._schedule(targets, problem, random), int(self.gram_bytes) // SHARE_OF_PATH)
        support = None if kernel is None else to_learn
        return FittedPath(descent, targets, standards, kernel, support, mass, kappa, bool(held.any()), calibration)

    def _signature(self, X: Any, targets: Targets, weight: np.ndarray) -> tuple[Any, ...]:
        """What must not change between fits that go on."""
        settings = {name: repr(value) for name, value in self.get_params(deep=False).items() if name not in MAY_CHANGE}
        contents = validation.digests(X, targets.exact).tobytes() + weight.tobytes()
        return settings, X.shape, hashlib.blake2b(contents).digest()

    def _fit_features(self, X: Any, learned: np.ndarray) -> Any:
        """Phi of standardised rows; a transformer is fitted on those that are learned."""
        if self.transformer is not None and not callable(self.transformer):
            self.transformer_ = clone(self.transformer).fit(X[learned])
        return self._dictionary(X)

    def _dictionary(self, X: Any) -> Any:
        if self.transformer is not None:
            X = self.transformer(X) if callable(self.transformer) else self.transformer_.transform(X)
            X = check_array(X, accept_sparse="csr", dtype=np.float64, order="C", input_name="transformed X")
        X = sparse.csr_array(X) if sparse.issparse(X) else X
        return X if self.kernel is None or self.precision == "double" else X.astype(np.float32)

    def _farthest(self) -> float:
        """Where standardised numbers are cut."""
        thin = self.kernel is not None and self.precision == "single"
        return preparation.FARTHEST_THIN if thin else preparation.FARTHEST

    def _kernel_of(self, features: Any, targets: Targets, keys: np.ndarray) -> Any:
        """The kernel with the gamma given, or the usual one; None without a kernel."""
        if self.kernel is None:
            return None
        if callable(self.gamma):
            gamma = float(self.gamma(features, targets.y))
        elif self.gamma is None or isinstance(self.gamma, str):
            classes = targets.n_outputs > 1 or len(np.unique(targets.strata)) > 1
            distance = kernel_of(self.kernel, 1.0).distance
            gamma = preparation.usual_gamma(distance, features, targets.y, keys, classes)
        else:
            gamma = float(self.gamma)
        if not (gamma > 0 and math.isfinite(gamma)):
            raise ValueError(f"`gamma` must be a number above 0; the function gave {gamma!r}")
        return self._kernel_at(gamma)

    def _kernel_at(self, gamma: float) -> Any:
        self.gamma_ = gamma
        return kernel_of(self.kernel, gamma, int(self.degree), float(self.coef0))

    def _best_kernel(self, targets: Targets, learned: Any, rows: Rows, held: Any, beside: Rows) -> Any:
        """The kernel with which the first steps of a descent on some rows predict those held out best."""

        def validation_loss(gamma: float) -> float:
            problem = self._problem(targets, self._kernel_at(gamma), learned, rows, held, beside)
            trial = Descent(problem, self._schedule(targets, problem, np.random.RandomState(0)), 0)
            try:
                trial.run(TRIAL)
            except ValueError:  # it left the range of numbers
                return math.inf
            return float(trial.path["validation_loss"].min())

        return self._kernel_at(best_gamma(self.gamma_, validation_loss))

    def promised_rate(self) -> tuple[Callable[[int], float] | None, str]:
        """The rate that Theorems 4, 7 and 8 promise of full steps under ``assumptions``, and its name.

        They bound the excess risk in the estimator's own loss. For the hinge and two classes the excess share of errors
        is no larger (Theorem 11); for other losses it may fall more slowly, for the logistic and the square loss with
        half the exponent at worst [1]_. None where the theorems are silent.

        .. [1] T. Zhang. Statistical behavior and consistency of classification methods based on convex risk
           minimization. Annals of Statistics 32, 2004.
        """
        theorem = self._stopping_time()
        if theorem is None:
            return None, ""
        name = rf"rate $n^{{-{theorem.rate:.2g}}}$" + (r"$\,\ln\,n$" if theorem.logarithm else "")

        def rate(n: int) -> float:
            return float(n) ** -theorem.rate * (math.log(n) if theorem.logarithm else 1.0)

        return rate, f"{name}\nof excess {str(self.loss).split(':')[0]} risk"

    def _stopping_time(self) -> StoppingTime | None:
        self._check()
        loss = loss_of("classification" if is_classifier(self) else "regression", str(self.loss))
        at_fixed_time = self.stop not in ("holdout", "theory")
        if self.stochastic or at_fixed_time or loss.growth(1.0).power == math.inf:
            return None
        assumed = {"output": self.output, **dict(self.assumptions or {})}
        usual = stopping_time(1, loss, **assumed)
        try:
            return usual if self.theta is None else stopping_time(1, loss, theta=self.theta, **assumed)
        except ValueError:
            return None  # these steps decay too slowly for the theorems, though not for learning

    def _problem(self, targets: Targets, kernel: Any, learned: Any, rows: Rows, held: Any, beside: Rows) -> Problem:
        space = space_of(kernel, learned, held, int(self.gram_bytes), self.device)
        return Problem(space, targets.objective, targets.n_outputs, targets.errors, rows, beside)

    def _schedule(self, targets: Targets, problem: Problem, random: np.random.RandomState) -> Schedule:
        loss, bound, order = targets.loss, targets.bound, ORDERS[self.stochastic]
        theta = self.theta
        if theta is None:
            theta = 0.5 if loss.growth(bound).power == math.inf else usual_theta(loss, bound)
            theta = max(theta, 0.5) if self.stochastic else theta
        eta = self.eta
        if isinstance(eta, str):
            eta = step_size(problem, loss, float(theta), eta, bound, order)
        self.eta_, self.theta_ = float(eta), float(theta)
        return Schedule(self.eta_, self.theta_, order, int(random.randint(0, 2**31 - 1)))

    def _iterations(self) -> int:
        """How many iterates the path has."""
        if self.stop == "theory":
            return self._by_theory()
        if self.stop != "holdout":
            return int(self.stop)
        fitted = self.fitted_path_
        if fitted.has_held_out or self.stochastic or fitted.targets.loss.growth(1.0).power == math.inf:
            return int(self.max_iter)
        return min(self._by_theory(), int(self.max_iter))

    def _by_theory(self) -> int:
        return stopping_time(
            max(self.fitted_path_.mass, 1.0),
            self.fitted_path_.targets.loss,
            theta=self.theta_,
            output=self.output,
            **dict(self.assumptions or {}),
        ).iterations

    def _chosen(self) -> int:
        if self.stop != "holdout" or not self.fitted_path_.has_held_out:
            return self._iterations()
        path = self.fitted_path_.descent.path[: self._iterations()]
        validation_loss = path["average_validation_loss" if self.output == "average" else "validation_loss"]
        if self.output == "best":
            least = np.minimum.accumulate(path["training_loss"])
            best = np.maximum.accumulate(np.where(path["training_loss"] <= least, np.arange(len(path)), 0))
            validation_loss = validation_loss[best]
        return int(validation_loss.argmin()) + 1

    def _stop_at(self, t: int) -> None:
        self.n_iter_ = t
        self.coefficients_ = getattr(self.fitted_path_.descent, self.output)(t)

    def _calibration_rows(self, targets: Targets, features: Any, rows: Rows) -> tuple[Any, Rows] | None:
        """Rows from which probabilities are to be learned, where the loss needs them."""
        return None

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
        with one_for_products():
            view._stop_at(int(t))
        return view

    def _predictions(self, X: Any) -> np.ndarray:
        """See :meth:`predictions_of`, of rows as users have them."""
        check_is_fitted(self)
        return self.predictions_of(self._matrix(validation.features(self, X)))

    def predictions_of(self, X: Any) -> np.ndarray:
        """Margins (n, K) of classes, or the predicted targets (n, 1), of an array or CSR matrix of all features."""
        with resources.threads_of(self), one_for_products():
            features = self._dictionary(self.fitted_path_.standards.apply(X, self._farthest()))
            return self.fitted_path_.margins(self.coefficients_, features, self.device)

    def _linear(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (d, K) of the features as given (or of the dictionary), and constants (K,), in the method's units."""
        check_is_fitted(self)
        if self.kernel is not None:
            raise AttributeError("an expansion in a kernel has no weights of the features; see dual_coef_")
        weights, constant = self.coefficients_[:-1], self.coefficients_[-1]
        if self.transformer is not None:
            return weights, constant
        weights, shift = self.fitted_path_.standards.restore(weights)
        return weights, constant + shift

    @property
    def dual_coef_(self) -> np.ndarray:
        """Coefficients of the kernel expansion, (n_outputs, n_rows)."""
        check_is_fitted(self)
        if self.kernel is None:
            raise AttributeError("weights of a dictionary are no coefficients of a kernel; see coef_")
        return (self.coefficients_ * self.fitted_path_.targets.unit).T

    def certificate(self, radius: float | None = None) -> Certificate:
        """Bound on the empirical error at the selected iteration minus the least one of predictors of some norm.

        The excess risk of f_T has three parts (Lin, Rosasco, Zhou 2016, (17) and Lemma 13). This bounds the first, the
        optimisation error. The bound holds for the given rows with certainty and any step. It is computed twice: from
        the measured path, and a priori by the paper's lemmas (17 without its last term, 19, 20). The second part, the
        sample error, depends on the unknown distribution; the validation columns of ``path_`` estimate it. The third,
        the approximation error, cannot be computed from a sample: nothing here bounds the risk of predictors of norm
        ``radius``, or of any norm.

        Norms are those of the weights of the standardised features, including the constant, or of the kernel's Hilbert
        space. With ``precision="single"`` the bound holds up to rounding of the kernel values.

        Parameters
        ----------
        radius : float, optional
            In units of the target. Default: the largest norm on the path up to the selected iteration.
        """
        check_is_fitted(self)
        if self.stochastic:
            raise ValueError("the certificate is of full steps; there is none with stochastic")
        fitted = self.fitted_path_
        path, unit, by = fitted.descent.path, fitted.targets.unit, fitted.targets.loss_unit
        t = self.n_iter_
        require("radius", float | None, radius, above=0)
        radius = float(path["norm"][:t].max()) if radius is None else float(radius) / unit
        error = path["average_training_loss" if self.output == "average" else "training_loss"][:t]
        reached = float(error.min() if self.output == "best" else error[-1])
        least = least_error(path, radius)
        return Certificate(
            t, radius * unit, reached * by, least * by, max(reached - least, 0.0) * by, self._by_lemmas(radius) * by
        )

    def _by_lemmas(self, radius: float) -> float:
        """The lemmas' bound; nan where they do not hold: with other steps, or where iterates have larger norms."""
        targets, path = self.fitted_path_.targets, self.fitted_path_.descent.path[: self.n_iter_]
        loss = targets.loss
        if self.n_iter_ < 3 or targets.n_outputs > 1:
            return math.nan
        if loss.smoothness < math.inf:
            holds = descends(path) and (self.output != "average" or path["norm"].max() <= radius)
        else:
            q = loss.growth(targets.bound).power
            small = self.output != "last" or path["norm"].max() <= radius
            holds = self.eta == "theory" and small and self.theta_ > q / (q + 1.0)
        if not holds:
            return math.nan
        return optimisation_bound(
            self.n_iter_,
            loss,
            theta=self.theta_,
            step=self.eta_,
            kappa=self.fitted_path_.kappa,
            radius=radius,
            bound=targets.bound,
            output=self.output,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_iter_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
